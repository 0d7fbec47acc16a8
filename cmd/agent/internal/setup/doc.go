// Package setup turns flags and settings into an agent, a session, a provider, a
// policy, MCP servers, plugins and skills. Flags declares the flags, Flags.Load
// reads the settings, and the methods of Setup open what they describe.
package setup
