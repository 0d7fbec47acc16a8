package coretest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
)

func startForeign(t *testing.T) *coretest.Foreign {
	t.Helper()
	set, err := coretest.StartForeign(t.Context(), os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

func TestForeignPassesTheSuite(t *testing.T) {
	access := func(tool string) []core.Access {
		return []core.Access{{Scope: core.ScopePlugin, Resource: "foreign/" + tool}}
	}
	calls := map[string][]coretest.SampleCall{
		"stream":     {{Args: `{"pieces":5}`}},
		"ask":        {{}},
		"image":      {{}},
		"huge":       {{Args: `{"bytes":300000}`}},
		"hugeresult": {{Args: `{"bytes":300000}`}},
		"progress":   {{}},
		"change":     {{Alone: true}},
		"stale":      {{}},
		"fresh":      {{}},
		"hang":       {{Blocks: true}},
		"status":     {{}},
		"die":        {{Want: core.CodeIO, Alone: true}, {Args: `{"how":"garbage"}`, Want: core.CodeIO, Alone: true}},
		"panic":      {{Want: core.CodeUnknown}},
	}
	for name, samples := range calls {
		for i := range samples {
			samples[i].Accesses = access(name)
		}
	}
	coretest.TestToolset(t, func(t *testing.T) core.Toolset { return startForeign(t) }, coretest.ToolsetOptions{
		Calls:  calls,
		Answer: core.Answer{Choice: core.ChoiceYes},
		Change: func(ctx context.Context, set core.Toolset) error {
			_, err := toolNamed(set, "change").Run(ctx, &core.Call{Args: json.RawMessage(`{}`)})
			return err
		},
	})
}

// toolNamed returns a tool of the set's present list, nil if it has none such.
func toolNamed(set core.Toolset, name string) core.Tool {
	tools, err := set.Tools(context.Background())
	if err != nil {
		return nil
	}
	for _, tool := range tools {
		if tool.Definition().Name == name {
			return tool
		}
	}
	return nil
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func newCall(args string, out func(p []byte)) *core.Call {
	if args == "" {
		args = "{}"
	}
	return &core.Call{
		ID: "c", Args: json.RawMessage(args),
		Output:   writerFunc(func(p []byte) (int, error) { out(p); return len(p), nil }),
		Progress: func(core.Progress) {},
		Ask: func(context.Context, core.Question) (core.Answer, error) {
			return core.Answer{}, core.ErrNobody
		},
	}
}

// runForeign runs a tool and returns its live output and its result.
func runForeign(t *testing.T, set core.Toolset, name, args string) (string, core.Result) {
	t.Helper()
	var out bytes.Buffer
	res, err := toolNamed(set, name).Run(t.Context(), newCall(args, func(p []byte) { out.Write(p) }))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String(), res
}

func status(t *testing.T, set core.Toolset) coretest.ForeignStatus {
	t.Helper()
	_, res := runForeign(t, set, "status", "")
	var s coretest.ForeignStatus
	if err := json.Unmarshal(res.Structured, &s); err != nil {
		t.Fatalf("status: %v in %s", err, res.Structured)
	}
	return s
}

func text(res core.Result) string { return model.Parts(res.Content).Text() }

func TestForeignStreams(t *testing.T) {
	set := startForeign(t)
	out, res := runForeign(t, set, "stream", `{"pieces":4}`)
	if want := "piece 1\npiece 2\npiece 3\npiece 4\n"; out != want || res.Code != "" || len(res.Content) != 0 {
		t.Errorf("output %q and result %+v, expected %q and nothing more", out, res, want)
	}
}

func TestForeignProgress(t *testing.T) {
	set := startForeign(t)
	var got []core.Progress
	call := newCall("", func([]byte) {})
	call.Progress = func(p core.Progress) { got = append(got, p) }
	if _, err := toolNamed(set, "progress").Run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[2] != (core.Progress{Done: 3, Total: 3, Message: "on the way"}) {
		t.Errorf("progress %v", got)
	}
}

func TestForeignImage(t *testing.T) {
	_, res := runForeign(t, startForeign(t), "image", "")
	img, ok := res.Content[len(res.Content)-1].(model.Image)
	if !ok || img.MediaType != "image/png" {
		t.Fatalf("content %+v, expected a picture at its end", res.Content)
	}
	if _, err := png.Decode(bytes.NewReader(img.Data)); err != nil {
		t.Errorf("the picture cannot be read: %v", err)
	}
}

func TestForeignAsks(t *testing.T) {
	for name, c := range map[string]struct {
		answer core.Answer
		err    error
		want   string
		code   core.ErrorCode
	}{
		"yes":    {answer: core.Answer{Choice: core.ChoiceYes}, want: `the answer was "yes"`},
		"zero":   {want: `the answer was ""`},
		"nobody": {err: core.ErrNobody, want: "nobody answered: nobody is there", code: core.CodeIO},
	} {
		t.Run(name, func(t *testing.T) {
			set := startForeign(t)
			var out bytes.Buffer
			var asked core.Question
			call := newCall(`{"text":"Shall I?"}`, func(p []byte) { out.Write(p) })
			call.Ask = func(_ context.Context, q core.Question) (core.Answer, error) {
				asked = q
				return c.answer, c.err
			}
			res, err := toolNamed(set, "ask").Run(t.Context(), call)
			if err != nil || res.Code != c.code || !strings.Contains(out.String()+text(res), c.want) {
				t.Errorf("output %q, result %+v, error %v; expected code %q and %q", &out, res, err, c.code, c.want)
			}
			if asked.Title != "Shall I?" || asked.Kind != core.QuestionConfirm {
				t.Errorf("the question was %+v", asked)
			}
		})
	}
}

// While a person thinks, the other calls of the process go on.
func TestForeignQuestionHoldsNobodyUp(t *testing.T) {
	set := startForeign(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	call := newCall("", func([]byte) {})
	call.Ask = func(context.Context, core.Question) (core.Answer, error) {
		close(asked)
		<-answer
		return core.Answer{Choice: core.ChoiceYes}, nil
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if res, err := toolNamed(set, "ask").Run(t.Context(), call); err != nil || res.Code != "" {
			t.Errorf("ask: %+v, %v", res, err)
		}
	})
	<-asked
	if _, res := runForeign(t, set, "huge", `{"bytes":1000000}`); res.Code != "" {
		t.Errorf("huge beside an open question: %+v", res)
	}
	close(answer)
	wg.Wait()
}

func TestForeignHugeOutputIsNeverHeldWhole(t *testing.T) {
	set := startForeign(t)
	before := heap()
	var total int64
	peak := before
	res, err := toolNamed(set, "huge").Run(t.Context(), newCall("", func(p []byte) {
		if total += int64(len(p)); total%(16<<20) < int64(len(p)) {
			peak = max(peak, heap())
		}
	}))
	if err != nil || res.Code != "" || total != 100_000_000 {
		t.Fatalf("%d bytes came, result %+v, error %v", total, res, err)
	}
	if grown := int64(peak) - int64(before); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes for 100 MB of output", grown)
	}
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestForeignHugeResult(t *testing.T) {
	_, res := runForeign(t, startForeign(t), "hugeresult", "")
	if n := len(text(res)); n != 4_000_000 {
		t.Errorf("%d bytes came in one piece, expected 4,000,000", n)
	}
}

func TestForeignChangesItsTools(t *testing.T) {
	set := startForeign(t)
	stale := toolNamed(set, "stale")
	if stale == nil || toolNamed(set, "fresh") != nil {
		t.Fatal("expected stale and no fresh before the change")
	}
	if _, res := runForeign(t, set, "change", ""); res.Code != "" {
		t.Fatalf("change: %+v", res)
	}
	select {
	case <-set.Changed():
	default:
		t.Error("Changed has no value although the call has returned")
	}
	if toolNamed(set, "stale") != nil || toolNamed(set, "fresh") == nil {
		t.Error("expected fresh and no stale after the change")
	}
	// Who holds the old list may still call what is in it.
	res, err := stale.Run(t.Context(), newCall("", func([]byte) {}))
	if err != nil || text(res) != "stale, but served" {
		t.Errorf("stale after the change: %+v, %v", res, err)
	}
}

func TestForeignCancelReachesTheChild(t *testing.T) {
	set := startForeign(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := toolNamed(set, "hang").Run(ctx, newCall("", func([]byte) { cancel() }))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("hang returned %v, expected the error of its context", err)
	}
	if n := status(t, set).Cancelled; n != 1 {
		t.Errorf("the child saw %d cancelled calls, expected 1", n)
	}
}

func TestForeignDeath(t *testing.T) {
	for how, want := range map[string]string{
		"exit":    "exit status 3",
		"garbage": `"this is no frame\n" is not a frame`,
		"flood":   "longer than 4096 bytes",
	} {
		t.Run(how, func(t *testing.T) {
			set := startForeign(t)
			pid := status(t, set).PID
			out, res := runForeign(t, set, "die", `{"how":"`+how+`"}`)
			if out != "feeling unwell\n" {
				t.Errorf("what it said before its death is %q", out)
			}
			msg := text(res)
			if res.Code != core.CodeIO || !strings.Contains(msg, want) || !strings.Contains(msg, `"foreign"`) || !strings.Contains(msg, "die") {
				t.Errorf("result %q: %q, expected one that names toolset and tool and says %q", res.Code, msg, want)
			}
			if how == "exit" && !strings.Contains(msg, "the disk has caught fire") {
				t.Errorf("%q does not hold the child's last words", msg)
			}
			if again := status(t, set).PID; again == pid || again == 0 {
				t.Errorf("after the death of process %d the next call ran in %d", pid, again)
			}
		})
	}
}

func TestForeignDeathFailsAllItsCalls(t *testing.T) {
	set := startForeign(t)
	hanging := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		res, err := toolNamed(set, "hang").Run(t.Context(), newCall("", func([]byte) { close(hanging) }))
		if err != nil || res.Code != core.CodeIO || !strings.Contains(text(res), "exit status 3") {
			t.Errorf("hang in a process that died: %+v, %v", res, err)
		}
	})
	<-hanging
	runForeign(t, set, "die", "")
	wg.Wait()
}

// A child that does not even heed the end of its stdin is killed.
func TestForeignDeafChildIsKilled(t *testing.T) {
	set := startForeign(t)
	deaf := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		res, err := toolNamed(set, "die").Run(t.Context(), newCall(`{"how":"deaf"}`, func([]byte) { close(deaf) }))
		if err != nil || !strings.Contains(text(res), "closed") {
			t.Errorf("a call whose toolset was closed: %+v, %v", res, err)
		}
	})
	<-deaf
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestForeignPanicIsAResult(t *testing.T) {
	set := startForeign(t)
	pid := status(t, set).PID
	_, res := runForeign(t, set, "panic", "")
	if res.Code != core.CodeUnknown || !strings.Contains(text(res), "panicked: as it was told") {
		t.Errorf("result %+v", res)
	}
	if again := status(t, set).PID; again != pid {
		t.Error("the panic ended the process")
	}
}

