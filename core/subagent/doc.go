// Package subagent lets a model delegate work to subagents: sessions with their
// own history and limits, in the same environment and under the same policy. Its
// toolset has spawn_agent, send_input, wait and close_agent.
//
// The host opens the sessions, see [Host]. A subagent's questions go to the user
// of its parent, with its path; it ends with its parent. Agent types are defined
// by Markdown files, see [Definition].
package subagent
