package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/proto"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Sample is a call of a tool and its expected result.
type Sample struct {
	Tool   string
	Args   string   // JSON; empty = {}
	Want   sdk.Code // empty = success
	Blocks bool     // runs until it is cancelled
}

// Conforms checks what an agent expects of every plugin: that it describes itself
// the same each time, with names and schemas that models accept; that it rejects
// invalid arguments, unknown tools and empty sessions without crashing; that calls
// run concurrently and end when cancelled. Every tool needs at least one sample.
func Conforms(t *testing.T, p *Plugin, samples ...Sample) {
	t.Helper()
	for i := range samples {
		if samples[i].Args == "" {
			samples[i].Args = "{}"
		}
	}
	t.Run("describe", func(t *testing.T) { p.checkDescription(t, samples) })
	t.Run("unknown tool", func(t *testing.T) {
		if res := p.Call(t, "no-such-tool", json.RawMessage("{}")); res.Code == "" {
			t.Error("a call of an unknown tool succeeded")
		}
	})
	t.Run("no first frame", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		if _, err := p.converse(ctx, &toolproto.HostFrame{}, false, nil); err == nil {
			t.Error("a session without a call succeeded")
		}
	})
	for i, s := range samples {
		t.Run(fmt.Sprintf("call %s %d", s.Tool, i), func(t *testing.T) { p.checkSample(t, s) })
	}
	t.Run("concurrent calls", func(t *testing.T) {
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, s := range samples {
			if s.Blocks {
				continue
			}
			for range 4 {
				wg.Go(func() { p.checkCall(t, s) })
			}
		}
	})
	p.Describe(t) // still running
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (p *Plugin) checkDescription(t *testing.T, samples []Sample) {
	d := p.Describe(t)
	if again := p.Describe(t); !d.Dynamic && !proto.Equal(d, again) {
		t.Errorf("Describe answers differently the second time:\n%v\n%v", d, again)
	}
	if d.Name == "" || d.Version == "" {
		t.Errorf("name %q, version %q: both are required", d.Name, d.Version)
	}
	seen := map[string]bool{}
	for _, tool := range d.Tools {
		switch {
		case !toolName.MatchString(tool.Name):
			t.Errorf("tool %q: expected 1 to 64 letters, digits, _ or -", tool.Name)
		case seen[tool.Name]:
			t.Errorf("duplicate tool %q", tool.Name)
		case strings.TrimSpace(tool.Description) == "":
			t.Errorf("tool %q has no description", tool.Name)
		case !slices.ContainsFunc(samples, func(s Sample) bool { return s.Tool == tool.Name }):
			t.Errorf("tool %q has no sample", tool.Name)
		}
		seen[tool.Name] = true
		var schema jsonschema.Schema
		err := json.Unmarshal(tool.InputSchema, &schema)
		if err == nil && schema.Type != "object" {
			err = fmt.Errorf(`the root must have "type": "object"`)
		}
		if err == nil {
			_, err = schema.Resolve(nil)
		}
		if err != nil {
			t.Errorf("schema of %q: %v\n%s", tool.Name, err, tool.InputSchema)
		}
	}
}

func (p *Plugin) checkSample(t *testing.T, s Sample) {
	if !s.Blocks {
		p.checkCall(t, s)
	}
	// Any call must end soon if it is cancelled right after its start.
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if _, err := p.converse(ctx, callFrame(s), true, func(cancel func()) { cancel() }); err != nil {
		t.Errorf("%s %s, cancelled: %v; expected a result", s.Tool, s.Args, err)
	}
}

func callFrame(s Sample) *toolproto.HostFrame {
	call := &toolproto.Call{Id: "sample", Tool: s.Tool, Args: []byte(s.Args), Session: &toolproto.SessionInfo{Id: "sdktest"}}
	return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Call{Call: call}}
}

func (p *Plugin) checkCall(t *testing.T, s Sample) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	res, err := p.converse(ctx, callFrame(s), true, nil)
	switch {
	case err != nil:
		t.Errorf("%s %s: %v", s.Tool, s.Args, err)
	case res.Code != s.Want:
		t.Errorf("%s %s: code %q, want %q: %s", s.Tool, s.Args, res.Code, s.Want, res.Text)
	}
}
