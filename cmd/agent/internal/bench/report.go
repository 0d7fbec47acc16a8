package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// row is one metric of one scenario for all contestants.
type row struct {
	label   string
	unit    unit
	target  float64
	results []result // in the contestants' order
	missed  bool
}

type result struct{ median, low, high float64 }

// summarize turns the samples of a scenario, by contestant and round, into its
// rows.
func summarize(s *scenario, contestants []contestant, samples [][]sample) []row {
	var rows []row
	for _, m := range s.metrics {
		r := row{label: s.name + ": " + m.name, unit: m.unit, target: m.target}
		for c := range contestants {
			values := make([]float64, len(samples[c]))
			for round, one := range samples[c] {
				values[round] = m.value(one, samples[0][round])
			}
			res := result{median(values), slices.Min(values), slices.Max(values)}
			r.results = append(r.results, res)
			if contestants[c].judged && m.target > 0 && res.median > m.target {
				r.missed = true
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func anyMissed(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.missed })
}

func printTable(w io.Writer, contestants []contestant, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "measure\ttarget\t")
	for _, c := range contestants {
		fmt.Fprintf(table, "%s\t", c.name)
	}
	fmt.Fprintln(table)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t", r.label, r.goal())
		for _, v := range r.results {
			fmt.Fprintf(table, "%.4g %s (%.4g–%.4g)\t", v.median, r.unit, v.low, v.high)
		}
		if r.missed {
			fmt.Fprint(table, "MISSED")
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
