package coretest_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

func TestModelAnswersInTurn(t *testing.T) {
	var hooked string
	p := coretest.Model(
		coretest.Turn{
			Hook:      func(req *model.Request) { hooked = req.System },
			Reasoning: "hm", Text: "one ", Pieces: []string{"two ", "three"},
			Parts: []model.Part{model.Opaque{Provider: "coretest", Raw: []byte(`{"a":1}`)}},
			Calls: []model.ToolCall{{Name: "read", Args: `{"path":"a"}`}, {ID: "x", Name: "write", Args: `{}`}},
			Usage: model.Usage{Input: 10, Output: 5},
		},
		coretest.Say("bye"),
	)
	resp, err := model.Complete(t.Context(), p, &model.Request{System: "be good"})
	if err != nil {
		t.Fatal(err)
	}
	want := &model.Response{
		Parts: model.Parts{
			model.Reasoning{Text: "hm"},
			model.Text{Text: "one two three"},
			model.Opaque{Provider: "coretest", Raw: []byte(`{"a":1}`)},
			model.ToolCall{ID: "call-1-1", Name: "read", Args: `{"path":"a"}`},
			model.ToolCall{ID: "x", Name: "write", Args: `{}`},
		},
		Usage: model.Usage{Input: 10, Output: 5}, Stop: model.StopToolCalls, ID: "response-1", Model: "fake-1",
	}
	if !reflect.DeepEqual(resp, want) {
		t.Errorf("answer\n%+v, expected\n%+v", resp, want)
	}
	if hooked != "be good" {
		t.Errorf("the hook saw the prompt %q", hooked)
	}
	if resp, err := model.Complete(t.Context(), p, &model.Request{}); err != nil || resp.Stop != model.StopEnd || resp.Parts.Text() != "bye" {
		t.Errorf("second answer %+v, error %v", resp, err)
	}
	if _, err := model.Complete(t.Context(), p, &model.Request{}); err == nil || model.AsError(err).Code != model.CodeInvalidRequest {
		t.Errorf("after the last turn: %v, expected an error of code %s", err, model.CodeInvalidRequest)
	}
	if n := len(p.Requests()); n != 3 {
		t.Errorf("%d requests were kept, expected 3", n)
	}
}

func TestModelFails(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		turn coretest.Turn
		want error
	}{
		"error":       {coretest.Turn{Text: "begun", Err: boom}, boom},
		"cut text":    {coretest.Turn{Text: "begun", Cut: true}, io.ErrUnexpectedEOF},
		"cut in call": {coretest.Turn{Text: "begun", Calls: []model.ToolCall{call("read", `{"path":"a"}`)}, Cut: true}, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			var g model.Gatherer
			var failed error
			for d, err := range coretest.Model(c.turn).Stream(t.Context(), &model.Request{}) {
				if err != nil {
					failed = err
					continue
				}
				if failed != nil {
					t.Error("a delta came after the error")
				}
				g.Add(d)
			}
			resp, err := g.Response()
			if !errors.Is(failed, c.want) || err == nil || resp.Parts.Text() != "begun" {
				t.Errorf("error %v and parts %v (%v), expected %v after the text", failed, resp.Parts, err, c.want)
			}
			for _, tc := range resp.Parts.ToolCalls() {
				if tc.Args == c.turn.Calls[0].Args {
					t.Errorf("the truncated call is complete: %+v", tc)
				}
			}
		})
	}
}

