// Package chat is the interactive session: it connects a session of sdk/agent
// to the terminal of package tui, and implements the slash commands.
package chat
