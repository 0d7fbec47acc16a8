package planmode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/permissions"
)

// Tool is the name of the tool with which the model submits its plan.
const Tool = "submit_plan"

// instructions tell the model what mode plan is.
const instructions = `Plan mode is on: nothing may be changed. Explore with tools that only read, ask the user about what is unclear, and make a plan: what is to be changed in which files, in which order, and how it is verified.`

// Text tells the model of an interactive session that mode plan is on.
const Text = instructions + submit

// submit and print say what becomes of the plan.
const (
	submit = " Then call " + Tool + " with the whole plan as Markdown. The user approves it or sends it back; change nothing before."
	print  = " Answer with the whole plan as Markdown, and nothing else."
)

// Printed adds to the inputs of a non-interactive session that the answer is a plan.
type Printed struct{}

// Context implements [core.ContextSource].
func (Printed) Context(context.Context, core.ContextRequest) ([]core.Block, error) {
	return []core.Block{{Source: "plan_mode", Trusted: true, Text: instructions + print}}, nil
}

// Mode is mode plan in one interactive session: a toolset and a context source. It
// is safe for concurrent use.
type Mode struct {
	dir     string
	approve func(ctx context.Context, m permissions.Mode) error
	modes   func() []permissions.Mode

	mu      sync.Mutex
	on      bool
	left    bool // the model does not know yet that it is off
	changed chan struct{}
	amended map[string]string // plans as the user edited them, by call
}

// New returns the mode, which is off. Plans are saved below dir; empty saves none.
// Modes returns the modes in which a plan can be carried out, and approve switches
// to one of them.
func New(dir string, modes func() []permissions.Mode, approve func(ctx context.Context, m permissions.Mode) error) *Mode {
	return &Mode{dir: dir, modes: modes, approve: approve, changed: make(chan struct{}, 1), amended: map[string]string{}}
}

// Set turns the mode on or off.
func (m *Mode) Set(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on == on {
		return
	}
	m.on, m.left = on, !on
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *Mode) isOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// Amend replaces the plan of a call that waits for its answer by the user's version.
func (m *Mode) Amend(call, plan string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.amended[call] = plan
}

// Context implements [core.ContextSource].
func (m *Mode) Context(context.Context, core.ContextRequest) ([]core.Block, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := ""
	switch {
	case m.on:
		text = Text
	case m.left:
		m.left, text = false, "Plan mode is off: changes are possible again."
	default:
		return nil, nil
	}
	return []core.Block{{Source: "plan_mode", Trusted: true, Text: text}}, nil
}

// Name implements [core.Toolset].
func (m *Mode) Name() string { return "plan" }

// Tools implements [core.Toolset].
func (m *Mode) Tools(context.Context) ([]core.Tool, error) {
	if !m.isOn() {
		return nil, nil
	}
	return []core.Tool{core.NewTool(core.ToolDefinition{
		Name: Tool, Description: "Submits the plan in plan mode. The user approves it, changes it, or sends it back with comments.",
	}, nil, m.run)}, nil
}

// Changed implements [core.Toolset].
func (m *Mode) Changed() <-chan struct{} { return m.changed }

// Close implements [core.Toolset].
func (m *Mode) Close() error { return nil }

type planArgs struct {
	Plan string `json:"plan" jsonschema:"the whole plan, as Markdown"`
}

// choice is the answer that carries out a plan in a mode.
func choice(m permissions.Mode) core.Choice {
	what := map[permissions.Mode]string{
		permissions.ModeDefault:     "approve, and ask before each change",
		permissions.ModeAcceptEdits: "approve, and accept all edits",
		permissions.ModeWorkspace:   "approve, and run it in the sandbox",
	}[m]
	return core.Choice(fmt.Sprintf("%s (mode %s)", what, m))
}

func (m *Mode) run(ctx context.Context, call *core.Call, in planArgs) (core.Result, error) {
	switch {
	case strings.TrimSpace(in.Plan) == "":
		return core.Fail(core.CodeValidation, "plan is empty. Give the whole plan."), nil
	case len(call.Session.AgentPath) > 0:
		return core.Fail(core.CodeValidation, "Only the main agent submits the plan. Report what you found instead."), nil
	}
	path, err := m.save(call.Session.ID, in.Plan)
	if err != nil {
		return core.Result{}, err
	}
	q := core.Question{Kind: core.QuestionConfirm, Title: "Carry out this plan?", Detail: path}
	for _, mode := range m.modes() {
		q.Choices = append(q.Choices, choice(mode))
	}
	q.Choices = append(q.Choices, core.ChoiceDeny)
	answer, err := call.Ask(ctx, q)
	if err != nil {
		return core.Result{}, err
	}
	m.mu.Lock()
	plan, changed := m.amended[call.ID]
	delete(m.amended, call.ID)
	m.mu.Unlock()
	for _, mode := range m.modes() {
		if answer.Choice != choice(mode) {
			continue
		}
		if changed {
			if _, err := m.save(call.Session.ID, plan); err != nil {
				return core.Result{}, err
			}
		}
		if err := m.approve(ctx, mode); err != nil {
			return core.Result{}, err
		}
		m.told()
		text := "The user approved the plan, and plan mode is off. Carry it out now."
		if changed {
			text += " The user changed it to:\n\n" + plan
		}
		return core.TextResult(text), nil
	}
	if reason := strings.TrimSpace(answer.Reason); reason != "" {
		return core.TextResult("The user sends the plan back: " + reason + "\nRevise it and submit it again."), nil
	}
	return core.TextResult("The user did not approve the plan. Plan mode stays on: ask what to change, and wait."), nil
}

// told says that the model knows that the mode is off.
func (m *Mode) told() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = false
}

// save writes a session's plan and returns the file's path; empty if there is no
// directory for it.
func (m *Mode) save(session, plan string) (string, error) {
	if m.dir == "" {
		return "", nil
	}
	path := filepath.Join(m.dir, session+".md")
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return "", fmt.Errorf("the plan was not saved: %w", err)
	}
	if err := os.WriteFile(path, []byte(strings.TrimRight(plan, "\n")+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("the plan was not saved: %w", err)
	}
	return path, nil
}
