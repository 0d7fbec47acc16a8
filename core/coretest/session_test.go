package coretest_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// These tests drive a toolset through a whole session.

// nowhere is an environment for tools that need none.
type nowhere struct{ core.Environment }

func (nowhere) Info() core.EnvInfo { return core.EnvInfo{OS: runtime.GOOS, Dir: "/nowhere"} }

// stage is a session of a liveSet, and what records it.
type stage struct {
	*core.Session
	model  *coretest.FakeProvider
	policy *coretest.PolicyRecorder
	store  *coretest.MemoryStore
	events *coretest.Collector
}

func newStage(t *testing.T, asker core.Asker, keep func(event.Event) bool, turns ...coretest.Turn) *stage {
	t.Helper()
	st := &stage{
		model:  coretest.Model(turns...),
		policy: coretest.RecordPolicy(coretest.AskAll), store: &coretest.MemoryStore{Dir: t.TempDir()},
	}
	s, err := core.New(t.Context(), core.Config{
		Provider: st.model, Env: nowhere{}, Tools: coretest.Table(newLiveSet(t)), Policy: st.policy, Asker: asker, Store: st.store,
		Journal: &coretest.MemoryJournal{}, Clock: coretest.Clock(), NewID: coretest.NewID("id"),
	})
	if err != nil {
		t.Fatal(err)
	}
	st.Session = s
	st.events = coretest.Collect(t, s, keep)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// submit runs an input that is expected to end normally and returns all
// events of the session, which it closes.
func (st *stage) submit(t *testing.T, text string) []event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*coretest.Patience)
	defer cancel()
	out, err := st.Submit(ctx, core.TextInput(text))
	if err != nil || out.Stop != core.StopDone {
		t.Fatalf("Submit: %+v, error %v", out, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return st.events.Drain(t)
}

// checkAsked fails the test unless the policy was asked once for each call of
// these tools, in order, with the tool's access.
func (st *stage) checkAsked(t *testing.T, tools ...string) {
	t.Helper()
	var got []string
	for _, req := range st.policy.Requests() {
		got = append(got, req.Tool)
		want := []core.Access{{Scope: core.ScopePlugin, Resource: "live/" + req.Tool}}
		if !slices.EqualFunc(req.Accesses, want, func(a, b core.Access) bool { return a.Key() == b.Key() }) || req.Source != "live" {
			t.Errorf("the policy was asked for %+v of source %q, expected %+v of live", req.Accesses, req.Source, want)
		}
	}
	if !slices.Equal(got, tools) {
		t.Errorf("the policy was asked about %v, expected %v", got, tools)
	}
}

func call(name, args string) model.ToolCall {
	if args == "" {
		args = "{}"
	}
	return model.ToolCall{Name: name, Args: args}
}

// result returns the one result of a tool among events.
func result(t *testing.T, events []event.Event, tool string) (event.ToolResult, int) {
	t.Helper()
	i := slices.IndexFunc(events, func(e event.Event) bool {
		r, ok := e.Body.(event.ToolResult)
		return ok && r.Name == tool
	})
	if i < 0 {
		t.Fatalf("no result of %s among %v", tool, coretest.Types(events))
	}
	return events[i].Body.(event.ToolResult), i
}

// lastResults returns the tool results at the end of a request, by tool.
func lastResults(req model.Request) map[string]model.ToolResult {
	results := make(map[string]model.ToolResult)
	for _, p := range req.Messages[len(req.Messages)-1].Parts {
		if r, ok := p.(model.ToolResult); ok {
			results[r.Name] = r
		}
	}
	return results
}

func TestSessionStreamsAndAsks(t *testing.T) {
	// The user answers only once the call's live output has been shown: if it
	// were held back until the result, the test would time out.
	var st *stage
	var questions []core.Question
	user := coretest.Asker(func(ctx context.Context, q core.Question) (core.Answer, error) {
		questions = append(questions, q)
		if q.Kind == core.QuestionPermission {
			return core.Answer{Choice: core.ChoiceOnce}, nil
		}
		_, err := st.events.Await(ctx, func(e event.Event) bool {
			d, ok := e.Body.(event.ToolOutputDelta)
			return ok && strings.Contains(d.Text, "about to ask")
		})
		return core.Answer{Choice: core.ChoiceYes}, err
	})
	st = newStage(t, user, nil,
		coretest.CallTools(call("stream", ""), call("ask", `{"text":"Continue?"}`)),
		coretest.Say("done"))
	events := st.submit(t, "go")

	_, end := result(t, events, "stream")
	var live strings.Builder
	for _, d := range coretest.Bodies[event.ToolOutputDelta](events[:end]) {
		live.WriteString(d.Text)
	}
	if want := "piece 1\npiece 2\npiece 3\npiece 4\n"; live.String() != want {
		t.Errorf("before the result of stream the deltas say %q, expected %q", &live, want)
	}
	results := lastResults(st.model.Requests()[1])
	if got := results["stream"].Content.Text(); !strings.Contains(got, "piece 4") {
		t.Errorf("the model got %q of stream", got)
	}
	if got := results["ask"].Content.Text(); !strings.Contains(got, `the answer was "yes"`) {
		t.Errorf("the model got %q of ask: the answer did not reach the tool", got)
	}
	if n := len(questions); n != 3 || questions[2].Title != "Continue?" || questions[2].Tool != "ask" {
		t.Errorf("the user was asked %+v, expected two permissions and then the tool's question", questions)
	}
	st.checkAsked(t, "stream", "ask")
}

func TestSessionTakesImages(t *testing.T) {
	st := newStage(t, coretest.AlwaysAnswer(core.ChoiceOnce), nil,
		coretest.CallTools(call("image", "")), coretest.Say("a dot"))
	events := st.submit(t, "draw")

	parts := lastResults(st.model.Requests()[1])["image"].Content
	img, ok := parts[len(parts)-1].(model.Image)
	if !ok || img.MediaType != "image/png" || img.Blob == "" {
		t.Fatalf("the next request holds %+v, expected an image with its hash", parts)
	}
	if _, err := png.Decode(bytes.NewReader(img.Data)); err != nil {
		t.Errorf("the image in the next request cannot be read: %v", err)
	}
	r, _ := result(t, events, "image")
	logged, ok := r.Content[len(r.Content)-1].(model.Image)
	if !ok || logged.Data != nil || logged.Blob != img.Blob || logged.Bytes != len(img.Data) {
		t.Errorf("the event holds %+v, expected the hash and the size only", r.Content)
	}
	st.checkAsked(t, "image")
}

// checkFullOutput checks that a long result is in a file and that the
// model got its two ends.
func checkFullOutput(t *testing.T, st *stage, r event.ToolResult, size int64) {
	t.Helper()
	if r.IsError || r.Output == nil || r.Output.Path == "" || r.Output.Bytes != size || r.Output.Text != "" {
		t.Fatalf("result of %s: error %v, output %+v; expected a file of %d bytes", r.Name, r.IsError, r.Output, size)
	}
	f, err := r.Output.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := io.Copy(io.Discard, f); n != size || err != nil {
		t.Errorf("the file of %s holds %d bytes (error %v), expected %d", r.Name, n, err, size)
	}
	text := lastResults(st.model.Requests()[1])[r.Name].Content.Text()
	if len(text) > 31_000 || !strings.Contains(text, fmt.Sprintf("%d characters were removed from the middle", size-30_000)) {
		t.Errorf("the model got %d bytes of %s without the marker: %.100q…", len(text), r.Name, text)
	}
}

func TestSessionSpoolsHugeOutput(t *testing.T) {
	const huge, long = 100_000_000, 4_000_000
	var before, during uint64
	var sysBefore, sysAfter uint64
	var live int64
	st := newStage(t, coretest.AlwaysAnswer(core.ChoiceOnce),
		func(e event.Event) bool { // deltas are counted, not kept
			if d, ok := e.Body.(event.ToolOutputDelta); ok {
				live += int64(len(d.Text))
			}
			return !e.IsDelta()
		},
		coretest.Turn{Hook: func(*model.Request) { before, sysBefore = heap(), heapSys() }, Calls: []model.ToolCall{call("huge", fmt.Sprintf(`{"bytes":%d}`, huge)), call("hugeresult", fmt.Sprintf(`{"bytes":%d}`, long))}},
		coretest.Turn{Hook: func(*model.Request) { during, sysAfter = heap(), heapSys() }, Text: "that was a lot"})
	events := st.submit(t, "flood me")

	for tool, size := range map[string]int64{"huge": huge, "hugeresult": long} {
		r, _ := result(t, events, tool)
		checkFullOutput(t, st, r, size)
	}
	const bound = 40 << 20
	if grown := int64(during) - int64(before); grown > bound {
		t.Errorf("after 100 MB of output the session holds %d MiB more than before, at most %d are allowed", grown>>20, bound>>20)
	}
	if grown := int64(sysAfter) - int64(sysBefore); grown > 2*bound {
		t.Errorf("at its peak the heap grew by %d MiB for 100 MB of output, at most %d are allowed", grown>>20, 2*bound>>20)
	}
	if live == 0 || live > huge {
		t.Errorf("a reader saw %d bytes of live output, expected some and not more than there were", live)
	}
	st.checkAsked(t, "huge", "hugeresult")
}

// heap returns the bytes of live heap objects.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// heapSys returns the heap memory obtained from the system. It hardly ever shrinks,
// so its growth shows the peak.
func heapSys() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}

