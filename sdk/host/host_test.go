package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/host/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener opens sessions below home.
func opener(t *testing.T, home string, p model.Provider, settings []host.Setting, tools ...core.Tool) host.Opener {
	dir := t.TempDir()
	return func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: dir, Home: home, Tools: tools, Policy: hosttest.Policy{}})
		if err != nil {
			return host.Opened{}, err
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: p, Asker: asker, Resume: o.ID})
		return host.Opened{Session: s, Settings: settings, Close: a.Close}, err
	}
}

func TestSuite(t *testing.T) {
	hosttest.Run(t, func(t *testing.T, p model.Provider, tools ...core.Tool) func() hosttest.Driver {
		home := t.TempDir()
		h := host.New(home, opener(t, home, p, nil, tools...))
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		s, err := h.Open(t.Context(), host.Open{})
		if err != nil {
			t.Fatal(err)
		}
		return func() hosttest.Driver { return s }
	})
}

func TestOpenAttaches(t *testing.T) {
	home := t.TempDir()
	h := host.New(home, opener(t, home, coretest.Model(coretest.Say("One."), coretest.Say("Two.")), nil))
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.Open(t.Context(), host.Open{ID: s.ID()})
	if err != nil || again != s {
		t.Errorf("a second Open: %v, %v", again, err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "close"}); err != nil {
		t.Fatal(err)
	}
	for range s.Events(t.Context(), 0) {
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	resumed, err := h.Open(t.Context(), host.Open{ID: s.ID()})
	if err != nil || resumed == s || resumed.Past() == 0 {
		t.Errorf("after a close the session is not resumed: %v", err)
	}
}

func TestSettings(t *testing.T) {
	set := ""
	settings := []host.Setting{{ID: "mode", Name: "Mode", Value: "a", Values: []string{"a", "b"}, Set: func(v string) error { set = v; return nil }}}
	home := t.TempDir()
	h := host.New(home, opener(t, home, coretest.Model(), settings))
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "set", Setting: "mode", Value: "c"}); err == nil || set != "" {
		t.Errorf("an unknown value: %v, set %q", err, set)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "set", Setting: "mode", Value: "b"}); err != nil || set != "b" || s.Now().Settings[0].Value != "b" {
		t.Errorf("error %v, set %q, now %+v", err, set, s.Now().Settings)
	}
	for e, err := range s.Events(t.Context(), 0) {
		if b, ok := e.Body.(event.SettingChanged); err != nil || ok && b.Value == "b" {
			break
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	set = ""
	if s, err = h.Open(t.Context(), host.Open{ID: s.ID()}); err != nil || set != "b" || s.Now().Settings[0].Value != "b" {
		t.Errorf("after a resume: error %v, set %q, now %+v", err, set, s.Now().Settings)
	}
	settings[0].Lapse = []string{"b"}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = h.Open(t.Context(), host.Open{ID: s.ID()}); err != nil || s.Now().Settings[0].Value != "a" {
		t.Fatalf("a value that lapses: error %v, now %+v", err, s.Now().Settings)
	}
	settings[0].Values, settings[0].Lapse = []string{"a"}, nil
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = h.Open(t.Context(), host.Open{ID: s.ID()}); err != nil || s.Now().Settings[0].Value != "a" {
		t.Fatalf("after a resume: error %v, now %+v", err, s.Now().Settings)
	}
	for e, err := range s.Events(t.Context(), s.Past()) {
		if b, ok := e.Body.(event.Warning); err != nil || ok && strings.Contains(b.Message, `mode cannot be "b"`) {
			break
		}
	}
}

// run processes an input and returns its result.
func run(t *testing.T, s *host.Session, text string) event.Result {
	t.Helper()
	run, err := s.Do(t.Context(), host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: text}}})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Events(t.Context(), s.Past()) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Result); ok && b.Run == run {
			return b
		}
	}
	t.Fatalf("run %s has no result", run)
	return event.Result{}
}

