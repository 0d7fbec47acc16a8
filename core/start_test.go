package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/model"
)

// TestStart: from Start on the session is processing, and a Cancel counts.
func TestStart(t *testing.T) {
	r := newRig(t, nil, coretest.Say("Hello."))
	work, err := r.Start(t.Context(), core.TextInput("go"))
	if err != nil || r.State() != core.StateProcessing {
		t.Fatalf("error %v, state %s", err, r.State())
	}
	if _, err := r.Start(t.Context(), core.TextInput("again")); !errors.Is(err, core.ErrBusy) {
		t.Errorf("a second input: %v", err)
	}
	r.Cancel("changed my mind")
	if out, err := work(); err != nil || out.Stop != core.StopCancelled || len(r.model.Requests()) != 0 {
		t.Errorf("outcome %+v, %v, %d requests", out, err, len(r.model.Requests()))
	}
	if out := r.submit(t, "go on"); out.Text != "Hello." {
		t.Errorf("outcome %+v", out)
	}
}

// TestSteerDuringTheLastAnswer: the message is read before the run ends.
func TestSteerDuringTheLastAnswer(t *testing.T) {
	var r *rig
	first := coretest.Turn{Text: "Done.", Hook: func(*model.Request) { r.Steer(core.TextInput("and the tests")) }}
	r = newRig(t, nil, first, coretest.Say("Both done."))
	if out := r.submit(t, "go"); out.Text != "Both done." || out.Stop != core.StopDone || r.Unread() {
		t.Errorf("outcome %+v", out)
	}
	if got := sent(r.model.Requests()[1]); !strings.HasSuffix(got, "assistant: Done.\nuser: and the tests") {
		t.Errorf("the model gets %s", got)
	}
}

// TestInterruptEndsTheRunningTool: the session stays usable.
func TestInterruptEndsTheRunningTool(t *testing.T) {
	var r *rig
	slow := tool("slow", func(ctx context.Context, _ *core.Call, _ note) (core.Result, error) {
		r.Interrupt("at once")
		<-ctx.Done()
		return core.Result{}, ctx.Err()
	})
	r = newRig(t, func(c *core.Config) { c.Tools, c.Profile.Sequential = core.StaticTools(slow, echo), true },
		coretest.CallTools(call("slow", `{"text":""}`), call("echo", `{"text":"x"}`)), coretest.Say("On we go."))
	if out := r.submit(t, "go"); out.Stop != core.StopCancelled || r.State() != core.StateIdle {
		t.Fatalf("outcome %+v, state %s", out, r.State())
	}
	r.submit(t, "go on")
	for _, res := range results(r.model.Requests()[1]) {
		if !res.IsError {
			t.Errorf("the model got %+v, want two cancelled results", res)
		}
	}
}
