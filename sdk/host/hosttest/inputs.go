package hosttest

import (
	"slices"
	"testing"

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
