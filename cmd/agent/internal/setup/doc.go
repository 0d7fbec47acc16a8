// Package setup turns flags and settings into what a command works with: an
// agent, a session, a provider, a policy, the MCP servers, plugins and skills.
// Flags declares the flags, Flags.Load reads the settings in force, and the
// methods of Setup open what they describe.
package setup
