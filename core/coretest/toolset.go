package coretest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// ToolsetOptions describe the toolset under test to [TestToolset].
type ToolsetOptions struct {
	// Calls are samples by the tool's name. Every tool needs at least one.
	Calls map[string][]SampleCall
	// Env creates the environment for the calls. Nil means one that refuses
	// everything, for tools that need none.
	Env func(t *testing.T) core.Environment
	// Answer is the answer to all questions of tools.
	Answer core.Answer
	// Change changes the toolset's list of tools; nil if it never changes.
	Change func(ctx context.Context, set core.Toolset) error
	// Bound is the time within which Close, and a cancelled call, must return;
	// 0 = 10 s.
	Bound time.Duration
}

// SampleCall is a call of a tool and its expected result.
type SampleCall struct {
	Args string // JSON that matches the schema; empty = {}
	// Accesses are all that the call may declare.
	Accesses []core.Access
	Want     core.ErrorCode // of the result; empty = success
	Blocks   bool           // it runs until it is cancelled
	Alone    bool           // it cannot run in parallel with others
}

// TestToolset checks a toolset against the contracts of [core.Toolset] and
// [core.Tool]. The factory returns a new one each time; the suite closes it. It
// checks for leaked goroutines and, on Linux, child processes: nothing else in
// the test binary may start any at the same time.
func TestToolset(t *testing.T, factory func(t *testing.T) core.Toolset, opts ToolsetOptions) {
	t.Helper()
	if opts.Bound <= 0 {
		opts.Bound = 10 * time.Second
	}
	s := &toolsetSuite{factory, opts}
	for _, c := range []struct {
		name string
		test func(t *testing.T, set core.Toolset)
	}{
		{"definitions", s.definitions},
		{"access", s.access},
		{"run", s.run},
		{"cancel", s.cancel},
		{"concurrent", s.concurrent},
		{"changed", s.changed},
		{"close", s.close},
		{"close while calls run", s.closeWhileRunning},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkLeaks(t)
			set := factory(t)
			t.Cleanup(func() { s.bounded(t, "Close", func() { _ = set.Close() }) })
			c.test(t, set)
		})
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

type toolsetSuite struct {
	factory func(t *testing.T) core.Toolset
	opts    ToolsetOptions
}

// checkLeaks fails the test if it leaves a goroutine or a process behind. Call it
// before any clean-up that ends one is registered.
func checkLeaks(t *testing.T) {
	t.Helper()
	before, beforeProcs := goleak.IgnoreCurrent(), children()
	t.Cleanup(func() {
		if err := goleak.Find(before); err != nil {
			t.Errorf("a goroutine is left after Close: %v", err)
		}
		for pid, name := range children() {
			if _, ok := beforeProcs[pid]; !ok {
				t.Errorf("a child process is left after Close: %d (%s)", pid, name)
			}
		}
	})
}

// bounded reports whether f returned in time, and fails the test if not; what f
// sets must not be read then.
func (s *toolsetSuite) bounded(t *testing.T, what string, f func()) bool {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(s.opts.Bound)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		t.Errorf("%s did not return within %s", what, s.opts.Bound)
		return false
	}
}

func (s *toolsetSuite) env(t *testing.T) core.Environment {
	if s.opts.Env == nil {
		return refusingEnv{}
	}
	return s.opts.Env(t)
}

// tools returns the tools, and fails the test if one has no sample.
func (s *toolsetSuite) tools(t *testing.T, set core.Toolset) []core.Tool {
	t.Helper()
	tools, err := set.Tools(t.Context())
	if err != nil {
		t.Fatalf("Tools: %v", err)
	}
	if len(tools) == 0 {
		t.Fatal("Tools returned none: there is nothing to test")
	}
	for _, tool := range tools {
		if name := tool.Definition().Name; len(s.opts.Calls[name]) == 0 {
			t.Fatalf("tool %q has no sample in ToolsetOptions.Calls", name)
		}
	}
	return tools
}

// eachSample calls f for every sample of every tool.
func (s *toolsetSuite) eachSample(t *testing.T, tools []core.Tool, f func(t *testing.T, c *sample)) {
	for _, tool := range tools {
		name := tool.Definition().Name
		for i, call := range s.opts.Calls[name] {
			if call.Args == "" {
				call.Args = "{}"
			}
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				f(t, &sample{SampleCall: call, suite: s, tool: tool, env: s.env(t), label: name + " " + call.Args})
			})
		}
	}
}

