package event

import "encoding/json"

// PlanTool is the name of the tool with which the model sets its plan. Its
// results hold a [Plan].
const PlanTool = "update_plan"

// AskTool is the name of the tool with which the model asks the user. Results with
// an answer have it as their Structured.
const AskTool = "ask_user"

// Plan is what the model intends to do, step by step. Every result of
// [PlanTool] holds the complete plan, as its Structured.
type Plan struct {
	Explanation string     `json:"explanation,omitempty"` // why it changed
	Steps       []PlanStep `json:"plan"`
}

// PlanStep is a step of a [Plan].
type PlanStep struct {
	Step   string     `json:"step"`
	Status PlanStatus `json:"status"`
}

// PlanStatus is the status of a step.
type PlanStatus string

// The states of a step. At most one step of a plan is in progress.
const (
	StepPending    PlanStatus = "pending"
	StepInProgress PlanStatus = "in_progress"
	StepCompleted  PlanStatus = "completed"
)

// Done counts the steps that are completed.
func (p Plan) Done() int {
	n := 0
	for _, s := range p.Steps {
		if s.Status == StepCompleted {
			n++
		}
	}
	return n
}

// Current returns the step in progress, or "".
func (p Plan) Current() string {
	for _, s := range p.Steps {
		if s.Status == StepInProgress {
			return s.Step
		}
	}
	return ""
}

// Plan returns the plan that the result set; ok is false for a failure and for
// the result of another tool.
func (b ToolResult) Plan() (p Plan, ok bool) {
	if b.Name != PlanTool || b.IsError || json.Unmarshal(b.Structured, &p) != nil {
		return Plan{}, false
	}
	return p, true
}
