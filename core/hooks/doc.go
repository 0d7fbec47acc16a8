// Package hooks runs what users configure to happen at points of a session: guards
// that deny tool calls, formatters that run after an edit, checks before the agent
// stops. It reads and writes the JSON of Claude Code's and Codex's hooks, and
// translates Gemini CLI's.
//
// A SessionStart hook can set variables for the commands of the session; see
// [Options].Variable.
//
// A [Source] is where hooks come from: the user's settings, a project, a plugin's
// hooks.json, the front matter of a skill or an agent type. [Parse] turns its JSON
// into definitions, and names what cannot be used:
//
//	defs, problems, err := hooks.Parse(hooks.Source{Name: "plugin lint", File: file, Vars: vars}, data)
//	engine := hooks.New(hooks.Options{Hooks: defs, …})
//
// [Engine.Bind] adds an engine to the configuration of a session. It uses what the
// session takes anyway: its hooks, policy, asker, watcher and provider. A session
// without hooks is left as it is.
//
// A hook can make a session stricter, never looser: it denies, asks, or changes
// arguments, which are checked again. That it allows a call only answers a question
// that the user would have been asked because of the permission mode; rules that
// ask or deny, and sensitive files, stay. A guard (PreToolUse, PermissionRequest) that
// fails, times out or prints what cannot be read denies the call, unless its
// definition has "onError": "allow".
//
// An Engine is safe for concurrent use. Commands run in the environment of the
// session, in its sandbox, and end with it.
package hooks