func (s *toolsetSuite) definitions(t *testing.T, set core.Toolset) {
	if name, again := set.Name(), set.Name(); name == "" || name != again {
		t.Errorf("Name is %q and then %q, expected a constant name", name, again)
	}
	first := s.tools(t, set)
	again := s.tools(t, set)
	if len(first) != len(again) {
		t.Fatalf("Tools returned %d tools and then %d, without a change", len(first), len(again))
	}
	seen := make(map[string]bool)
	before := make([]core.ToolDefinition, len(first))
	for i, tool := range first {
		d := tool.Definition()
		before[i] = cloneDefinition(d)
		if seen[d.Name] {
			t.Errorf("tool %q is listed twice", d.Name)
		}
		seen[d.Name] = true
		checkDefinition(t, d)
		if other := again[i].Definition(); !reflect.DeepEqual(d, other) {
			t.Errorf("definition of %q differs between lists:\n%+v\n%+v", d.Name, d, other)
		}
	}
	s.eachSample(t, first, func(t *testing.T, c *sample) {
		if !c.Blocks && !c.Alone {
			c.run(t, t.Context())
		}
	})
	for i, tool := range first {
		if d := tool.Definition(); !reflect.DeepEqual(d, before[i]) {
			t.Errorf("definition of %q is not immutable:\n%+v\n%+v", d.Name, before[i], d)
		}
	}
}

func cloneDefinition(d core.ToolDefinition) core.ToolDefinition {
	d.Schema = append(json.RawMessage(nil), d.Schema...)
	return d
}

func checkDefinition(t *testing.T, d core.ToolDefinition) {
	t.Helper()
	if !toolName.MatchString(d.Name) {
		t.Errorf("tool name %q: expected 1 to 64 letters, digits, _ or -", d.Name)
	}
	if strings.TrimSpace(d.Description) == "" {
		t.Errorf("tool %q has no description for the model", d.Name)
	}
	if d.Timeout < 0 {
		t.Errorf("tool %q has a timeout of %s", d.Name, d.Timeout)
	}
	var root struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(d.Schema, &root); err != nil || root.Type != "object" {
		t.Errorf(`schema of %q: expected a JSON object with "type":"object" (error: %v): %s`, d.Name, err, d.Schema)
		return
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(d.Schema, &schema)
	if err == nil {
		_, err = schema.Resolve(nil)
	}
	if err != nil {
		t.Errorf("schema of %q cannot be used: %v", d.Name, err)
	}
}

func (s *toolsetSuite) access(t *testing.T, set core.Toolset) {
	tools := s.tools(t, set)
	entries := make([]core.Entry, len(tools))
	for i, tool := range tools {
		entries[i] = core.Entry{ModelName: tool.Definition().Name, Source: set.Name(), Tool: tool}
	}
	table := core.NewSnapshot(1, entries)
	s.eachSample(t, tools, func(t *testing.T, c *sample) {
		entry, _ := table.Lookup(c.tool.Definition().Name)
		corrected, _, err := entry.Coerce(json.RawMessage(c.Args))
		if err != nil {
			t.Fatalf("the sample's arguments do not match the schema: %v", err)
		}
		c.Args = string(corrected)
		watched := &watchedEnv{Environment: c.env}
		c.env = watched
		first := c.accesses(t)
		if again := c.accesses(t); !reflect.DeepEqual(first, again) {
			t.Errorf("Access returns %v and then %v for the same call", first, again)
		}
		if done := watched.changes(); len(done) > 0 {
			t.Errorf("Access is not pure: it called %v", done)
		}
		declared := make(map[string]bool)
		for _, a := range c.Accesses {
			declared[a.Key()] = true
		}
		for _, a := range first {
			if a.Inside {
				t.Errorf("access %v sets Inside; only the session may", a)
			}
			if !declared[a.Key()] {
				t.Errorf("access %+v is not declared by the sample: %+v", a, c.Accesses)
			}
		}
	})
}

func (s *toolsetSuite) run(t *testing.T, set core.Toolset) {
	s.eachSample(t, s.tools(t, set), func(t *testing.T, c *sample) {
		if !c.Blocks {
			c.run(t, t.Context())
		}
	})
}

// cancel cancels every call before it starts and while it runs. It may return any
// result, but it must return.
func (s *toolsetSuite) cancel(t *testing.T, set core.Toolset) {
	s.eachSample(t, s.tools(t, set), func(t *testing.T, c *sample) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.bounded(t, "a call of "+c.label+" with a cancelled context", func() { c.start(t, ctx, nil) })

		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		// The first output cancels the call; without output it is cancelled
		// later. Either way it must return.
		late := time.AfterFunc(50*time.Millisecond, cancel)
		defer late.Stop()
		returned := s.bounded(t, "a call of "+c.label+" that was cancelled", func() { c.start(t, ctx, cancel) })
		if returned && c.Blocks && ctx.Err() == nil {
			t.Errorf("%s returned without being cancelled", c.label)
		}
	})
}

