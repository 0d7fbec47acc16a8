package hosttest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
)

// Driver is the view of a session under test. [host.Session] is one, but for Now.
type Driver interface {
	Do(ctx context.Context, c host.Command) (run string, err error)
	Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
	AllEvents(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
	Now() host.Now
}

// Open opens a session with the model, the built-in tools, these, and [Policy]. Each call of the function that it
// returns attaches another driver to it.
type Open func(t *testing.T, p model.Provider, tools ...core.Tool) (connect func() Driver)

// Run checks what drivers rely on.
func Run(t *testing.T, open Open) {
	t.Run("one result a run, in order", func(t *testing.T) { results(t, open) })
	t.Run("cancel behind an input", func(t *testing.T) { cancelBehind(t, open) })
	t.Run("queued inputs", func(t *testing.T) { queued(t, open) })
	t.Run("context of the driver", func(t *testing.T) { added(t, open) })
	t.Run("several questions", func(t *testing.T) { several(t, open) })
	t.Run("changed arguments", func(t *testing.T) { changed(t, open) })
	t.Run("two drivers and a question", func(t *testing.T) { question(t, open) })
	t.Run("kept inputs", func(t *testing.T) { kept(t, open) })
	t.Run("reconnect", func(t *testing.T) { reconnect(t, open) })
	t.Run("wrong commands", func(t *testing.T) { wrong(t, open) })
	t.Run("close", func(t *testing.T) { closing(t, open) })
	t.Run("subagents", func(t *testing.T) { subagents(t, open) })
	t.Run("detach", func(t *testing.T) { detaching(t, open) })
}

// input is an input with a text.
func input(run, text, when string) host.Command {
	return host.Command{Type: "input", Run: run, When: when, Content: []host.Part{{Type: "text", Text: text}}}
}

func do(t *testing.T, d Driver, c host.Command) string {
	t.Helper()
	run, err := d.Do(t.Context(), c)
	if err != nil {
		t.Fatalf("%s: %v", c.Type, err)
	}
	return run
}

// until reads events up to one that matches.
func until(t *testing.T, d Driver, after event.Seq, match func(event.Event) bool) []event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var list []event.Event
	for e, err := range d.Events(ctx, after) {
		if err != nil {
			t.Fatal(err)
		}
		if n := len(list); n > 0 && e.Seq <= list[n-1].Seq {
			t.Fatalf("event %d (%s) follows event %d", e.Seq, e.Body.Type(), list[n-1].Seq)
		}
		if list = append(list, e); match(e) {
			return list
		}
	}
	t.Fatalf("the events ended: %s", kinds(list))
	return nil
}

func resultOf(run string) func(event.Event) bool {
	return func(e event.Event) bool {
		b, ok := e.Body.(event.Result)
		return ok && b.Run == run
	}
}

func outcomes(list []event.Event) (found []string) {
	for _, e := range list {
		if b, ok := e.Body.(event.Result); ok {
			found = append(found, b.Run+" "+b.Outcome)
		}
	}
	return found
}

func kinds(list []event.Event) (found []string) {
	for _, e := range list {
		found = append(found, e.Body.Type())
	}
	return found
}

func results(t *testing.T, open Open) {
	d := open(t, coretest.Model(coretest.Say("One."), coretest.Turn{Err: &model.Error{Code: model.CodeRateLimited, Message: "slow down"}}, coretest.Say("Three.")))()
	for i, name := range []string{"first", "second", "third"} {
		if run := do(t, d, input(name, "go", "next")); run != name {
			t.Errorf("input %d is run %q", i, run)
		}
	}
	list := until(t, d, 0, resultOf("third"))
	if got := fmt.Sprint(outcomes(list)); got != "[first done second error third done]" {
		t.Errorf("results %s", got)
	}
	open1 := ""
	for _, e := range list {
		switch b := e.Body.(type) {
		case event.User:
			if open1 != "" {
				t.Errorf("run %s begins before the result of %s", b.Run, open1)
			}
			open1 = b.Run
		case event.Result:
			if b.Run != open1 {
				t.Errorf("the result of %s comes while %s is processed", b.Run, open1)
			}
			if (b.Error != nil) != (b.Outcome == "error") {
				t.Errorf("outcome %s with error %v", b.Outcome, b.Error)
			}
			open1 = ""
		}
	}
}

