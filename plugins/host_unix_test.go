//go:build !windows

package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/plugins"
)

// outcome is the outcome of a call.
type outcome struct {
	core.Result
	text     string // streamed and returned
	progress []core.Progress
	asked    []core.Question
}

// call calls a tool of a plugin and answers its questions with answer.
func call(t testing.TB, ctx context.Context, p *plugins.Plugin, tool string, args any, answer core.Choice) (outcome, error) {
	t.Helper()
	tools, err := p.Tools(ctx)
	if err != nil {
		return outcome{}, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range tools {
		if tl.Definition().Name != tool {
			continue
		}
		var o outcome
		var live bytes.Buffer
		var mu sync.Mutex
		o.Result, err = tl.Run(ctx, &core.Call{
			ID: "1", Name: tool, Args: raw, Output: &live,
			Progress: func(p core.Progress) { mu.Lock(); defer mu.Unlock(); o.progress = append(o.progress, p) },
			Ask: func(ctx context.Context, q core.Question) (core.Answer, error) {
				mu.Lock()
				o.asked = append(o.asked, q)
				mu.Unlock()
				if answer == "" {
					<-ctx.Done()
					return core.Answer{}, ctx.Err()
				}
				return core.Answer{Choice: answer}, nil
			},
		})
		o.text = live.String() + model.Parts(o.Content).Text()
		return o, err
	}
	t.Fatalf("no tool %q", tool)
	return outcome{}, nil
}

// must calls a tool that has to succeed.
func must(t testing.TB, p *plugins.Plugin, tool string, args any) outcome {
	t.Helper()
	o, err := call(t, t.Context(), p, tool, args, core.ChoiceYes)
	if err != nil || o.Code != "" {
		t.Fatalf("%s %v: %v, %s %s", tool, args, err, o.Code, o.text)
	}
	return o
}

type echoArgs struct {
	Text string `json:"text"`
}

func TestCall(t *testing.T) {
	_, p := openPlugin(t, "good")
	if got := must(t, p, "echo", echoArgs{"hello"}); got.text != "hello" || len(got.progress) != 1 {
		t.Errorf("echo: %q, progress %v", got.text, got.progress)
	}
	image := must(t, p, "image", struct{}{})
	if img, ok := image.Content[len(image.Content)-1].(model.Image); !ok || img.MediaType != "image/png" || string(image.Structured) != `{"n":1}` {
		t.Errorf("image: %+v", image.Result)
	}
	pid := must(t, p, "misbehave", misbehavior{What: "pid"}).text
	if again := must(t, p, "misbehave", misbehavior{What: "pid"}).text; pid != again {
		t.Errorf("two calls ran in two processes: %s, %s", pid, again)
	}
}

func TestConfirm(t *testing.T) {
	_, p := openPlugin(t, "good")
	for choice, want := range map[core.Choice]string{core.ChoiceYes: "true", core.ChoiceNo: "false", core.ChoiceOnce: "false"} {
		o, err := call(t, t.Context(), p, "misbehave", misbehavior{What: "ask"}, choice)
		if err != nil || !strings.HasPrefix(o.text, want) {
			t.Fatalf("%s: %v %q, want %s", choice, err, o.text, want)
		}
		if q := o.asked[0]; q.Title != "The plugin good asks: Shall I[2J?" || q.Detail != "It is far." || q.Kind != core.QuestionConfirm {
			t.Errorf("the question is %+v", q)
		}
	}
	o, err := call(t, t.Context(), p, "misbehave", misbehavior{What: "ask and die"}, "") // no answer: the question must be withdrawn
	if err != nil || o.Code == "" || !strings.Contains(o.text, "crashed (exit code 4)") {
		t.Errorf("a question of a dead plugin: %v %q", err, o.text)
	}
}

func TestNothingStartsBeforeACall(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:good", nil)
	first := plugins.Open(t.Context(), pl.options())
	if _, err := only(t, first).Tools(t.Context()); err != nil { // starts it, as its description is not known
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	p := only(t, open(t, pl.options()))
	tools, err := p.Tools(t.Context())
	if err != nil || len(tools) != 6 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	if log, _ := os.ReadDir("/proc"); len(log) > 0 {
		if got := children(t); len(got) != 0 {
			t.Errorf("listing the tools started %v", got)
		}
	}
}

// children lists the plugin processes that this one started.
func children(t testing.TB) []string {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	if err != nil {
		t.Skip("the kernel does not list children")
	}
	var out []string
	for _, pid := range strings.Fields(string(list)) {
		name, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		if bytes.Contains(name, []byte("plugin.exe")) {
			out = append(out, pid)
		}
	}
	return out
}

func TestAccess(t *testing.T) {
	_, p := openPlugin(t, "good")
	tools, err := p.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	access := func(name, args string) string {
		for _, tl := range tools {
			if tl.Definition().Name == name {
				list, err := tl.Access(t.Context(), &core.Call{Args: json.RawMessage(args)})
				if err != nil {
					return err.Error()
				}
				var out []string
				for _, a := range list {
					out = append(out, string(a.Scope)+" "+a.Resource)
				}
				return strings.Join(out, ", ")
			}
		}
		return "no such tool"
	}
	for _, tt := range []struct{ tool, args, want string }{
		{"echo", `{"text": "x"}`, "plugin good/echo"},
		{"touch", `{"what": "", "path": "a/b"}`, "plugin good/touch, fs-read a/b, network api.example"},
		{"touch", `{"what": "", "dirs": ["a", "b"], "url": "https://Example.org:8443/x"}`, "plugin good/touch, fs-write a, fs-write b, network example.org:8443, network api.example"},
		{"touch", `{"what": "", "path": 3}`, "plugin good/touch, unknown good/touch: fs-read /path"},
		{"touch", `{"what": "", "dirs": ["a", 3]}`, "plugin good/touch, unknown good/touch: fs-write /dirs"},
		{"touch", `{"what": "", "url": "no host at all"}`, "plugin good/touch, network , unknown good/touch: network /url"},
	} {
		if got := access(tt.tool, tt.args); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.args, got, tt.want)
		}
	}
}

