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

// These tests run the suites over implementations that each break one rule, in a
// separate process, and look for the rule in the output.

const brokenVar = "AGENT_CORETEST_BROKEN"

// runBroken runs a test of this binary, which must fail, and returns its output.
func runBroken(t *testing.T, test, which string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), brokenVar+"="+which, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the suite passed (error: %v):\n%s", err, out)
	}
	return string(out)
}

// toyTool is a tool whose methods can be replaced.
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

// breakage breaks one rule; finds is part of the expected message.
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
		}, "differs between lists"},
		"undeclared access": {accesses(core.Access{Scope: core.ScopeShell, Resource: "rm"}), "is not declared by the sample"},
		"sets Inside":       {accesses(core.Access{Scope: core.ScopeRead, Resource: "a", Inside: true}), "only the session may"},
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
		"ignores its context": {runsAs(func(ctx context.Context, _ *core.Call) (core.Result, error) {
			if ctx.Err() != nil {
				time.Sleep(time.Minute)
			}
			return core.TextResult("done"), nil
		}), "with a cancelled context did not return within"},
		"unbuffered channel": {func() *toySet { return &toySet{changed: make(chan struct{})} }, "has the capacity 0, expected 1"},
		"channel left open":  {func() *toySet { return &toySet{changed: make(chan struct{}, 1)} }, "not closed after Close"},
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
		}, "a goroutine is left after Close"},
	}
}

// TestBrokenToolset is the child process of TestToolsetSuiteFinds.
func TestBrokenToolset(t *testing.T) {
	b, ok := breakages()[os.Getenv(brokenVar)]
	if !ok {
		t.Skip("run by TestToolsetSuiteFinds in a child process")
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
				t.Errorf("the suite does not report %q:\n%s", b.finds, out)
			}
		})
	}
}

func TestToolsetSuitePassesAToy(t *testing.T) {
	coretest.TestToolset(t, func(*testing.T) core.Toolset { return &toySet{} }, coretest.ToolsetOptions{
		Calls: map[string][]coretest.SampleCall{"toy": {{}}},
	})
}

// hasty is the user of an asker that does not wait for one.
type hasty struct{}

func (hasty) Shown(context.Context) (string, error) { return "Question number 1?", nil }
func (hasty) Answer(core.Choice) error              { return nil }

// brokenAsker breaks one rule; finds is part of the expected message.
type brokenAsker struct {
	ask   coretest.Asker
	finds string
}

func brokenAskers() map[string]brokenAsker {
	return map[string]brokenAsker{
		"always yes":  {coretest.AlwaysAnswer(core.ChoiceOnce), "a dismissed question returned \"once\""},
		"always deny": {coretest.AlwaysAnswer(core.ChoiceDeny), `the user picked "once", Ask returned "deny"`},
	}
}

// TestBrokenAsker is the child process of TestAskerSuiteFinds.
func TestBrokenAsker(t *testing.T) {
	b, ok := brokenAskers()[os.Getenv(brokenVar)]
	if !ok {
		t.Skip("run by TestAskerSuiteFinds in a child process")
	}
	coretest.TestAsker(t, func(*testing.T) (core.Asker, coretest.User) { return b.ask, hasty{} })
}

func TestAskerSuiteFinds(t *testing.T) {
	for name, b := range brokenAskers() {
		t.Run(name, func(t *testing.T) {
			if out := runBroken(t, "TestBrokenAsker", name); !strings.Contains(out, b.finds) {
				t.Errorf("the suite does not report %q:\n%s", b.finds, out)
			}
		})
	}
}