func cancelBehind(t *testing.T, open Open) {
	const times = 20
	turns := make([]coretest.Turn, times)
	for i := range turns {
		turns[i] = coretest.Turn{Text: "never", Block: make(chan struct{})}
	}
	d := open(t, coretest.Model(turns...))()
	after := event.Seq(0)
	for i := range times {
		run := do(t, d, input(fmt.Sprint("run", i), "go", ""))
		do(t, d, host.Command{Type: "cancel"})
		list := until(t, d, after, resultOf(run))
		after = list[len(list)-1].Seq
		if got := outcomes(list); !slices.Equal(got, []string{run + " cancelled"}) {
			t.Fatalf("results %v", got)
		}
		settle(t, d)
	}
}

// settle waits until the next input is taken: a result comes just before.
func settle(t *testing.T, d Driver) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); d.Now().Run != ""; {
		if time.Now().After(deadline) {
			t.Fatal("the session stays busy")
		}
	}
}

func queued(t *testing.T, open Open) {
	turn, started := blocked(make(chan struct{}))
	d := open(t, coretest.Model(turn, coretest.Say("After.")))()
	do(t, d, input("first", "go", ""))
	<-started
	do(t, d, input("second", "next", "next"))
	do(t, d, input("third", "and next", "next"))
	if now := d.Now(); now.Run != "first" || !slices.Equal(now.Queued, []string{"second", "third"}) {
		t.Errorf("now %+v", now)
	}
	do(t, d, host.Command{Type: "cancel", Reach: "model"})
	list := until(t, d, 0, resultOf("first"))
	if got := outcomes(list); !slices.Equal(got, []string{"second cancelled", "third cancelled", "first cancelled"}) {
		t.Errorf("results %v", got)
	}
	settle(t, d)
	do(t, d, input("fourth", "on", ""))
	list = until(t, d, list[len(list)-1].Seq, resultOf("fourth"))
	for _, e := range list {
		if b, ok := e.Body.(event.User); ok && b.Run != "fourth" {
			t.Errorf("input %s was processed after the cancel", b.Run)
		}
	}
}

// blocked is an answer that waits, and tells that the model was asked.
func blocked(release <-chan struct{}) (turn coretest.Turn, started <-chan struct{}) {
	asked := make(chan struct{})
	return coretest.Turn{Text: "One.", Hook: func(*model.Request) { close(asked) }, Block: release}, asked
}

// asking is a tool that asks.
func asking() core.Tool {
	return core.NewTool(core.ToolDefinition{Name: "asking", ReadOnly: true}, nil, func(ctx context.Context, c *core.Call, _ struct{}) (core.Result, error) {
		a, err := c.Ask(ctx, core.Question{Kind: core.QuestionConfirm, Title: "Sure?", Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}})
		return core.TextResult("the answer is " + string(a.Choice)), err
	})
}

