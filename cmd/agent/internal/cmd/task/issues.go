package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/bead"
	"github.com/seed-009c0928/agent/core/event"
)

// issue is an issue of the tracker beads, as its JSONL export has it: the members that
// matter here.
type issue struct {
	Record       string       `json:"_type,omitempty"` // "issue"; other records are no work
	ID           string       `json:"id"`
	Title        string       `json:"title"`
	Description  string       `json:"description,omitempty"`
	Design       string       `json:"design,omitempty"`
	Acceptance   string       `json:"acceptance_criteria,omitempty"`
	Notes        string       `json:"notes,omitempty"`
	Status       string       `json:"status,omitempty"`
	Priority     int          `json:"priority"`
	Type         string       `json:"issue_type,omitempty"`
	Created      time.Time    `json:"created_at"`
	Updated      time.Time    `json:"updated_at"`
	Closed       *time.Time   `json:"closed_at,omitempty"`
	CloseReason  string       `json:"close_reason,omitempty"`
	Dependencies []dependency `json:"dependencies,omitempty"`
	Metadata     any          `json:"metadata,omitempty"` // whatever anybody keeps there; see files
	Ephemeral    bool         `json:"ephemeral,omitempty"`
	Template     bool         `json:"is_template,omitempty"`

	whole json.RawMessage // with the members that do not matter here
}

