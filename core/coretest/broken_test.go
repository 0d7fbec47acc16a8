package coretest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
)

// A suite that finds nothing is worse than none. These tests run it over
// implementations that each break one rule, in a process of their own, and
// look for the rule in what it prints.

const brokenVar = "AGENT_CORETEST_BROKEN"

// runBroken runs a test of this binary that must fail and returns its output.
func runBroken(t *testing.T, test, which string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), brokenVar+"="+which, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the suite found nothing wrong (error: %v):\n%s", err, out)
	}
	return string(out)
}

// toyTool is a tool in which everything can be replaced.
type toyTool struct {
	definition func() core.ToolDefinition
	access     func(call *core.Call) ([]core.Access, error)
	run        func(ctx context.Context, call *core.Call) (core.Result, error)
}

func (t *toyTool) Definition() core.ToolDefinition {
	if t.definition != nil {
		return t.definition()
	}
	return core.ToolDefinition{Name: "toy", Description: "Does little.", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (t *toyTool) Access(_ context.Context, call *core.Call) ([]core.Access, error) {
	if t.access != nil {
		return t.access(call)
	}
	return nil, nil
}

func (t *toyTool) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	if t.run != nil {
		return t.run(ctx, call)
	}
	return core.TextResult("done"), nil
}

// toySet is a toolset of one toy.
type toySet struct {
	tool    toyTool
	changed chan struct{}
	close   func() error
}

func (s *toySet) Name() string                               { return "toys" }
func (s *toySet) Tools(context.Context) ([]core.Tool, error) { return []core.Tool{&s.tool}, nil }
func (s *toySet) Changed() <-chan struct{}                   { return s.changed }
func (s *toySet) Close() error {
	if s.close != nil {
		return s.close()
	}
	return nil
}

// breakage breaks one rule; the suite must say what.
type breakage struct {
	set   func() *toySet
	finds string
}

func definedAs(change func(d *core.ToolDefinition)) func() *toySet {
	return func() *toySet {
		d := (&toyTool{}).Definition()
		change(&d)
		return &toySet{tool: toyTool{definition: func() core.ToolDefinition { return d }}}
	}
}

func runsAs(run func(ctx context.Context, call *core.Call) (core.Result, error)) func() *toySet {
	return func() *toySet { return &toySet{tool: toyTool{run: run}} }
}

func accesses(list ...core.Access) func() *toySet {
	return func() *toySet {
		return &toySet{tool: toyTool{access: func(*core.Call) ([]core.Access, error) { return list, nil }}}
	}
}

func breakages() map[string]breakage {
	return map[string]breakage{
		"schema of no object": {definedAs(func(d *core.ToolDefinition) { d.Schema = json.RawMessage(`true`) }), `expected a JSON object with "type":"object"`},
		"schema that cannot be resolved": {definedAs(func(d *core.ToolDefinition) {
			d.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)
		}), "cannot be used"},
		"no description": {definedAs(func(d *core.ToolDefinition) { d.Description = " " }), "has no description"},
		"another definition each time": {func() *toySet {
			n := 0
			return &toySet{tool: toyTool{definition: func() core.ToolDefinition {
				d := (&toyTool{}).Definition()
				n++
				d.Description = strings.Repeat("x", n)
				return d
			}}}
		}, "differs from one list to the next"},
		"undeclared access": {accesses(core.Access{Scope: core.ScopeShell, Resource: "rm"}), "more than the sample declares"},
		"says inside":       {accesses(core.Access{Scope: core.ScopeRead, Resource: "a", Inside: true}), "only the pipeline may"},
		"access that writes": {func() *toySet {
			return &toySet{tool: toyTool{access: func(call *core.Call) ([]core.Access, error) {
				_ = call.Env.Files().Remove(context.Background(), "/a")
				return nil, nil
			}}}
		}, "Access is not pure: it called [Remove /a "},
		"panic": {runsAs(func(context.Context, *core.Call) (core.Result, error) { panic("boo") }), "panicked: boo"},
		"code without message": {runsAs(func(context.Context, *core.Call) (core.Result, error) {
			return core.Result{Code: core.CodeIO}, nil
		}), "failed with code IO_ERROR and no message"},
		"structured result of no JSON": {runsAs(func(context.Context, *core.Call) (core.Result, error) {
			return core.Result{Structured: json.RawMessage("{")}, nil
		}), "Structured is not valid JSON"},
		"deaf to its context": {runsAs(func(ctx context.Context, _ *core.Call) (core.Result, error) {
			if ctx.Err() != nil {
				time.Sleep(time.Minute)
			}
			return core.TextResult("done"), nil
		}), "with a context that is done did not return within"},
		"channel without room": {func() *toySet { return &toySet{changed: make(chan struct{})} }, "holds 0 values, expected 1"},
		"channel left open":    {func() *toySet { return &toySet{changed: make(chan struct{}, 1)} }, "open and silent after Close"},
		"second Close fails": {func() *toySet {
			n := 0
			return &toySet{close: func() error {
				if n++; n > 1 {
					return errors.New("again?")
				}
				return nil
			}}
		}, "Close number 2: again?"},
		"goroutine left": {func() *toySet {
			go func() { select {} }()
			return &toySet{}
		}, "after Close a goroutine is left"},
	}
}