func (s *toolsetSuite) concurrent(t *testing.T, set core.Toolset) {
	const each = 4
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, tool := range s.tools(t, set) {
		name := tool.Definition().Name
		for _, call := range s.opts.Calls[name] {
			if call.Blocks || call.Alone {
				continue
			}
			if call.Args == "" {
				call.Args = "{}"
			}
			env := s.env(t)
			for range each {
				wg.Go(func() {
					c := &sample{SampleCall: call, suite: s, tool: tool, env: env, label: name + " " + call.Args}
					_ = tool.Definition()
					c.run(t, t.Context())
				})
			}
		}
	}
	for range each {
		wg.Go(func() {
			if _, err := set.Tools(t.Context()); err != nil {
				t.Errorf("Tools during calls: %v", err)
			}
		})
	}
}

func (s *toolsetSuite) changed(t *testing.T, set core.Toolset) {
	ch := set.Changed()
	if ch != set.Changed() {
		t.Error("Changed returns a different channel each time")
	}
	if ch == nil && s.opts.Change == nil {
		return // it never changes
	}
	if cap(ch) != 1 {
		t.Errorf("the channel of Changed has the capacity %d, expected 1", cap(ch))
	}
	if s.opts.Change != nil {
		before := s.tools(t, set)
		s.change(t, set)
		timer := time.NewTimer(s.opts.Bound)
		defer timer.Stop()
		select {
		case _, ok := <-ch:
			if !ok {
				t.Error("Changed is closed before Close")
			}
		case <-timer.C:
			t.Errorf("Changed sent no value within %s", s.opts.Bound)
		}
		if after := s.tools(t, set); sameNames(before, after) {
			t.Error("Tools returns the same tools after a change")
		}
		s.change(t, set) // without a receiver: neither may block
		s.change(t, set)
	}
	s.bounded(t, "Close", func() { _ = set.Close() })
	for range 2 { // one value may be buffered
		select {
		case _, ok := <-ch:
			if !ok {
				return
			}
		default:
			t.Error("Changed is not closed after Close")
			return
		}
	}
	t.Error("Changed sends more than one value after Close")
}

func (s *toolsetSuite) change(t *testing.T, set core.Toolset) {
	t.Helper()
	var err error
	if !s.bounded(t, "ToolsetOptions.Change", func() { err = s.opts.Change(t.Context(), set) }) {
		t.FailNow()
	}
	if err != nil {
		t.Fatalf("ToolsetOptions.Change: %v", err)
	}
}

func sameNames(a, b []core.Tool) bool {
	names := func(tools []core.Tool) map[string]bool {
		m := make(map[string]bool)
		for _, t := range tools {
			m[t.Definition().Name] = true
		}
		return m
	}
	return reflect.DeepEqual(names(a), names(b))
}

func (s *toolsetSuite) close(t *testing.T, set core.Toolset) {
	tools := s.tools(t, set)
	for i := range 3 {
		s.bounded(t, "Close", func() {
			if err := set.Close(); err != nil {
				t.Errorf("Close number %d: %v", i+1, err)
			}
		})
	}
	s.bounded(t, "Tools after Close", func() { _, _ = set.Tools(t.Context()) })
	s.eachSample(t, tools, func(t *testing.T, c *sample) {
		if !c.Blocks {
			s.bounded(t, "a call of "+c.label+" after Close", func() { c.start(t, t.Context(), nil) })
		}
	})
}