// files are those that an issue is expected to change, as agent task export and others
// keep them in the metadata.
func (i issue) files() (names []string) {
	m, _ := i.Metadata.(map[string]any)
	list, _ := m["files"].([]any)
	for _, f := range list {
		if name, ok := f.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

type dependency struct {
	Issue     string    `json:"issue_id"`
	DependsOn string    `json:"depends_on_id"`
	Type      string    `json:"type"`
	Created   time.Time `json:"created_at"`
}

// The words of the tracker.
const (
	issueOpen, issueWorking, issueBlocked, issueClosed = "open", "in_progress", "blocked", "closed"
	blocks, parentChild, epic                          = "blocks", "parent-child", "epic"
	verified                                           = "verified by its criteria"
)

// fromIssues makes a task of the issues that are ready to be worked on, or are when
// others of them are done: an epic describes it, the others are its steps, by their
// priority.
func fromIssues(text string) (t event.TaskStart, err error) {
	all, err := readIssues(text)
	if err != nil {
		return t, err
	}
	var titles []string
	for _, i := range all.open() {
		if i.Type == epic {
			t.Description = strings.TrimSpace(t.Description + "\n\n" + i.Title + "\n\n" + i.Description)
			continue
		}
		titles = append(titles, "- "+i.ID+": "+i.Title)
		s := event.TaskStep{Name: i.ID, Title: strings.TrimSpace(i.Title + "\n" + i.Description), Needs: all.needs(i), Files: i.files(), Issue: string(i.whole)}
		for _, more := range [][2]string{{"Design", i.Design}, {"Acceptance criteria", i.Acceptance}, {"Notes", i.Notes}} {
			if more[1] != "" {
				s.Title += "\n" + more[0] + ": " + more[1]
			}
		}
		t.Steps = append(t.Steps, s)
	}
	if len(t.Steps) == 0 {
		return t, cmdutil.Usagef("no bead is left to work on: all are closed, deferred, or need one that is")
	}
	if t.Description == "" {
		t.Description = "Work on these issues:\n" + strings.Join(titles, "\n")
	}
	return t, nil
}

// issues are those of a file, by their priority.
type issues []issue

func readIssues(text string) (all issues, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	for n := 1; dec.More(); n++ {
		var i issue
		if err := dec.Decode(&i.whole); err != nil {
			return nil, cmdutil.Usagef("bead %d cannot be read: %w", n, err)
		}
		var kind struct {
			Record string `json:"_type"`
		}
		if json.Unmarshal(i.whole, &kind) == nil && kind.Record != "" && kind.Record != "issue" {
			continue // such as a memory
		}
		if err := json.Unmarshal(i.whole, &i); err != nil {
			return nil, cmdutil.Usagef("bead %d cannot be read: %w", n, err)
		}
		if i.ID == "" || i.Title == "" {
			return nil, cmdutil.Usagef("bead %d: id or title is missing", n)
		}
		all = append(all, i)
	}
	slices.SortStableFunc(all, func(a, b issue) int { return a.Priority - b.Priority })
	return all, nil
}

// works reports whether an issue is to be worked on, if nothing keeps it.
func (i issue) works() bool {
	switch i.Status {
	case "", issueOpen, issueWorking, issueBlocked:
	default:
		return false
	}
	return !i.Ephemeral && !i.Template && slices.Contains([]string{"", "task", "bug", "feature", "chore", epic}, i.Type)
}

// done reports whether an issue keeps no other one.
func (i issue) done() bool { return i.Status == issueClosed || i.Status == "tombstone" }

// open returns the issues to work on, without those that need one which is neither
// done nor among them.
func (all issues) open() issues {
	open := slices.DeleteFunc(slices.Clone(all), func(i issue) bool { return !i.works() })
	for {
		left := slices.DeleteFunc(slices.Clone(open), func(i issue) bool {
			return slices.ContainsFunc(all.blockers(i), func(b issue) bool { return !b.done() && !open.has(b.ID) })
		})
		if len(left) == len(open) {
			return open
		}
		open = left
	}
}

func (all issues) has(id string) bool {
	return slices.ContainsFunc(all, func(i issue) bool { return i.ID == id })
}

// blockers returns the issues that must be done before one: its own, and those of the
// epics that it is part of.
func (all issues) blockers(i issue) (found issues) {
	for at, seen := i, map[string]bool{}; !seen[at.ID]; {
		seen[at.ID] = true
		up := at
		for _, d := range at.Dependencies {
			n := slices.IndexFunc(all, func(o issue) bool { return o.ID == d.DependsOn })
			switch {
			case n < 0: // of another tracker
			case d.Type == blocks || d.Type == "":
				found = append(found, all[n])
			case d.Type == parentChild:
				up = all[n]
			}
		}
		at = up
	}
	return found
}

// needs returns the names of the steps that must be done before an issue. An epic is
// done when what is part of it is.
func (all issues) needs(i issue) (names []string) {
	open := all.open()
	for _, b := range all.blockers(i) {
		for _, o := range open {
			if o.Type != epic && o.ID != i.ID && (o.ID == b.ID || b.Type == epic && all.partOf(o, b.ID)) && !slices.Contains(names, o.ID) {
				names = append(names, o.ID)
			}
		}
	}
	return names
}

// partOf reports whether an issue is below another one.
func (all issues) partOf(i issue, id string) bool {
	for range all {
		up := slices.IndexFunc(i.Dependencies, func(d dependency) bool { return d.Type == parentChild })
		if up < 0 {
			return false
		}
		parent := i.Dependencies[up].DependsOn
		if parent == id {
			return true
		}
		n := slices.IndexFunc(all, func(o issue) bool { return o.ID == parent })
		if n < 0 {
			return false
		}
		i = all[n]
	}
	return false
}

// toIssues describes a task in the tracker's format: an epic with its steps, without a
// plan one issue, and a task made of issues as these issues, whole, since the tracker's
// import clears what is missing.
func toIssues(s bead.Status) (all []any, err error) {
	if len(s.Task.Steps) > 0 && s.Task.Steps[0].Issue != "" {
		return updated(s)
	}
	title, rest, _ := strings.Cut(strings.TrimSpace(s.Task.Description), "\n")
	var commands []string
	for _, c := range s.Task.Criteria {
		if c.Command != "" {
			commands = append(commands, c.Command)
		}
	}
	root := issue{
		ID: "agent-" + s.Task.Task, Title: clip(title, 500), Description: strings.TrimSpace(rest), Acceptance: strings.Join(commands, "\n"),
		Status: statusOf(s.State), Priority: 2, Type: "task", Created: s.Started, Updated: s.Changed, Notes: s.Reason,
	}
	root.close(s.State == bead.Committed, s.Changed)
	if len(s.Task.Steps) == 0 {
		return []any{root}, nil
	}
	root.Type = epic
	ids := map[string]string{}
	all = append(all, root)
	for i, step := range s.Task.Steps {
		ids[step.Name] = fmt.Sprintf("%s.%d", root.ID, i+1)
	}
	for _, step := range s.Task.Steps {
		title, rest, _ := strings.Cut(step.Title, "\n")
		one := issue{ID: ids[step.Name], Title: clip(title, 500), Description: rest, Status: issueOpen, Priority: 2, Type: "task", Created: s.Started, Updated: s.Changed}
		one.Status = stepStatus(s, step.Name, issueOpen)
		if len(step.Files) > 0 {
			one.Metadata = map[string]any{"files": step.Files}
		}
		one.close(s.Done()[step.Name], s.Changed)
		one.Dependencies = []dependency{{one.ID, root.ID, parentChild, s.Started}}
		for _, n := range step.Needs {
			one.Dependencies = append(one.Dependencies, dependency{one.ID, ids[n], blocks, s.Started})
		}
		all = append(all, one)
	}
	return all, nil
}

// stepStatus returns the status of a step that is not done, which was otherwise.
func stepStatus(s bead.Status, step, otherwise string) string {
	for _, b := range slices.Backward(s.Beads) {
		switch {
		case b.Step != step:
		case b.End == nil:
			return issueWorking
		case b.State == bead.Blocked:
			return issueBlocked
		}
	}
	return otherwise
}

// updated returns the issues of a task as they are now, with all that was in them.
func updated(s bead.Status) (all []any, err error) {
	done := s.Done()
	for _, step := range s.Task.Steps {
		one, was := map[string]any{}, issue{}
		if err := errors.Join(json.Unmarshal([]byte(step.Issue), &one), json.Unmarshal([]byte(step.Issue), &was)); err != nil {
			return nil, fmt.Errorf("issue %s: %w", step.Name, err)
		}
		one["status"] = stepStatus(s, step.Name, cmp.Or(was.Status, issueOpen))
		if done[step.Name] {
			one["status"], one["closed_at"], one["close_reason"] = issueClosed, s.Changed, verified
		}
		if one["status"] != was.Status {
			one["updated_at"] = s.Changed
		}
		all = append(all, one)
	}
	return all, nil
}

func (i *issue) close(done bool, at time.Time) {
	if done {
		i.Status, i.Closed, i.CloseReason = issueClosed, &at, verified
	}
}

func statusOf(s bead.State) string {
	switch s {
	case bead.Blocked:
		return issueBlocked
	case bead.Running, bead.Interrupted:
		return issueWorking
	}
	return issueOpen
}