func TestEnvironmentIsFiltered(t *testing.T) {
	for name, value := range map[string]string{"ANTHROPIC_API_KEY": "sk-1", "SOME_VALUE": "v1", "TEST_ENV": "v2", "TEST_SECRET": "hush-hush"} {
		t.Setenv(name, value)
	}
	pl := newPlace(t)
	pl.link(t, "good", "good:good", func(s map[string]any) {
		s["manifest"] = map[string]any{"env": []string{"TEST_ENV"}, "secrets": []string{"TEST_SECRET"}}
	})
	h := open(t, pl.options())
	p := only(t, h)
	env := must(t, p, "misbehave", misbehavior{What: "environment"}).text
	for _, want := range []string{"TEST_ENV=v2", "TEST_SECRET=hush-hush", "PATH="} {
		if !strings.Contains(env, want) {
			t.Errorf("the plugin lacks %s", want)
		}
	}
	for _, not := range []string{"ANTHROPIC", "SOME_VALUE"} {
		if strings.Contains(env, not) {
			t.Errorf("the plugin sees %s", not)
		}
	}
	must2 := func(w string) { _, _ = call(t, t.Context(), p, "misbehave", misbehavior{What: w}, "") }
	must2("print")
	waitFor(t, "the log", func() bool {
		var log bytes.Buffer
		if err := plugins.ReadLog(&log, plugins.LogDir(pl.home), "good", 1<<20); err != nil {
			t.Fatal(err)
		}
		text := log.String()
		return strings.Contains(text, "a line on stdout") && strings.Contains(text, "a line on stderr with [redacted]")
	})
	if got := h.Secrets(); len(got) != 1 || got[0] != "hush-hush" {
		t.Errorf("the host's secrets are %q", got)
	}
	if in := must(t, p, "misbehave", misbehavior{What: "stdin"}).text; !strings.HasPrefix(in, "pipe:") {
		t.Errorf("the plugin's stdin is %s, want a pipe", in)
	}
}

// waitFor waits until done returns true.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func TestCommands(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:good", nil)
	h := open(t, pl.options())
	if _, err := only(t, h).Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := h.Commands()
	if len(list) != 1 || list[0].Name != "greet" || list[0].Plugin != "good" || list[0].Args != "NAME" {
		t.Fatalf("commands: %+v", list)
	}
	reply, err := list[0].Run(t.Context(), core.SessionInfo{}, "Ann")
	if err != nil || reply.Prompt != "Say hello to Ann." {
		t.Errorf("greet Ann: %+v %v", reply, err)
	}
	if _, err := list[0].Run(t.Context(), core.SessionInfo{}, ""); err == nil || !strings.Contains(err.Error(), "whom?") {
		t.Errorf("greet nobody: %v", err)
	}
}

func TestDynamicTools(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:dynamic", func(s map[string]any) { s["dynamic"] = true })
	p := only(t, open(t, pl.options()))
	count := func() int {
		tools, err := p.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(tools)
	}
	before := count()
	<-p.Changed() // signalled when the first description was read
	must(t, p, "switch", struct{}{})
	select {
	case <-p.Changed():
	case <-time.After(time.Minute):
		t.Fatal("the change of the tools was not signalled")
	}
	if got := count(); got != before+1 {
		t.Errorf("%d tools, want %d", got, before+1)
	}
}

func TestIdleProcessEnds(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:good", nil)
	o := pl.options()
	o.Idle = time.Millisecond
	p := only(t, open(t, o))
	pid, err := strconv.Atoi(must(t, p, "misbehave", misbehavior{What: "pid"}).text)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the idle process", func() bool { return syscall.Kill(pid, 0) != nil })
	if again := must(t, p, "misbehave", misbehavior{What: "pid"}).text; again == strconv.Itoa(pid) {
		t.Error("the process was not restarted")
	}
}