func TestForeignGetsNoSecrets(t *testing.T) {
	t.Setenv("SOME_API_KEY", "sk-1")
	for _, name := range status(t, startForeign(t)).Env {
		if name == "SOME_API_KEY" {
			t.Error("the child has a secret of its parent in its environment")
		}
	}
}

func TestForeignAfterClose(t *testing.T) {
	set := startForeign(t)
	tool := toolNamed(set, "status")
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(t.Context(), newCall("", func([]byte) {}))
	if err != nil || res.Code != core.CodeIO || !strings.Contains(text(res), `"foreign" cannot run status: the toolset was closed`) {
		t.Errorf("a call after Close: %+v, %v", res, err)
	}
	if _, err := set.Tools(t.Context()); err == nil {
		t.Error("Tools after Close returned no error")
	}
}

func TestStartForeignFails(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		exe  string
		args []string
		want string
	}{
		"no such program": {t.Context(), "/no/such/program", nil, "/no/such/program"},
		"another program": {t.Context(), goTool(t), []string{"version"}, "is not a frame"},
		"silent program":  {t.Context(), goTool(t), []string{"env", "-u"}, "ended"},
		"cancelled":       {done, os.Args[0], nil, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := coretest.StartForeign(c.ctx, c.exe, c.args...)
			if err == nil {
				_ = set.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, expected one that says %q", err, c.want)
			}
		})
	}
}

// goTool is a program that speaks another protocol.
func goTool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("this needs the go command: %v", err)
	}
	return path
}

func BenchmarkForeignCall(b *testing.B) {
	set, err := coretest.StartForeign(b.Context(), os.Args[0])
	if err != nil {
		b.Fatal(err)
	}
	defer set.Close()
	tool := toolNamed(set, "progress")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Run(b.Context(), newCall("", func([]byte) {})); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForeignOutput(b *testing.B) {
	set, err := coretest.StartForeign(b.Context(), os.Args[0])
	if err != nil {
		b.Fatal(err)
	}
	defer set.Close()
	const size = 10_000_000
	tool := toolNamed(set, "huge")
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tool.Run(b.Context(), newCall(`{"bytes":10000000}`, func([]byte) {})); err != nil {
			b.Fatal(err)
		}
	}
}

// The order of the tools does not depend on chance.
func TestForeignListIsStable(t *testing.T) {
	names := func(set core.Toolset) (out []string) {
		tools, err := set.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			out = append(out, tool.Definition().Name)
		}
		return out
	}
	if a, b := names(startForeign(t)), names(startForeign(t)); !slices.Equal(a, b) {
		t.Errorf("two processes list %v and %v", a, b)
	}
}
