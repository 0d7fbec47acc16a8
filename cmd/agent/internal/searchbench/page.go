package main

import (
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/bench/page"
)

// mark is that of the table in docs/performance.md.
const mark = "searches"

// writePage replaces the table of a page.
func writePage(name, machine string, trees []*corpus, results []*result) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s.\n\nThe trees: ", machine)
	for i, c := range trees {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(&text, "%s, %s", c.name, c.about)
	}
	fmt.Fprintf(&text, ".\n\n| %s |\n| --- |%s\n", strings.Join(columns, " | "), strings.Repeat(" ---: |", len(columns)-1))
	for _, r := range results {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	return page.Replace(name, mark, text.String())
}
