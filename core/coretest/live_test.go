package coretest_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
)

// liveSet is a toolset whose tools stream, ask, flood, block and change.
type liveSet struct {
	changed chan struct{}

	mu     sync.Mutex
	tools  []core.Tool
	closed bool
}

// liveArgs are the arguments of all tools of a liveSet.
type liveArgs struct {
	Text  string `json:"text,omitempty"`
	Bytes int    `json:"bytes,omitempty"`
}

func newLiveSet(t *testing.T) *liveSet {
	t.Helper()
	s := &liveSet{changed: make(chan struct{}, 1)}
	for _, tool := range []struct {
		name string
		run  func(ctx context.Context, call *core.Call, in liveArgs) (core.Result, error)
	}{
		{"stream", runStream},
		{"ask", runAsk},
		{"image", runImage},
		{"huge", runHuge},
		{"hugeresult", func(_ context.Context, _ *core.Call, in liveArgs) (core.Result, error) {
			return core.TextResult(strings.Repeat("x", in.Bytes)), nil
		}},
		{"hang", func(ctx context.Context, _ *core.Call, _ liveArgs) (core.Result, error) {
			<-ctx.Done()
			return core.Fail(core.CodeCancelled, "cancelled"), nil
		}},
		{"change", s.runChange},
		{"stale", runText("stale, but served")},
	} {
		s.tools = append(s.tools, liveTool(tool.name, tool.run))
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func liveTool(name string, run func(context.Context, *core.Call, liveArgs) (core.Result, error)) core.Tool {
	access := func(context.Context, *core.Call, liveArgs) ([]core.Access, error) {
		return []core.Access{{Scope: core.ScopePlugin, Resource: "live/" + name}}, nil
	}
	return core.NewTool(core.ToolDefinition{Name: name, Description: "Tests " + name + "."}, access, run)
}

func (s *liveSet) Name() string             { return "live" }
func (s *liveSet) Changed() <-chan struct{} { return s.changed }

func (s *liveSet) Tools(context.Context) ([]core.Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("the toolset is closed")
	}
	return append([]core.Tool(nil), s.tools...), nil
}

func (s *liveSet) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.changed)
	}
	return nil
}

// change replaces the last tool, stale or fresh, by the other.
func (s *liveSet) change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	last := len(s.tools) - 1
	next := "fresh"
	if s.tools[last].Definition().Name == next {
		next = "stale"
	}
	s.tools = append(append([]core.Tool(nil), s.tools[:last]...), liveTool(next, runText(next)))
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *liveSet) runChange(context.Context, *core.Call, liveArgs) (core.Result, error) {
	s.change()
	return core.TextResult("the tools have changed"), nil
}

func runText(text string) func(context.Context, *core.Call, liveArgs) (core.Result, error) {
	return func(context.Context, *core.Call, liveArgs) (core.Result, error) { return core.TextResult(text), nil }
}

func runStream(ctx context.Context, call *core.Call, _ liveArgs) (core.Result, error) {
	for i := range 4 {
		if ctx.Err() != nil {
			return core.Result{}, ctx.Err()
		}
		fmt.Fprintf(call.Output, "piece %d\n", i+1)
	}
	return core.Result{}, nil
}

func runAsk(ctx context.Context, call *core.Call, in liveArgs) (core.Result, error) {
	fmt.Fprintln(call.Output, "about to ask")
	a, err := call.Ask(ctx, core.Question{
		Kind: core.QuestionConfirm, Title: in.Text, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
	})
	if err != nil {
		return core.Result{}, err
	}
	return core.TextResult(fmt.Sprintf("the answer was %q", a.Choice)), nil
}

func runImage(context.Context, *core.Call, liveArgs) (core.Result, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		return core.Result{}, err
	}
	return core.Result{Content: model.Parts{model.Text{Text: "a grey square"}, model.Image{MediaType: "image/png", Data: b.Bytes()}}}, nil
}

func runHuge(ctx context.Context, call *core.Call, in liveArgs) (core.Result, error) {
	chunk := []byte(strings.Repeat("all work and no play makes a long text\n", 800))
	for left := in.Bytes; left > 0; left -= len(chunk) {
		if ctx.Err() != nil {
			return core.Result{}, ctx.Err()
		}
		if _, err := call.Output.Write(chunk[:min(left, len(chunk))]); err != nil {
			return core.Result{}, err
		}
	}
	return core.Result{}, nil
}

func TestToolsetSuitePassesALiveSet(t *testing.T) {
	calls := map[string][]coretest.SampleCall{
		"stream":     {{}},
		"ask":        {{Args: `{"text":"Continue?"}`}},
		"image":      {{}},
		"huge":       {{Args: `{"bytes":300000}`}},
		"hugeresult": {{Args: `{"bytes":300000}`}},
		"hang":       {{Blocks: true}},
		"change":     {{Alone: true}},
		"stale":      {{}},
		"fresh":      {{}},
	}
	for name, samples := range calls {
		for i := range samples {
			samples[i].Accesses = []core.Access{{Scope: core.ScopePlugin, Resource: "live/" + name}}
		}
	}
	coretest.TestToolset(t, func(t *testing.T) core.Toolset { return newLiveSet(t) }, coretest.ToolsetOptions{
		Calls:  calls,
		Answer: core.Answer{Choice: core.ChoiceYes},
		Change: func(_ context.Context, set core.Toolset) error {
			set.(*liveSet).change()
			return nil
		},
	})
}
