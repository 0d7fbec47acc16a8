// Package trust is the command agent trust: trust the settings, skills and MCP
// servers of a directory.
package trust
