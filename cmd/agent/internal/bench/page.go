package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/bench/page"
)

// mark is that of the table in docs/performance.md.
const mark = "bench"

// writePage replaces the table of a page.
func writePage(name, machine string, contestants []contestant, rows []row) error {
	var table strings.Builder
	fmt.Fprintf(&table, "%s.\n\n", machine)
	markdown(&table, contestants, rows)
	return page.Replace(name, mark, table.String())
}

func markdown(w io.Writer, contestants []contestant, rows []row) {
	fmt.Fprint(w, "| Measure | Goal |")
	for _, c := range contestants {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, "\n| --- | ---: |%s\n", strings.Repeat(" ---: |", len(contestants)))
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s |", r.label, r.goal())
		for _, v := range r.results {
			fmt.Fprintf(w, " %.4g %s (%.4g–%.4g) |", v.median, r.unit, v.low, v.high)
		}
		fmt.Fprintln(w)
	}
}

// goal is the target as text, empty without one.
func (r row) goal() string {
	if r.target == 0 {
		return ""
	}
	return fmt.Sprintf("≤ %g %s", r.target, r.unit)
}
