package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
)

// planFile is a task with its plan, as agent task plan writes it.
type planFile struct {
	Description string                `json:"description"`
	Criteria    []event.TaskCriterion `json:"criteria,omitempty"`
	Steps       []event.TaskStep      `json:"steps"`
}

// parse reads a task: a plan, beads of a tracker, or else a text.
func parse(text string) (event.TaskStart, error) {
	if !strings.HasPrefix(text, "{") {
		return event.TaskStart{Description: text}, nil
	}
	first, _, _ := strings.Cut(text, "\n")
	var record issue
	if json.Unmarshal([]byte(first), &record) == nil && (record.Record != "" || record.ID != "" && record.Title != "") {
		return fromIssues(text)
	}
	var p planFile
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return event.TaskStart{}, cmdutil.Usagef("the plan cannot be read: %w", err)
	}
	return event.TaskStart{Description: p.Description, Criteria: p.Criteria, Steps: p.Steps}, nil
}

// criteriaOf reads the values of --criteria.
func criteriaOf(values []string) (all []event.TaskCriterion, err error) {
	for i, v := range values {
		c := event.TaskCriterion{Name: fmt.Sprintf("criterion-%d", i+1), Kind: bead.CommandPass, Command: strings.TrimSpace(v)}
		kind, value, _ := strings.Cut(v, "=")
		switch kind {
		case "lint":
			c.Kind, c.Command = bead.LintPass, value
		case "file":
			c.Kind, c.Command, c.Path = bead.FileExists, "", value
		case "contains":
			c.Kind, c.Command = bead.FileContains, ""
			c.Path, c.Text, _ = strings.Cut(value, ":")
			if c.Path == "" || c.Text == "" {
				return nil, cmdutil.Usagef("--criteria %q: expected contains=PATH:TEXT", v)
			}
		default:
			if isTests(c.Command) {
				c.Kind = bead.TestsPass
			}
		}
		if c.Command == "" && c.Path == "" {
			return nil, cmdutil.Usagef("--criteria %q: expected a command, lint=COMMAND, file=PATH or contains=PATH:TEXT", v)
		}
		all = append(all, c)
	}
	return all, nil
}

// isTests reports whether a command runs tests.
func isTests(command string) bool {
	return slices.ContainsFunc(strings.Fields(command), func(w string) bool {
		return w == "test" || w == "pytest" || w == "jest" || w == "vitest"
	})
}

func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
