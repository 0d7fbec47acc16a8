// Package subagent lets a model hand parts of its work to agents of their own:
// sessions with a history, limits and a budget of their own, in the same
// environment and under the same policy. Its toolset has spawn_agent,
// send_input, wait and close_agent.
//
// How a session is opened is the host's matter, see [Host]. A subagent's
// questions go to its parent's person, with its path; it ends with its parent.
// What kinds of agents there are is told by Markdown files, see [Definition].
package subagent