func TestListForkDelete(t *testing.T) {
	home := t.TempDir()
	h := host.New(home, opener(t, home, coretest.Model(coretest.Say("One."), coretest.Say("Two.")), nil))
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, "first")
	fork, err := h.Open(t.Context(), host.Open{Fork: s.ID()}) // of an open session
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, fork, "second").Text; fork.ID() == s.ID() || got != "Two." {
		t.Errorf("fork %s of %s: %q", fork.ID(), s.ID(), got)
	}
	page, next, err := h.List("", "")
	if err != nil || len(page) != 2 || next != "" || page[0].Text != "first" {
		t.Errorf("list %+v, %q, %v", page, next, err)
	}
	if page, _, err := h.List("/elsewhere", ""); err != nil || len(page) != 0 {
		t.Errorf("list of another directory: %+v, %v", page, err)
	}
	if err := h.Delete(s.ID()); err != nil { // also an open one
		t.Fatal(err)
	}
	if page, _, _ := h.List("", ""); len(page) != 1 || page[0].ID != fork.ID() {
		t.Errorf("after a delete: %+v", page)
	}
	if err := h.Delete(s.ID()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second delete: %v", err)
	}
	if _, err := h.Open(t.Context(), host.Open{Fork: s.ID()}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a fork of nothing: %v", err)
	}
}

// TestQueueSurvives: an input that waits is in the record until it is processed or
// cancelled.
func TestQueueSurvives(t *testing.T) {
	home, reached := t.TempDir(), make(chan struct{})
	blocked := coretest.Turn{Text: "never", Hook: func(*model.Request) { close(reached) }, Block: make(chan struct{})}
	h := host.New(home, opener(t, home, coretest.Model(blocked, coretest.Say("One."), coretest.Say("Two.")), nil))
	defer h.Close()
	reopened := func(id string, queued ...string) *host.Session {
		t.Helper()
		s, err := h.Open(t.Context(), host.Open{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if now := s.Now(); !slices.Equal(now.Queued, queued) {
			t.Errorf("queued are %q, want %q", now.Queued, queued)
		}
		return s
	}
	do := func(s *host.Session, c host.Command, text string) {
		t.Helper()
		if text != "" {
			c.Content = []host.Part{{Type: "text", Text: text}}
		}
		if _, err := s.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	s := reopened("")
	do(s, host.Command{Type: "input", Run: "first"}, "one")
	<-reached
	c := host.Command{Type: "input", Run: "second", When: "next", Context: []host.Context{{Source: "x.go", Text: "package x"}}}
	do(s, c, "two")
	if err := s.Detach(t.Context()); err != nil { // the record is as after a kill
		t.Fatal(err)
	}
	fork, err := h.Open(t.Context(), host.Open{Fork: s.ID()})
	if err != nil || len(fork.Now().Queued) > 0 {
		t.Errorf("the fork has %+v, %v", fork.Now(), err)
	}
	s = reopened(s.ID(), "second")
	do(s, host.Command{Type: "continue", Run: "again"}, "")
	var texts []string
	for e, err := range s.Events(t.Context(), s.Past()) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Result); ok {
			texts = append(texts, b.Run+": "+b.Text)
		}
		if len(texts) == 2 {
			break
		}
	}
	if !slices.Equal(texts, []string{"again: One.", "second: Two."}) {
		t.Errorf("results %q", texts)
	}
	var read string
	for _, m := range s.Messages() {
		read += m.Parts.Text()
	}
	if strings.Count(read, "two") != 1 || strings.Count(read, "package x") != 1 {
		t.Errorf("the session read %q", read)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	reopened(s.ID())
}

// shouting is a view of an environment whose files are in capitals.
type shouting struct{ core.Environment }

func (e shouting) Files() core.FS { return shoutingFS{e.Environment.Files()} }

type shoutingFS struct{ core.FS }

func (f shoutingFS) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return f.FS.Write(ctx, path, bytes.NewReader(bytes.ToUpper(data)), mode)
}

func TestToolEnv(t *testing.T) {
	dir := t.TempDir()
	write := model.ToolCall{Name: "write_file", Args: `{"file_path":"x.txt","content":"quiet\n"}`}
	h := host.New("", func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: dir})
		if err != nil {
			return host.Opened{}, err
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: coretest.Model(coretest.CallTools(write), coretest.Say("Done.")), Asker: asker, ToolEnv: o.ToolEnv})
		return host.Opened{Session: s, Close: a.Close}, err
	})
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{ToolEnv: func(e core.Environment) core.Environment { return shouting{e} }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: "write"}}}); err != nil {
		t.Fatal(err)
	}
	for e, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Question:
			if want := (event.Edit{Path: "x.txt", Line: 1, Kind: "create", New: "quiet\n"}); len(b.Edits) != 1 || b.Edits[0] != want {
				t.Errorf("the question shows the edits %+v", b.Edits)
			}
			if _, err := s.Do(t.Context(), host.Command{Type: "answer", Question: b.QID, Choice: core.ChoiceOnce}); err != nil {
				t.Fatal(err)
			}
			continue
		case event.ToolResult:
			if got := b.Edits(); len(got) != 1 || got[0].Kind != "create" || got[0].New != "quiet\n" {
				t.Errorf("the result has the edits %+v", got)
			}
			continue
		case event.Result:
		default:
			continue
		}
		break
	}
	if got, err := os.ReadFile(filepath.Join(dir, "x.txt")); err != nil || string(got) != "QUIET\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// TestRun: what a run returns, if it is given up, fails or cannot begin.