// TestBrokenToolset is the far side of TestToolsetSuiteFinds.
func TestBrokenToolset(t *testing.T) {
	b, ok := breakages()[os.Getenv(brokenVar)]
	if !ok {
		t.Skip("it is run by TestToolsetSuiteFinds, in a process of its own")
	}
	coretest.TestToolset(t, func(*testing.T) core.Toolset { return b.set() }, coretest.ToolsetOptions{
		Calls: map[string][]coretest.SampleCall{"toy": {{}}}, Bound: 100 * time.Millisecond,
	})
}

func TestToolsetSuiteFinds(t *testing.T) {
	for name, b := range breakages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := runBroken(t, "TestBrokenToolset", name); !strings.Contains(out, b.finds) {
				t.Errorf("the suite does not say %q:\n%s", b.finds, out)
			}
		})
	}
}

func TestToolsetSuitePassesAToy(t *testing.T) {
	coretest.TestToolset(t, func(*testing.T) core.Toolset { return &toySet{} }, coretest.ToolsetOptions{
		Calls: map[string][]coretest.SampleCall{"toy": {{}}},
	})
}

// hasty is a person before an asker that waits for none.
type hasty struct{}

func (hasty) Shown(context.Context) (string, error) { return "Question number 1?", nil }
func (hasty) Answer(core.Choice) error              { return nil }

// brokenAsker breaks one rule; the suite must say what.
type brokenAsker struct {
	ask   coretest.Asker
	finds string
}

func brokenAskers() map[string]brokenAsker {
	return map[string]brokenAsker{
		"always yes":  {coretest.AlwaysAnswer(core.ChoiceOnce), "a dismissed question came to \"once\""},
		"always deny": {coretest.AlwaysAnswer(core.ChoiceDeny), `the person picked "once", Ask returned "deny"`},
	}
}

// TestBrokenAsker is the far side of TestAskerSuiteFinds.
func TestBrokenAsker(t *testing.T) {
	b, ok := brokenAskers()[os.Getenv(brokenVar)]
	if !ok {
		t.Skip("it is run by TestAskerSuiteFinds, in a process of its own")
	}
	coretest.TestAsker(t, func(*testing.T) (core.Asker, coretest.Person) { return b.ask, hasty{} })
}

func TestAskerSuiteFinds(t *testing.T) {
	for name, b := range brokenAskers() {
		t.Run(name, func(t *testing.T) {
			if out := runBroken(t, "TestBrokenAsker", name); !strings.Contains(out, b.finds) {
				t.Errorf("the suite does not say %q:\n%s", b.finds, out)
			}
		})
	}
}
