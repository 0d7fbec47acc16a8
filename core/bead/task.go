package bead

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
)

// State is the state of a task or a bead.
type State string

// The states. A task is in the last four of its beads' states, or running.
const (
	Planned   State = "planned"
	Analysing State = "analysing" // the graph is asked what is affected
	Running   State = "running"   // the model works
	Merging   State = "merging"   // its worktree is merged into the workspace
	Verifying State = "verifying" // the criteria are checked
	Retrying  State = "retrying"  // it failed, and another bead follows
	Committed State = "committed" // its changes are verified
	Blocked   State = "blocked"   // it needs the user
	Exhausted State = "exhausted" // tokens or beads are used up
	Cancelled State = "cancelled"
	// Interrupted is the state of a task that says running, but no process works on it.
	Interrupted State = "interrupted"
)

// Final reports whether a task in the state is worked on no more, unless it is resumed.
func (s State) Final() bool {
	return s == Committed || s == Blocked || s == Exhausted || s == Cancelled
}

// The kinds of criteria.
const (
	TestsPass    = "tests-pass"
	LintPass     = "lint-pass"
	CommandPass  = "command"
	FileExists   = "file-exists"
	FileContains = "file-contains"
	DoneMarker   = "done-marker"
)

// The choices for changed tests.
const (
	AskTestChange   = "ask"
	FailTestChange  = "fail"
	AllowTestChange = "allow"
)

// Marker is the last line of an answer that claims that the work is complete.
const Marker = "DONE"

// ErrNoCommand means that nothing could prove that a task is complete.
var ErrNoCommand = errors.New("no command proves that the task is complete: pass one with --criteria 'COMMAND'")

// Check returns why a task cannot be worked on.
func Check(t event.TaskStart) error {
	switch {
	case strings.TrimSpace(t.Description) == "":
		return errors.New("the task has no description")
	case t.MaxBeads < 1:
		return fmt.Errorf("maxBeads is %d: expected 1 or more", t.MaxBeads)
	case t.TokenBudget < 0:
		return fmt.Errorf("tokenBudget is %d: expected 0 (no limit) or more", t.TokenBudget)
	case t.Rounds < 1:
		return fmt.Errorf("roundsPerBead is %d: expected 1 or more", t.Rounds)
	case t.Worktrees < 0:
		return fmt.Errorf("worktrees is %d: expected 1 or more", t.Worktrees)
	case !slices.Contains([]string{AskTestChange, FailTestChange, AllowTestChange}, t.TestChange):
		return fmt.Errorf("onTestChange is %q: expected ask, fail or allow", t.TestChange)
	}
	if err := checkCriteria(t.Criteria); err != nil {
		return err
	}
	if !slices.ContainsFunc(t.Criteria, decides) {
		return ErrNoCommand
	}
	return checkSteps(t.Steps)
}

// decides reports whether a criterion is a command that can complete a task.
func decides(c event.TaskCriterion) bool { return c.Kind == TestsPass || c.Kind == CommandPass }

func checkCriteria(all []event.TaskCriterion) error {
	names := map[string]bool{}
	for _, c := range all {
		if c.Name == "" || names[c.Name] {
			return fmt.Errorf("criterion %q: every criterion needs a name, and no two the same", c.Name)
		}
		names[c.Name] = true
		missing := ""
		switch c.Kind {
		case TestsPass, LintPass, CommandPass:
			if strings.TrimSpace(c.Command) == "" {
				missing = "command"
			}
		case FileContains, FileExists:
			if c.Path == "" {
				missing = "path"
			} else if c.Kind == FileContains && c.Text == "" {
				missing = "text"
			}
		case DoneMarker:
		default:
			return fmt.Errorf("criterion %s: unknown kind %q; expected tests-pass, lint-pass, command, file-exists, file-contains or done-marker", c.Name, c.Kind)
		}
		if missing != "" {
			return fmt.Errorf("criterion %s: kind %s needs a %s", c.Name, c.Kind, missing)
		}
	}
	return nil
}

// checkSteps returns why steps are no plan.
func checkSteps(steps []event.TaskStep) error {
	done := map[string]bool{}
	for _, s := range steps {
		if s.Name == "" || strings.TrimSpace(s.Title) == "" {
			return fmt.Errorf("step %q: every step needs a name and a title", s.Name)
		}
		if _, twice := done[s.Name]; twice {
			return fmt.Errorf("step %s: there are two of that name", s.Name)
		}
		done[s.Name] = false
		if err := checkCriteria(s.Criteria); err != nil {
			return fmt.Errorf("step %s: %w", s.Name, err)
		}
	}
	for _, s := range steps {
		for _, n := range s.Needs {
			if _, ok := done[n]; !ok {
				return fmt.Errorf("step %s needs %q, which is not a step", s.Name, n)
			}
		}
	}
	for next := ready(steps, done); len(next) > 0; next = ready(steps, done) {
		for _, s := range next {
			done[s.Name] = true
		}
	}
	for _, s := range steps {
		if !done[s.Name] {
			return fmt.Errorf("step %s needs itself, by way of what it needs", s.Name)
		}
	}
	return nil
}

// ready returns the steps that are not done and need nothing that is not done.
func ready(steps []event.TaskStep, done map[string]bool) []event.TaskStep {
	var all []event.TaskStep
	for _, s := range steps {
		if !done[s.Name] && !slices.ContainsFunc(s.Needs, func(n string) bool { return !done[n] }) {
			all = append(all, s)
		}
	}
	return all
}

// Done reports whether the last line of an answer is the [Marker], and nothing else.
func Done(response string) bool {
	response = strings.TrimRight(response, " \t\r\n")
	return response[strings.LastIndexByte(response, '\n')+1:] == Marker
}