func (s *toolsetSuite) closeWhileRunning(t *testing.T, set core.Toolset) {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	alive := make(chan struct{}, 1)
	running := 0
	for _, tool := range s.tools(t, set) {
		name := tool.Definition().Name
		for _, call := range s.opts.Calls[name] {
			if !call.Blocks {
				continue
			}
			running++
			c := &sample{SampleCall: call, suite: s, tool: tool, env: s.env(t), label: name + " " + call.Args}
			wg.Go(func() {
				c.start(t, ctx, func() {
					select {
					case alive <- struct{}{}:
					default:
					}
				})
			})
		}
	}
	if running > 0 {
		select { // close while a call runs, if it shows that it does
		case <-alive:
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.bounded(t, "Close while calls run", func() { _ = set.Close() })
	cancel() // for in-process tools, which only the context ends
	s.bounded(t, "a call that was running when its toolset was closed", wg.Wait)
}

// sample is one call of a tool under test.
type sample struct {
	SampleCall
	suite *toolsetSuite
	tool  core.Tool
	env   core.Environment
	label string
}

// call returns the call as a session would; active is called for all output and
// progress.
func (c *sample) call(active func()) (*core.Call, *lockedWriter) {
	out := &lockedWriter{active: active}
	name := c.tool.Definition().Name
	return &core.Call{
		ID: "sample", Name: name, Args: json.RawMessage(c.Args), Env: c.env,
		Session:  core.SessionInfo{ID: "coretest", Dir: c.env.Info().Dir, CommandTimeout: 10 * time.Second, MaxCommandTimeout: time.Minute},
		Output:   out,
		Progress: func(core.Progress) { out.signal() },
		Ask: func(ctx context.Context, _ core.Question) (core.Answer, error) {
			return c.suite.opts.Answer, ctx.Err()
		},
	}, out
}

// accesses returns what the call would touch.
func (c *sample) accesses(t *testing.T) (list []core.Access) {
	t.Helper()
	call, _ := c.call(nil)
	err := isolated(t, "Access of "+c.label, func() (err error) {
		list, err = c.tool.Access(t.Context(), call)
		return err
	})
	if err != nil {
		t.Errorf("Access of %s: %v", c.label, err)
	}
	return list
}

// start runs the call with the accesses that it declares, and reports a panic.
func (c *sample) start(t *testing.T, ctx context.Context, active func()) (res core.Result, text string, err error) {
	t.Helper()
	call, out := c.call(active)
	var grants []core.Grant
	err = isolated(t, "Access of "+c.label, func() error {
		list, err := c.tool.Access(ctx, call)
		for _, a := range list {
			if a.Scope.IsFile() {
				to, rerr := c.env.Resolve(ctx, a.Resource)
				if rerr != nil {
					return rerr
				}
				a.Resource, a.Inside = to.Path, to.Inside
			}
			grants = append(grants, core.Grant{Access: a})
		}
		return err
	})
	if err != nil {
		return res, "", err
	}
	call.Env = core.Restrict(c.env, grants, nil)
	err = isolated(t, "a call of "+c.label, func() (err error) {
		res, err = c.tool.Run(ctx, call)
		return err
	})
	return res, out.text() + model.Parts(res.Content).Text(), err
}

// run runs the call and checks its result.
func (c *sample) run(t *testing.T, ctx context.Context) {
	t.Helper()
	var res core.Result
	var text string
	var err error
	if !c.suite.bounded(t, "a call of "+c.label, func() { res, text, err = c.start(t, ctx, nil) }) {
		return
	}
	if err != nil {
		res.Code = core.CodeUnknown // as in a session
		text = err.Error()
	}
	if res.Code != c.Want {
		t.Errorf("%s returned code %q, expected %q; text: %.300q", c.label, res.Code, c.Want, text)
	}
	if res.Code != "" && strings.TrimSpace(text) == "" {
		t.Errorf("%s failed with code %s and no message", c.label, res.Code)
	}
	if res.Structured != nil && !json.Valid(res.Structured) {
		t.Errorf("%s: Structured is not valid JSON: %.100q", c.label, res.Structured)
	}
	for key, raw := range res.Meta {
		if !json.Valid(raw) {
			t.Errorf("%s: Meta[%q] is not valid JSON: %.100q", c.label, key, raw)
		}
	}
	for i, p := range res.Content {
		img, isImage := p.(model.Image)
		if p == nil || isImage && (img.MediaType == "" || len(img.Data) == 0) {
			t.Errorf("%s: part %d is nil, or an image without type or data: %T", c.label, i, p)
		}
	}
}

// isolated calls f and turns a panic into a failure of the test.
func isolated(t *testing.T, what string, f func() error) (err error) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("%s panicked: %v\n%s", what, v, debug.Stack())
			err = errors.New("panic")
		}
	}()
	return f()
}

// lockedWriter keeps the beginning of what is written.
type lockedWriter struct {
	active func()

	mu   sync.Mutex
	head []byte
}

var _ io.Writer = (*lockedWriter)(nil)

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.head = append(w.head, p[:min(len(p), 4096-min(4096, len(w.head)))]...)
	w.mu.Unlock()
	w.signal()
	return len(p), nil
}

func (w *lockedWriter) signal() {
	if w.active != nil {
		w.active()
	}
}

func (w *lockedWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.head)
}