func question(t *testing.T, open Open) {
	call := coretest.CallTools(model.ToolCall{Name: "asking", Args: "{}"})
	connect := open(t, coretest.Model(call, coretest.Say("Done.")), asking())
	first, second := connect(), connect()
	do(t, first, input("run", "go", ""))
	list := until(t, second, 0, func(e event.Event) bool { _, ok := e.Body.(event.Question); return ok })
	qid := list[len(list)-1].Body.(event.Question).QID
	if now := connect().Now(); now.Run != "run" || len(now.Questions) != 1 || now.Questions[0].QID != qid {
		t.Errorf("who joins now gets %+v", now)
	}
	var unknown *host.Error
	if _, err := second.Do(t.Context(), host.Command{Type: "answer", Question: qid, Choice: "perhaps"}); !errors.As(err, &unknown) || unknown.Code != host.CodeUnknown {
		t.Errorf("an unknown choice: %v", err)
	}
	do(t, second, host.Command{Type: "answer", Question: qid, Choice: core.ChoiceYes})
	if _, err := first.Do(t.Context(), host.Command{Type: "answer", Question: qid, Choice: core.ChoiceNo}); !errors.As(err, &unknown) || unknown.Code != host.CodeUnknown {
		t.Errorf("a second answer: %v", err)
	}
	list = until(t, first, 0, resultOf("run"))
	answers := 0
	for _, e := range list {
		if b, ok := e.Body.(event.Answer); ok && b.Choice == "yes" {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("%d answers in %v", answers, kinds(list))
	}
}

func added(t *testing.T, open Open) {
	d := open(t, coretest.Model(coretest.Say("One.")))()
	c := input("run", "go", "")
	c.Context = []host.Context{{Source: "main.go", Text: "package main\n</context>"}}
	do(t, d, c)
	for _, e := range until(t, d, 0, resultOf("run")) {
		b, ok := e.Body.(event.User)
		if !ok {
			continue
		}
		if want := "<context source=\"main.go\" trusted=false>\npackage main\n< /context>\n</context>"; len(b.Content) != 2 || b.Content[1] != model.Part(model.Text{Text: want}) {
			t.Errorf("content %q", b.Content)
		}
	}
}

// several asks questions of two calls at once, and answers the last first.
func several(t *testing.T, open Open) {
	call := model.ToolCall{Name: "asking", Args: "{}"}
	d := open(t, coretest.Model(coretest.CallTools(call, call), coretest.Say("Done.")), asking())()
	do(t, d, input("run", "go", ""))
	var open2 []string
	until(t, d, 0, func(e event.Event) bool {
		if b, ok := e.Body.(event.Question); ok {
			open2 = append(open2, b.QID)
		}
		return len(open2) == 2
	})
	if now := d.Now(); len(now.Questions) != 2 || open2[0] == open2[1] {
		t.Fatalf("questions %v, now %+v", open2, now)
	}
	do(t, d, host.Command{Type: "answer", Question: open2[1], Choice: core.ChoiceNo})
	do(t, d, host.Command{Type: "answer", Question: open2[0], Choice: core.ChoiceYes})
	answers := map[string]string{}
	for _, e := range until(t, d, 0, resultOf("run")) {
		if b, ok := e.Body.(event.Answer); ok {
			answers[b.QID] = b.Choice
		}
	}
	if answers[open2[0]] != "yes" || answers[open2[1]] != "no" {
		t.Errorf("answers %v to %v", answers, open2)
	}
}

// Policy is the policy of the sessions under test: it asks about unknown accesses,
// denies those of "forbidden", and allows all else.
type Policy struct{}

// Decide implements [core.Policy].
func (Policy) Decide(_ context.Context, req core.PermissionRequest) core.Decision {
	d := core.Decision{Verdict: core.Allow}
	for _, a := range req.Accesses {
		switch {
		case a.Resource == "forbidden":
			return core.Decision{Reason: "the test forbids it"}
		case a.Scope == core.ScopeUnknown:
			d.Verdict = core.Ask
		}
	}
	return d
}

// guarded is a tool about which [Policy] asks, or which it denies.
func guarded() core.Tool {
	type args struct {
		Text string `json:"text"`
	}
	return core.NewTool(core.ToolDefinition{Name: "guarded"}, func(_ context.Context, _ *core.Call, in args) ([]core.Access, error) {
		return core.UnknownAccess(in.Text), nil
	}, func(_ context.Context, _ *core.Call, in args) (core.Result, error) {
		return core.TextResult("did " + in.Text), nil
	})
}

// changed answers permission requests with other arguments.
func changed(t *testing.T, open Open) {
	call := coretest.CallTools(model.ToolCall{Name: "guarded", Args: `{"text":"asked"}`})
	d := open(t, coretest.Model(call, coretest.Say("One."), call, coretest.Say("Two."), call, coretest.Say("Three.")), guarded())()
	after := event.Seq(0)
	for run, tt := range map[string]struct{ args, want string }{
		"allowed":   {`{"text":"changed"}`, "did changed\n(Call corrected: the user changed the arguments to {\"text\":\"changed\"}.)"},
		"forbidden": {`{"text":"forbidden"}`, "the test forbids it"},
		"wrong":     {`{"text":1}`, "the user changed the arguments to"},
	} {
		do(t, d, input(run, "go", ""))
		asked := until(t, d, after, func(e event.Event) bool { _, ok := e.Body.(event.Question); return ok })
		last := asked[len(asked)-1]
		qid := last.Body.(event.Question).QID
		after = last.Seq
		var invalid *host.Error
		if _, err := d.Do(t.Context(), host.Command{Type: "answer", Question: qid, Choice: core.ChoiceSession, Args: []byte(`{}`)}); !errors.As(err, &invalid) || invalid.Code != host.CodeInvalid {
			t.Errorf("arguments for the session: %v", err)
		}
		do(t, d, host.Command{Type: "answer", Question: qid, Choice: core.ChoiceOnce, Args: []byte(tt.args)})
		list := until(t, d, after, resultOf(run))
		after = list[len(list)-1].Seq
		for _, e := range list {
			if b, ok := e.Body.(event.ToolResult); ok && !strings.Contains(b.Content.Text(), tt.want) {
				t.Errorf("%s: result %q, want %q in it", run, b.Content.Text(), tt.want)
			}
		}
		settle(t, d)
	}
}

func reconnect(t *testing.T, open Open) {
	connect := open(t, coretest.Model(coretest.Say("One."), coretest.Say("Two.")))
	d := connect()
	do(t, d, input("first", "go", ""))
	before := until(t, d, 0, resultOf("first"))
	settle(t, d)
	do(t, d, input("second", "go", ""))
	until(t, d, 0, resultOf("second"))
	after := until(t, connect(), before[len(before)-1].Seq, resultOf("second"))
	whole := until(t, connect(), 0, resultOf("second"))
	if got, want := kinds(slices.Concat(before, after)), kinds(whole); !slices.Equal(got, want) {
		t.Errorf("in two parts: %v\nat once: %v", got, want)
	}
}

func wrong(t *testing.T, open Open) {
	release := make(chan struct{})
	turn, started := blocked(release)
	d := open(t, coretest.Model(turn, coretest.Say("Two.")))()
	do(t, d, input("run", "go", ""))
	<-started
	for name, tt := range map[string]struct {
		c    host.Command
		code host.Code
	}{
		"unknown type": {host.Command{Type: "fly"}, host.CodeInvalid},
		"no content":   {host.Command{Type: "input"}, host.CodeInvalid},
		"bad part":     {host.Command{Type: "input", Content: []host.Part{{Type: "image"}}}, host.CodeInvalid},
		"bad when":     {input("", "x", "later"), host.CodeInvalid},
		"busy":         {input("", "x", ""), host.CodeBusy},
		"busy rewind":  {host.Command{Type: "rewind", Input: 1}, host.CodeBusy},
		"busy compact": {host.Command{Type: "compact"}, host.CodeBusy},
		"bad reach":    {host.Command{Type: "cancel", Reach: "moon"}, host.CodeInvalid},
		"no question":  {host.Command{Type: "answer", Question: "x"}, host.CodeUnknown},
		"no setting":   {host.Command{Type: "set", Setting: "x"}, host.CodeUnknown},
	} {
		var got *host.Error
		if _, err := d.Do(t.Context(), tt.c); !errors.As(err, &got) || got.Code != tt.code {
			t.Errorf("%s: error %v, want code %s", name, err, tt.code)
		}
	}
	if run := do(t, d, input("other", "and", "steer")); run != "run" {
		t.Errorf("a steered input belongs to run %q", run)
	}
	close(release)
	list := until(t, d, 0, resultOf("run"))
	if b := list[len(list)-1].Body.(event.Result); b.Text != "Two." {
		t.Errorf("the steered message was not read before the end: %+v", b)
	}
}

// all returns the events of a session that ends.
func all(t *testing.T, d Driver) (list []event.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range d.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func closing(t *testing.T, open Open) {
	d := open(t, coretest.Model(coretest.Turn{Text: "never", Block: make(chan struct{})}))()
	do(t, d, input("first", "go", ""))
	do(t, d, input("second", "next", "next"))
	do(t, d, host.Command{Type: "close"})
	list := all(t, d)
	got := outcomes(list)
	slices.Sort(got)
	if !slices.Equal(got, []string{"first aborted", "second cancelled"}) {
		t.Errorf("results %v of %v", got, kinds(list))
	}
	var closed *host.Error
	if _, err := d.Do(t.Context(), input("third", "go", "")); !errors.As(err, &closed) || closed.Code != host.CodeClosed {
		t.Errorf("an input to a closed session: %v", err)
	}
}
