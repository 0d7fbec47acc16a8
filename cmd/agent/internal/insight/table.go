package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// Table is a part of a report as rows of text. The texts come from logs: make them
// printable before they are shown.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// tableRows is the number of rows of a table; the rest is in the JSON.
const tableRows = 10

// Tables returns the report for people.
func (r *Report) Tables() []Table {
	return []Table{
		r.total(),
		workTable("By model", "Model", r.Models),
		workTable("By project", "Directory", r.Projects),
		workTable("By skill", "Skill", r.Skills),
		r.slowest(),
		r.failing(),
		r.asked(),
	}
}

func (r *Report) total() Table {
	t, c := r.Total, r.Context
	t.Millis = max(t.Millis, 0)
	rows := [][]string{
		{"Sessions", strconv.Itoa(t.Sessions)},
		{"Time at work", millis(t.Millis)},
		{"Waited for answers", millis(r.Wait)},
		{"Model calls", strconv.Itoa(t.Calls)},
		{"Tokens in", display.Count(t.Usage.Input)},
		{"Tokens from the cache", share(t.Usage.CachedInput, t.Usage.Input)},
		{"Tokens out", display.Count(t.Usage.Output)},
		{"Cost", t.Cost()},
		{"Context, average", "unknown"},
		{"Context, fullest", "unknown"},
		{"Compactions", strconv.Itoa(c.Compact)},
	}
	if c.Sessions > 0 {
		rows[8][1] = fmt.Sprintf("%.0f %%", 100*c.Average)
		rows[9][1] = fmt.Sprintf("%.0f %% (%s over 80 %%)", 100*c.Most, display.Plural(c.Near, "session"))
	}
	if len(r.Damaged) > 0 {
		rows = append(rows, []string{"Damaged sessions", strings.Join(r.Damaged, ", ")})
	}
	return Table{"Total", []string{"What", "Value"}, rows}
}

// Cost is the cost in words; it says what is unknown.
func (w Work) Cost() string {
	switch {
	case w.Unpriced == 0:
		return fmt.Sprintf("$%.2f", w.CostUSD)
	case w.CostUSD == 0:
		return "unknown"
	}
	return fmt.Sprintf("$%.2f and %s without a known price", w.CostUSD, display.Plural(w.Unpriced, "call"))
}

func workTable(title, name string, groups []Group) Table {
	t := Table{Title: title, Head: []string{name, "Sessions", "Calls", "Time", "Tokens in", "Cached", "Tokens out", "Cost"}}
	for _, g := range groups[:min(tableRows, len(groups))] {
		t.Rows = append(t.Rows, []string{
			g.Name, strconv.Itoa(g.Sessions), strconv.Itoa(g.Calls), millis(g.Millis),
			display.Count(g.Usage.Input), share(g.Usage.CachedInput, g.Usage.Input), display.Count(g.Usage.Output), g.Cost(),
		})
	}
	return t
}

func (r *Report) slowest() Table {
	t := Table{Title: "Slowest tools", Head: []string{"Tool", "Calls", "Time", "Average", "Slowest", "Tokens of results (estimate)"}}
	for _, tool := range r.Tools[:min(tableRows, len(r.Tools))] {
		t.Rows = append(t.Rows, []string{
			tool.Name, strconv.Itoa(tool.Calls), millis(tool.Millis), millis(tool.Millis / int64(max(1, tool.Calls))), millis(tool.Slowest), display.Count(tool.Tokens),
		})
	}
	return t
}

func (r *Report) failing() Table {
	t := Table{Title: "Failing tools", Head: []string{"Tool", "Failed", "Of calls", "Why"}}
	tools := slices.DeleteFunc(slices.Clone(r.Tools), func(t Tool) bool { return t.Failed == 0 })
	slices.SortStableFunc(tools, func(a, b Tool) int { return cmp.Compare(b.Failed, a.Failed) })
	for _, tool := range tools[:min(tableRows, len(tools))] {
		var why []string
		for code, n := range tool.Failures {
			why = append(why, fmt.Sprintf("%s %d", strings.ToLower(strings.ReplaceAll(code, "_", " ")), n))
		}
		slices.Sort(why)
		t.Rows = append(t.Rows, []string{tool.Name, strconv.Itoa(tool.Failed), share(tool.Failed, tool.Calls), strings.Join(why, ", ")})
	}
	return t
}

func (r *Report) asked() Table {
	t := Table{Title: "Permissions asked for", Head: []string{"Tool", "Asked", "Approved", "Waited", "Rule that would answer it"}}
	for _, q := range r.Requests[:min(tableRows, len(r.Requests))] {
		t.Rows = append(t.Rows, []string{q.Tool, strconv.Itoa(q.Asked), strconv.Itoa(q.Approved), millis(q.Millis), cmp.Or(strings.Join(q.Rules, ", "), "none")})
	}
	return t
}

func millis(n int64) string { return display.Duration(time.Duration(n) * time.Millisecond) }

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", 100*part/whole)
}
