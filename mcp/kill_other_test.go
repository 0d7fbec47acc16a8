//go:build !unix

package mcp

const agentEnv = "MCP_TEST_AGENT"

func playAgent(string) {}
