// Package agent embeds a coding agent in your own program. It combines the
// implementations of core's interfaces (environment, tools, permissions, plugins,
// MCP, skills, store) into sessions; the agent command is a host like any other.
//
// An [Agent] is what sessions share: the environment, the tools, the policy, the
// directory for session logs. [Agent.NewSession] opens a session with a model.
//
//	a, err := agent.Open(ctx, agent.Options{Dir: ".", Tools: []core.Tool{myTool}})
//	...
//	defer a.Close()
//	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: provider})
//	...
//	defer s.Close()
//	out, err := s.Submit(ctx, core.TextInput("What is in this directory?"))
//
// # Permissions
//
// By default an agent may read inside its directory and start subagents; all else
// needs approval, and is denied without a [SessionOptions].Asker. Set
// [Options].Permissions to allow more, or an Asker that decides.
//
// # Events
//
// A session reports everything that happens as events, see [core.Session.Events].
// Submit returns only the outcome.
//
// The example directory is a complete program in a separate module.
package agent
