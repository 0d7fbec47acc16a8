package tools_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/tools"
)

func steps(pairs ...string) []any {
	var out []any
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, args{"step": pairs[i], "status": pairs[i+1]})
	}
	return out
}

func TestUpdatePlan(t *testing.T) {
	t.Parallel()
	result, text := run(t, tools.UpdatePlan(), env.NewMemory("/w", nil), args{
		"explanation": " more to do ",
		"plan":        steps("read  the\ncode", "completed", "change it", "in_progress", "test it", "pending"),
	})
	if want := "The plan is updated: 1 of 3 steps completed."; text != want || result.Code != "" {
		t.Errorf("answered %q (%s), want %q", text, result.Code, want)
	}
	shown := event.ToolResult{Name: "update_plan", Structured: result.Structured}
	got, ok := shown.Plan()
	want := event.Plan{Explanation: "more to do", Steps: []event.PlanStep{
		{Step: "read the code", Status: event.StepCompleted},
		{Step: "change it", Status: event.StepInProgress},
		{Step: "test it", Status: event.StepPending},
	}}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("interfaces get %+v, %v; want %+v", got, ok, want)
	}
	if got.Done() != 1 || got.Current() != "change it" {
		t.Errorf("done %d, current %q", got.Done(), got.Current())
	}
}

func TestUpdatePlanRefuses(t *testing.T) {
	t.Parallel()
	many := steps()
	for range 51 {
		many = append(many, steps("x", "pending")...)
	}
	for name, c := range map[string]struct {
		plan []any
		want string
	}{
		"nothing":         {[]any{}, "1 to 50 steps; this one has 0"},
		"too much":        {many, "1 to 50 steps; this one has 51"},
		"an empty step":   {steps("a", "pending", " \n", "pending"), "Step 2 is empty"},
		"a long step":     {steps(strings.Repeat("x", 501), "pending"), "longer than 500"},
		"another status":  {steps("a", "done"), `The status of step 1 is "done"; it must be pending, in_progress or completed`},
		"two in progress": {steps("a", "in_progress", "b", "in_progress"), "2 steps are in_progress; at most one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, text := run(t, tools.UpdatePlan(), env.NewMemory("/w", nil), args{"plan": c.plan})
			if result.Code != core.CodeValidation || !strings.Contains(text, c.want) {
				t.Errorf("answered %q (%s), want %q", text, result.Code, c.want)
			}
			if _, ok := (event.ToolResult{Name: "update_plan", IsError: true, Structured: result.Structured}).Plan(); ok {
				t.Error("an invalid plan has a structured result")
			}
		})
	}
}