func TestSessionTakesChangedTools(t *testing.T) {
	st := newStage(t, coretest.AlwaysAnswer(core.ChoiceOnce), nil,
		// stale is called after the change, but with the table of its request.
		coretest.CallTools(call("change", ""), call("stale", ""), call("fresh", "")),
		coretest.CallTools(call("fresh", ""), call("stale", "")),
		coretest.Say("done"))
	st.submit(t, "change")

	names := func(req model.Request) (out []string) {
		for _, d := range req.Tools {
			out = append(out, d.Name)
		}
		return out
	}
	requests := st.model.Requests()
	first, second := names(requests[0]), names(requests[1])
	if !slices.Contains(first, "stale") || slices.Contains(first, "fresh") {
		t.Errorf("the first request offers %v", first)
	}
	if slices.Contains(second, "stale") || !slices.Contains(second, "fresh") {
		t.Errorf("the request after the change offers %v", second)
	}
	old, fresh := lastResults(requests[1]), lastResults(requests[2])
	if r := old["stale"]; r.IsError || r.Content.Text() != "stale, but served" {
		t.Errorf("stale, called with the old table, returned %+v", r)
	}
	if r := old["fresh"]; !r.IsError || !strings.Contains(r.Content.Text(), "fresh") {
		t.Errorf("fresh, which is not in the old table, returned %+v", r)
	}
	if r := fresh["fresh"]; r.IsError || r.Content.Text() != "fresh" {
		t.Errorf("fresh returned %+v", r)
	}
	if r := fresh["stale"]; !r.IsError {
		t.Errorf("stale, which is not in the new table, returned %+v", r)
	}
	st.checkAsked(t, "change", "stale", "fresh")
}
