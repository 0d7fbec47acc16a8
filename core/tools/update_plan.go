package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// Bounds of a plan, which the user should be able to follow.
const (
	maxSteps    = 50
	maxStepText = 500 // bytes
)

//go:embed update_plan.md
var updatePlanDoc string

type updatePlanArgs struct {
	Explanation string          `json:"explanation,omitempty"`
	Plan        []planStepInput `json:"plan"`
}

type planStepInput struct {
	Step   string `json:"step"`
	Status string `json:"status" jsonschema:"pending, in_progress or completed"`
}

// UpdatePlan returns the tool update_plan, with which the model shows the user
// its plan. It touches nothing, so it needs no approval; its structured result
// is an [event.Plan], which interfaces render.
func UpdatePlan() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        event.PlanTool,
		Description: strings.TrimSpace(updatePlanDoc),
	}, nil, runUpdatePlan)
}

func runUpdatePlan(_ context.Context, _ *core.Call, in updatePlanArgs) (core.Result, error) {
	plan := event.Plan{Explanation: strings.TrimSpace(in.Explanation)}
	if len(in.Plan) == 0 || len(in.Plan) > maxSteps {
		return invalid("A plan has 1 to %d steps; this one has %d.", maxSteps, len(in.Plan))
	}
	current := 0
	for i, s := range in.Plan {
		step := event.PlanStep{Step: strings.Join(strings.Fields(s.Step), " "), Status: event.PlanStatus(s.Status)}
		switch {
		case step.Step == "":
			return invalid("Step %d is empty. Say what to do.", i+1)
		case len(step.Step) > maxStepText:
			return invalid("Step %d is longer than %d characters. Say it in a few words.", i+1, maxStepText)
		}
		switch step.Status {
		case event.StepInProgress:
			current++
		case event.StepPending, event.StepCompleted:
		default:
			return invalid("The status of step %d is %q; it must be pending, in_progress or completed.", i+1, s.Status)
		}
		plan.Steps = append(plan.Steps, step)
	}
	if current > 1 {
		return invalid("%d steps are in_progress; at most one can be. Set the others to pending or completed.", current)
	}
	data, err := json.Marshal(plan)
	if err != nil {
		return core.Result{}, err
	}
	res := core.TextResult(fmt.Sprintf("The plan is updated: %d of %d steps completed.", plan.Done(), len(plan.Steps)))
	res.Structured = data
	return res, nil
}