func TestRebuiltPluginIsUsed(t *testing.T) {
	pl := newPlace(t)
	dir := pl.link(t, "good", "good:good", nil)
	o := pl.options()
	o.Watch = time.Millisecond
	p := only(t, open(t, o))
	pid := must(t, p, "misbehave", misbehavior{What: "pid"}).text
	for len(p.Changed()) > 0 {
		<-p.Changed()
	}
	waiting := make(chan outcome, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // a call that is running while the plugin is replaced
		o, _ := call(t, ctx, p, "wait", struct{}{}, "")
		waiting <- o
	}()
	writeSpec(t, dir, "good", "good:moody", func(s map[string]any) { s["summary"] = "rebuilt" })
	select {
	case <-p.Changed():
	case <-time.After(time.Minute):
		t.Fatal("a changed plugin was not noticed")
	}
	if again := must(t, p, "misbehave", misbehavior{What: "pid"}).text; again == pid {
		t.Error("the call went to the old process")
	}
	tools, err := p.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := tools[4].Definition().Description; !strings.HasSuffix(d, mustPid(t, p)) {
		t.Errorf("the tools are still the old ones: %s", d)
	}
	cancel()
	<-waiting
	old, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the old process", func() bool { return syscall.Kill(old, 0) != nil })
}

func mustPid(t testing.TB, p *plugins.Plugin) string {
	t.Helper()
	return must(t, p, "misbehave", misbehavior{What: "pid"}).text
}

func TestToolset(t *testing.T) {
	factory := func(t *testing.T) core.Toolset {
		pl := newPlace(t)
		pl.link(t, "good", "good:dynamic", func(s map[string]any) { s["dynamic"] = true })
		h := plugins.Open(t.Context(), pl.options())
		p := only(t, h)
		if _, err := p.Tools(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-p.Changed()
		return &owned{p, h, pl}
	}
	plugin := func(tool string) core.Access { return core.Access{Scope: core.ScopePlugin, Resource: "good/" + tool} }
	network := core.Access{Scope: core.ScopeNetwork, Resource: "api.example"}
	coretest.TestToolset(t, factory, coretest.ToolsetOptions{
		Calls: map[string][]coretest.SampleCall{
			"echo":   {{Args: `{"text": "hello"}`, Accesses: []core.Access{plugin("echo")}}},
			"touch":  {{Args: `{"what": ""}`, Accesses: []core.Access{plugin("touch"), network}}},
			"image":  {{Accesses: []core.Access{plugin("image")}}},
			"wait":   {{Accesses: []core.Access{plugin("wait")}, Blocks: true}},
			"switch": {{Accesses: []core.Access{plugin("switch")}, Alone: true}},
			"more":   {{Accesses: []core.Access{plugin("more")}}},
			"misbehave": {
				{Args: `{"what": "pid"}`, Accesses: []core.Access{plugin("misbehave")}},
				{Args: `{"what": "panic"}`, Accesses: []core.Access{plugin("misbehave")}, Want: core.CodeUnknown},
				{Args: `{"what": "ask"}`, Accesses: []core.Access{plugin("misbehave")}},
				{Args: `{"what": "exit"}`, Accesses: []core.Access{plugin("misbehave")}, Want: core.CodeUnknown, Alone: true},
			},
		},
		Answer: core.Answer{Choice: core.ChoiceYes},
		Change: func(ctx context.Context, set core.Toolset) error {
			tools, err := set.Tools(ctx)
			if err != nil {
				return err
			}
			for _, tl := range tools {
				if tl.Definition().Name == "switch" {
					_, err := tl.Run(ctx, &core.Call{Args: json.RawMessage(`{}`), Output: &bytes.Buffer{}})
					return err
				}
			}
			return fmt.Errorf("no switch")
		},
	})
}

// owned closes the host and its processes with the plugin.
type owned struct {
	*plugins.Plugin
	host  *plugins.Host
	place *place
}

func (o *owned) Close() error {
	err := o.host.Close()
	_ = o.place.supervisor.Close()
	return err
}

func TestSingleProgramToolset(t *testing.T) {
	pl := newPlace(t)
	h := open(t, pl.options())
	dir := t.TempDir()
	at := filepath.Join(dir, "good")
	// A program without arguments: a script that starts this one.
	self := filepath.Join(dir, "plugin.exe")
	placeBinary(t, self)
	script := fmt.Sprintf("#!/bin/sh\nexec %q %s\n", self, pluginFlag+"good:good")
	if err := os.WriteFile(at, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256Of(script)
	set, err := h.OpenToolset(at, sum)
	if err != nil {
		t.Fatal(err)
	}
	if tools, err := set.Tools(t.Context()); err != nil || set.Name() != "good" || len(tools) != 6 {
		t.Errorf("%s: %d tools, %v", set.Name(), len(tools), err)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	for sum, want := range map[string]string{"": "expected a SHA-256", strings.Repeat("0", 64): "the checksum of"} {
		if _, err := h.OpenToolset(at, sum); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("checksum %q: %v, want an error with %q", sum, err, want)
		}
	}
	if _, err := h.OpenToolset(filepath.Join(dir, "missing"), sum); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing program: %v", err)
	}
}
