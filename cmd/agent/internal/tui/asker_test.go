package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
)

// keyOf returns the key of a choice, which the question may not offer.
func keyOf(c core.Choice) string {
	switch c {
	case core.ChoiceOnce, core.ChoiceYes:
		return "y"
	case core.ChoiceSession:
		return "s"
	case core.ChoiceAlways:
		return "a"
	}
	return "n"
}

// titles returns the unique titles of questions in the output.
type titles struct {
	read func() string
	told map[string]bool
}

func (p *titles) Shown(ctx context.Context) (string, error) {
	for {
		for l := range strings.SplitSeq(p.read(), "\n") {
			// An answered question has its answer after the title.
			if title, ok := strings.CutPrefix(strings.TrimSpace(l), "? "); ok && !strings.Contains(title, "→") && !p.told[title] {
				p.told[title] = true
				return title, nil
			}
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// plainUser answers at a session line by line.
type plainUser struct {
	titles
	in io.Writer
}

func (p *plainUser) Answer(c core.Choice) error {
	line := keyOf(c)
	if c == "" {
		line = ""
	}
	_, err := io.WriteString(p.in, line+"\n")
	return err
}

func TestPlainAsker(t *testing.T) {
	coretest.TestAsker(t, func(t *testing.T) (core.Asker, coretest.User) {
		s, asker := mustOpen(t, act{})
		in, out := io.Pipe()
		screen := &safeBuffer{}
		done := make(chan error, 1)
		go func() {
			_, err := Run(context.Background(), Options{In: in, Out: screen, Session: s, Asker: asker, Env: testVars(nil)})
			done <- err
		}()
		t.Cleanup(func() {
			_ = out.Close()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		return asker, &plainUser{titles{screen.String, map[string]bool{}}, out}
	})
}

func TestAskerWithoutRun(t *testing.T) {
	t.Parallel()
	asker := NewAsker()
	asker.bind(true)
	reply := make(chan error, 1)
	go func() {
		_, err := asker.Ask(context.Background(), core.Question{Title: "?"})
		reply <- err
	}()
	eventually(t, func() string { return "no question came" }, func() bool { return asker.front() != nil })
	asker.bind(false)
	if err := <-reply; !errors.Is(err, core.ErrNonInteractive) {
		t.Errorf("a question that was open when the session ended came to %v, want ErrNobody", err)
	}
	if _, err := asker.Ask(context.Background(), core.Question{}); !errors.Is(err, core.ErrNonInteractive) {
		t.Errorf("a question after the end came to %v, want ErrNobody", err)
	}
}

func TestDialogOffersWhatTheQuestionOffers(t *testing.T) {
	t.Parallel()
	permission := func(choices ...core.Choice) core.Question {
		return core.Question{Kind: core.QuestionPermission, Choices: choices, Offers: []core.Offer{{Rules: []string{"shell(make)"}}}}
	}
	for _, tt := range []struct {
		name   string
		q      core.Question
		line   string
		want   string // choice and reason; "!" = error, "" = incomplete
		second string // the next line, if incomplete
		answer string
	}{
		{name: "once", q: permission(core.ChoiceOnce, core.ChoiceDeny), line: "y", want: "once"},
		{name: "session", q: permission(core.ChoiceOnce, core.ChoiceSession, core.ChoiceDeny), line: "s", want: "session"},
		{name: "always by name", q: permission(core.ChoiceOnce, core.ChoiceAlways, core.ChoiceDeny), line: "Always", want: "always"},
		{name: "not offered", q: permission(core.ChoiceOnce, core.ChoiceDeny), line: "a", want: "!"},
		{name: "nonsense", q: permission(core.ChoiceOnce, core.ChoiceDeny), line: "yes please", want: "!"},
		{name: "deny because", q: permission(core.ChoiceOnce, core.ChoiceDeny), line: "n use the other one", want: "deny use the other one"},
		{name: "reason", q: permission(core.ChoiceOnce, core.ChoiceDeny), line: "r", second: "not now", answer: "deny not now"},
		{name: "empty denies", q: permission(core.ChoiceOnce, core.ChoiceDeny), line: "", want: "deny"},
		{name: "no choices", q: permission(), line: "y", want: "!"},
		{name: "confirm", q: core.Question{Kind: core.QuestionConfirm}, line: "yes", want: "yes"},
		{name: "confirm no", q: core.Question{Kind: core.QuestionConfirm}, line: "", want: "no"},
		{name: "url", q: core.Question{Kind: core.QuestionURL}, line: "y", want: "yes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newDialog(&pending{Question: tt.q})
			got := answerText(d.answerLine(tt.line))
			if got != tt.want {
				t.Errorf("%q came to %q, want %q", tt.line, got, tt.want)
			}
			if tt.second != "" {
				if got := answerText(d.answerLine(tt.second)); got != tt.answer {
					t.Errorf("%q came to %q, want %q", tt.second, got, tt.answer)
				}
			}
		})
	}
}

func answerText(a *core.Answer, err error) string {
	switch {
	case err != nil:
		return "!"
	case a == nil:
		return ""
	case a.Choice == "":
		return "<zero>"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s", a.Choice, a.Reason))
}

func TestForm(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["name","count"],"properties":{
		"name":{"type":"string","description":"of the thing","minLength":2},
		"count":{"type":"integer","minimum":1,"maximum":9},
		"ratio":{"type":"number"},
		"sure":{"type":"boolean","default":true},
		"color":{"type":"string","enum":["red","green"]}}}`
	d := newDialog(&pending{Question: core.Question{Kind: core.QuestionForm, Schema: []byte(schema)}})
	if d.formErr != nil {
		t.Fatal(d.formErr)
	}
	var labels []string
	for _, step := range []struct {
		text string
		fits bool
	}{
		{"", false},
		{"x", false},
		{`a "b"`, true},
		{"many", false},
		{"1.5", false},
		{"12", false},
		{"3", true},
		{"NaN", false},
		{"", true},
		{"perhaps", false},
		{"", true},
		{"blue", false},
		{"3", false},
	} {
		labels = append(labels, d.label())
		if a, err := d.enter(step.text); (err == nil) != step.fits || a != nil {
			t.Fatalf("%s: %q came to %v, %v; want it to fit: %t", d.label(), step.text, a, err, step.fits)
		}
	}
	a, err := d.enter("2")
	if want := `{"name":"a \"b\"","count":3,"sure":true,"color":"green"}`; err != nil || a == nil || string(a.Values) != want {
		t.Errorf("the form came to %+v, %v; want %s", a, err, want)
	}
	has(t, strings.Join(labels, "\n"), "name: of the thing", "count [integer]", "ratio [number] (optional)", "sure [y/n] (default: true)", "color [1 red, 2 green]")
}

func TestFormThatIsNotFlat(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`[]`, `{}`, `{"properties":{}}`, `{"properties":[]}`, `{"properties":{"x":{"type":"object"}}}`, `{"properties":{"x":{"type":["string","null"]}}}`, ``} {
		d := newDialog(&pending{Question: core.Question{Kind: core.QuestionForm, Schema: []byte(schema)}})
		if d.formErr == nil {
			t.Errorf("%s is taken for a form", schema)
		}
		if a := answerText(d.answerLine("y")); a != "!" {
			t.Errorf("%s: yes came to %q", schema, a)
		}
	}
}

// safeBuffer is a buffer for a writer and a reader in two goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func testVars(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// TestAnswerTooLate answers a question that ended meanwhile, as by Ctrl-C: the answer is
// dropped, and nothing is shown of it.
func TestAnswerTooLate(t *testing.T) {
	s, asker := mustOpen(t, act{home: t.TempDir()})
	h := newHost(t.Context(), Options{Session: s, Asker: asker})
	h.post = func(msg any) { t.Errorf("posted %+v", msg) }
	d := newDriver(h, newScene(painter{}, 80, "/w"))
	d.ask(event.Question{QID: "gone", Title: "Sure?"}, "")
	<-asker.changed
	asker.answer(asker.front(), core.Answer{Choice: core.ChoiceOnce})
	h.wg.Wait()
}
