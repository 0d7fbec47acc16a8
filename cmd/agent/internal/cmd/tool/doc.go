// Package tool is the command agent tools: list the tools of a session, show one,
// and call one subject to permissions.
package tool
