package main

import (
	"fmt"
	"os"
	"strings"
)

// The marks of docs/performance.md, between which the table is.
const (
	pageStart = "<!-- searches -->\n"
	pageEnd   = "<!-- end of searches -->\n"
)

// writePage replaces the table of a page.
func writePage(name, machine string, trees []*corpus, results []*result) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(data), pageStart)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		return fmt.Errorf("%s: expected the lines %q and %q, between which the table goes", name, strings.TrimSpace(pageStart), strings.TrimSpace(pageEnd))
	}
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
	return os.WriteFile(name, []byte(before+pageStart+text.String()+pageEnd+after), 0o644)
}
