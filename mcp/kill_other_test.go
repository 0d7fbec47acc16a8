//go:build !unix

package mcp_test

const agentEnv = "MCP_TEST_AGENT"

func playAgent(string) {}
