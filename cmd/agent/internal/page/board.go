package page

import (
	"strings"

	"github.com/seed-009c0928/agent/core/bead"
)

// board is what became of a task.
type board struct{ bead.Status }

// boardRow is a bead.
type boardRow struct {
	Number        int
	Step          string
	Worktree      string
	State, Reason string
	Criteria      string
	Used          int
	Cost          string
	Failed        bool
}

// Board returns the board of the session's task, or nil.
func (r *record) Board() *board {
	if r.board.Task.Task == "" && len(r.board.Beads) == 0 {
		return nil
	}
	b := r.board
	if b.State == bead.Running && !r.Running {
		b.State = bead.Interrupted
	}
	return &b
}

// Now returns the state of the task.
func (b *board) Now() string { return string(b.State) }

// Rows returns the beads.
func (b *board) Rows() (rows []boardRow) {
	for _, one := range b.Beads {
		row := boardRow{Number: one.Bead, Step: one.Step, Worktree: one.Worktree, State: string(one.State), Reason: one.Reason, Cost: "–"}
		row.Failed = one.State == bead.Retrying || one.State == bead.Blocked || one.State == bead.Exhausted
		var criteria []string
		for _, c := range one.Criteria {
			criteria = append(criteria, c.Name+" "+c.Status)
		}
		for _, g := range one.Guards {
			criteria = append(criteria, g.Kind+" "+g.Path)
		}
		row.Criteria = strings.Join(criteria, ", ")
		if one.Result != nil {
			if row.Used = one.Result.Used; one.Result.CostUSD > 0 {
				row.Cost = dollars(one.Result.CostUSD)
			}
		}
		rows = append(rows, row)
	}
	return rows
}