func TestModelBlocks(t *testing.T) {
	release := make(chan struct{})
	p := coretest.Model(coretest.Turn{Text: "slow", Block: release}, coretest.Turn{Text: "for ever", Block: make(chan struct{})})
	for d, err := range p.Stream(t.Context(), &model.Request{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case d.Kind == model.DeltaText:
			close(release) // the text is here, the end is not
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range p.Stream(ctx, &model.Request{}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a cancelled stream ended with %v", last)
	}
}

func TestFixedPolicies(t *testing.T) {
	req := core.PermissionRequest{Tool: "read_file", Accesses: []core.Access{{Scope: core.ScopeRead, Resource: "/a"}}}
	for policy, want := range map[coretest.FixedPolicy]core.Verdict{
		coretest.AllowAll: core.Allow, coretest.AskAll: core.Ask, coretest.DenyAll: core.Deny,
	} {
		rec := coretest.RecordPolicy(policy)
		d := rec.Decide(t.Context(), req)
		if d.Verdict != want || d.Reason == "" {
			t.Errorf("decision %+v, expected %s with a reason", d, want)
		}
		if granted := len(d.Grants) == 1; granted == (want == core.Deny) {
			t.Errorf("%s grants %v", want, d.Grants)
		}
		if got := rec.Requests(); len(got) != 1 || got[0].Tool != "read_file" {
			t.Errorf("recorded %+v", got)
		}
	}
}

func TestMemoryJournal(t *testing.T) {
	var j coretest.MemoryJournal
	clock := coretest.Clock()
	put := func(seq event.Seq) error {
		return j.Append(t.Context(), event.Event{V: event.Version, Seq: seq, Time: clock(), Session: "s", Body: event.User{Content: model.TextParts("hello")}})
	}
	j.FailAfter(3)
	for seq := event.Seq(1); seq <= 4; seq++ {
		if err := put(seq); errors.Is(err, coretest.ErrJournalFull) != (seq == 4) {
			t.Errorf("append %d: %v", seq, err)
		}
	}
	var seqs []event.Seq
	for e, err := range j.Replay(t.Context(), 1) {
		if err != nil || e.Body.(event.User).Content.Text() != "hello" {
			t.Fatalf("replayed %+v, error %v", e, err)
		}
		seqs = append(seqs, e.Seq)
	}
	if !slices.Equal(seqs, []event.Seq{2, 3}) {
		t.Errorf("replayed %v after 1, expected 2 and 3", seqs)
	}
	if err := j.Sync(t.Context()); err != nil || j.Syncs() != 1 {
		t.Errorf("Sync: %v, counted %d", err, j.Syncs())
	}
	j.Truncate(1)
	if lines := j.Lines(); len(lines) != 1 || !strings.Contains(lines[0], `"type":"user"`) {
		t.Errorf("after Truncate the records are %v", lines)
	}
}

func TestMemoryStore(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "files": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			s := &coretest.MemoryStore{Dir: dir}
			out, err := s.Create(t.Context(), core.OutputMeta{Tool: "shell"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(out, "hello ")
			buf := make([]byte, 5)
			if _, rerr := out.ReadAt(buf, 0); err != nil || rerr != nil || string(buf) != "hello" {
				t.Errorf("while it is written it reads %q (%v, %v)", buf, err, rerr)
			}
			if _, err := io.WriteString(out, "world"); err != nil {
				t.Error(err)
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
			if got := readAll(t, s, out.Handle()); got != "hello world" {
				t.Errorf("it reads %q", got)
			}
			if (out.Path() == "") != (dir == "") {
				t.Errorf("its path is %q", out.Path())
			} else if dir != "" {
				if data, err := os.ReadFile(out.Path()); err != nil || string(data) != "hello world" {
					t.Errorf("its file holds %q, %v", data, err)
				}
			}
			sum := sha256.Sum256([]byte("picture"))
			hash, err := s.PutBlob(t.Context(), []byte("picture"))
			if err != nil || hash != hex.EncodeToString(sum[:]) || readAll(t, s, hash) != "picture" {
				t.Errorf("blob %q, %v", hash, err)
			}
			if _, err := s.Open(t.Context(), core.HandlePrefix+"nothing"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("opening a missing output: %v", err)
			}
			s.Full = true
			if _, err := s.Create(t.Context(), core.OutputMeta{}); !errors.Is(err, coretest.ErrStoreFull) {
				t.Errorf("a full store: %v", err)
			}
			if metas := s.Outputs(); len(metas) != 1 || metas[0].Tool != "shell" {
				t.Errorf("outputs were created for %v", metas)
			}
		})
	}
}

func readAll(t *testing.T, s *coretest.MemoryStore, id string) string {
	t.Helper()
	f, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil || int64(len(data)) != info.Size() {
		t.Errorf("%q: %d bytes read of %d, error %v", id, len(data), info.Size(), err)
	}
	return string(data)
}

func TestClockAndNewID(t *testing.T) {
	clock, id := coretest.Clock(), coretest.NewID("call")
	a, b := clock(), clock()
	if b.Sub(a).Milliseconds() != 1 || !a.Equal(coretest.Clock()()) {
		t.Errorf("the clock reads %s and then %s", a, b)
	}
	if x, y := id(), id(); x != "call-1" || y != "call-2" {
		t.Errorf("ids %q and %q", x, y)
	}
}

// logSource is an event source without a session.
type logSource struct{ *event.Log }

func (s logSource) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return s.Read(ctx, after)
}

func TestCollector(t *testing.T) {
	log := event.NewLog(10, nil)
	c := coretest.Collect(t, logSource{log}, func(e event.Event) bool { return !e.IsDelta() })
	log.Append(event.Event{Seq: 1, Body: event.Warning{Code: "A"}})
	log.Append(event.Event{Seq: 2, Body: event.MessageDelta{Text: "dropped"}})
	go log.Append(event.Event{Seq: 3, Body: event.Idle{Stop: "done"}})
	if e := c.Wait(t, "idle"); e.Seq != 3 {
		t.Errorf("waited for idle and got %+v", e)
	}
	if e := c.Wait(t, "warning"); e.Seq != 1 {
		t.Errorf("the past event was not found: %+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := func(event.Event) bool { return false }
	if _, err := c.Await(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("Await with a context that is done: %v", err)
	}
	log.Close()
	if got := coretest.Types(c.Drain(t)); !slices.Equal(got, []string{"warning", "idle"}) {
		t.Errorf("collected %v", got)
	}
	if _, err := c.Await(t.Context(), never); err == nil || !strings.Contains(err.Error(), "ended") {
		t.Errorf("Await after the end: %v", err)
	}
	if got := coretest.Bodies[event.Warning](c.Events()); len(got) != 1 || got[0].Code != "A" {
		t.Errorf("bodies %v", got)
	}
}

func TestTable(t *testing.T) {
	set := newLiveSet(t)
	table := coretest.Table(set, &toySet{})
	first, err := table.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := first.Lookup("toy"); !ok || e.Source != "toys" {
		t.Errorf("toy is %+v", e)
	}
	if again, _ := table.Snapshot(t.Context()); again != first {
		t.Error("the snapshot changed without a change")
	}
	set.change()
	if changed, _ := table.Snapshot(t.Context()); changed == first || changed.Version() == first.Version() {
		t.Error("after a change the snapshot is the same")
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	left, err := table.Snapshot(t.Context())
	if err == nil || !strings.Contains(err.Error(), "live") || len(left.Names()) != 1 {
		t.Errorf("with a closed toolset: %v and error %v, expected the other one's tools and an error that names it", left.Names(), err)
	}
}
