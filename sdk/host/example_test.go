package host_test

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
)

// A driver sends commands, and reads what comes of them.
func ExampleHost() {
	ctx := context.Background()
	h := host.New("", func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: o.Dir, AddDirs: o.AddDirs, MCP: agent.MCPOptions{Servers: o.MCP}})
		if err != nil {
			return host.Opened{}, err
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{
			Provider: coretest.Model(coretest.Say("Good day!")), Asker: asker, Resume: o.ID, ToolEnv: o.ToolEnv,
		})
		return host.Opened{Session: s, Close: a.Close}, err
	})
	defer h.Close()
	s, err := h.Open(ctx, host.Open{Dir: "."})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := s.Do(ctx, host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: "Hello!"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range s.Events(ctx, s.Past()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if b, ok := e.Body.(event.Result); ok && b.Run == run {
			fmt.Println(b.Outcome, b.Text)
			return
		}
	}
	// Output: done Good day!
}
