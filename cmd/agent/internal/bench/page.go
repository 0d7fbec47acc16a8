package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// The marks of docs/performance.md, between which the table is.
const (
	pageStart = "<!-- bench -->\n"
	pageEnd   = "<!-- end of bench -->\n"
)

// writePage replaces the table of a page.
func writePage(name, machine string, contestants []contestant, rows []row) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(data), pageStart)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		return fmt.Errorf("%s: expected the lines %q and %q, between which the table goes", name, strings.TrimSpace(pageStart), strings.TrimSpace(pageEnd))
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%s.\n\n", machine)
	markdown(&table, contestants, rows)
	return os.WriteFile(name, []byte(before+pageStart+table.String()+pageEnd+after), 0o644)
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