func TestRun(t *testing.T) {
	refused := &model.Error{Code: model.CodeAuthentication, Message: "wrong key"}
	h := host.New("", opener(t, "", coretest.Model(coretest.Say("One."), coretest.Turn{Text: "Two", Block: make(chan struct{})}, coretest.Turn{Err: refused}), nil))
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	input := func(when string) host.Command {
		return host.Command{Type: "input", When: when, Content: []host.Part{{Type: "text", Text: "go"}}}
	}
	if out, err := s.Run(t.Context(), input("")); err != nil || out.Stop != core.StopDone || out.Text != "One." {
		t.Errorf("an answer: %+v, %v", out, err)
	}
	if _, err := s.Run(t.Context(), input("keep")); err == nil || !strings.Contains(err.Error(), "has begun no run") {
		t.Errorf("an input that is kept: %v", err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	reading := make(chan struct{})
	go func() {
		for e := range s.Events(t.Context(), s.Past()) {
			switch b := e.Body.(type) {
			case event.SessionStart:
				close(reading)
			case event.MessageDelta:
				if b.Text == "Two" {
					giveUp()
				}
			}
		}
	}()
	<-reading // a late reader gets no deltas
	if out, err := s.Run(ctx, host.Command{Type: "continue"}); err != nil || out.Stop != core.StopCancelled {
		t.Errorf("a run that is given up: %+v, %v", out, err)
	}
	if out, err := s.Run(t.Context(), input("")); out.Stop != core.StopError || model.AsError(err).Code != model.CodeAuthentication {
		t.Errorf("an error of the model: %+v, %v", out, err)
	}
	var refusal *host.Error
	if _, err := s.Run(t.Context(), input("")); !errors.As(err, &refusal) || refusal.Code != host.CodeClosed { // that error closes the session
		t.Errorf("a closed session: %v", err)
	}
}

// TestSteerWhileDetaching: a message is refused or in the record, also while a detach waits
// for a running call.
func TestSteerWhileDetaching(t *testing.T) {
	home, began, release := t.TempDir(), make(chan struct{}), make(chan struct{})
	work := core.NewTool(core.ToolDefinition{Name: "work"}, nil, func(context.Context, *core.Call, struct{}) (core.Result, error) {
		close(began)
		<-release
		return core.TextResult("did work"), nil
	})
	h := host.New(home, opener(t, home, coretest.Model(coretest.CallTools(model.ToolCall{Name: "work", Args: "{}"}),
		coretest.Say("Read."), coretest.Say("Read.")), nil, work)) // once more if the detach is later than the end of the call
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	say := func(when string) error {
		_, err := s.Do(t.Context(), host.Command{Type: "input", When: when, Content: []host.Part{{Type: "text", Text: "said;"}}})
		return err
	}
	if err := say(""); err != nil {
		t.Fatal(err)
	}
	<-began
	detached := make(chan error, 1)
	go func() { detached <- s.Detach(t.Context()) }()
	taken := 1
	for {
		if err = say("steer"); err != nil {
			break
		}
		taken++
	}
	if refused := (*host.Error)(nil); !errors.As(err, &refused) || refused.Code != host.CodeClosed {
		t.Errorf("a message during the detach: %v", err)
	}
	close(release)
	if err := <-detached; err != nil {
		t.Fatal(err)
	}
	if s, err = h.Open(t.Context(), host.Open{ID: s.ID()}); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Run(t.Context(), host.Command{Type: "continue"}); err != nil || out.Text != "Read." {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	read := ""
	for _, m := range s.Messages() {
		read += m.Parts.Text()
	}
	if got := strings.Count(read, "said;"); got != taken {
		t.Errorf("%d messages were taken, and %d read", taken, got)
	}
}
