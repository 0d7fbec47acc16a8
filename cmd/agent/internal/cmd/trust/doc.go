// Package trust is the command agent trust: approve the settings, skills and MCP
// servers that a directory brings.
package trust
