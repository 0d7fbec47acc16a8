package hosttest

import (
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
)

// kept checks that an idle session keeps a message for the next input, and that the
// conversation can continue without another input, also after a failed call.
func kept(t *testing.T, open Open) {
	failed := coretest.Turn{Err: &model.Error{Code: model.CodeRateLimited, Message: "slow down"}}
	d := open(t, coretest.Model(coretest.Say("One."), failed, coretest.Say("Three.")))()
	if run := do(t, d, input("none", "first", "keep")); run != "" || d.Now().Run != "" {
		t.Errorf("a kept message began run %q", run)
	}
	do(t, d, input("one", "second", ""))
	list := until(t, d, 0, resultOf("one"))
	settle(t, d)
	do(t, d, input("two", "third", ""))
	list = append(list, until(t, d, list[len(list)-1].Seq, resultOf("two"))...)
	settle(t, d)
	do(t, d, input("none", "fourth", "keep"))
	do(t, d, host.Command{Type: "continue", Run: "three"})
	list = append(list, until(t, d, list[len(list)-1].Seq, resultOf("three"))...)
	if got := outcomes(list); !slices.Equal(got, []string{"one done", "two error", "three done"}) {
		t.Errorf("results %v", got)
	}
	var read []string
	for _, e := range list {
		switch b := e.Body.(type) {
		case event.User:
			read = append(read, b.Content.Text())
		case event.Steering:
			read = append(read, b.Content.Text())
		}
	}
	if !slices.Equal(read, []string{"second", "first", "third", "fourth"}) {
		t.Errorf("the session read %q", read)
	}
}

// detaching checks that a detach leaves the question open, and gives each run a result.
func detaching(t *testing.T, open Open) {
	d := open(t, coretest.Model(coretest.CallTools(model.ToolCall{Name: "guarded", Args: `{"text":"asked"}`})), guarded())()
	do(t, d, input("first", "go", ""))
	do(t, d, input("second", "next", "next"))
	until(t, d, 0, func(e event.Event) bool { return e.Body.Type() == "question" })
	do(t, d, host.Command{Type: "detach"})
	list := all(t, d)
	got := outcomes(list)
	slices.Sort(got)
	if !slices.Equal(got, []string{"first parked", "second aborted"}) {
		t.Errorf("results %v of %v", got, kinds(list))
	}
	for _, e := range list {
		switch b := e.Body.(type) {
		case event.Answer, event.SessionEnd, event.Cancelled, event.ToolResult:
			t.Errorf("event %+v", b)
		case event.Result:
			if (b.Run == "first") != (len(b.Questions) == 1) {
				t.Errorf("run %s with the questions %+v", b.Run, b.Questions)
			}
		}
	}
	if d.Now().State != core.StateClosed {
		t.Errorf("state %s", d.Now().State)
	}
}
