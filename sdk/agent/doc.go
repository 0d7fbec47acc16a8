// Package agent puts an agent together in your own program: settings or code
// in, a ready [core.Session] out. It is the one place where the
// implementations meet; the agent command uses it like any other host.
//
// An [Agent] is what sessions share: the environment, the tools, the policy,
// the place on disk. [Agent.NewSession] opens a session with a model.
//
//	a, err := agent.Open(ctx, agent.Options{Dir: ".", Tools: []core.Tool{myTool}})
//	...
//	defer a.Close()
//	s, err := a.NewSession(ctx, agent.SessionOptions{Provider: provider})
//	...
//	out, err := s.Submit(ctx, core.TextInput("What is in this directory?"))
package agent
