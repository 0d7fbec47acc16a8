// Package settings opens sessions with the settings of the user, for programs that embed
// an agent: the same files, providers, permission rules, MCP servers, plugins and skills
// as the agent command. It is apart from sdk/agent, which reads no files and no
// environment variables.
package settings
