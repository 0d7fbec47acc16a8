// Package tool is the command agent tools: list the tools a session has, and call
// one through the permission policy.
package tool
