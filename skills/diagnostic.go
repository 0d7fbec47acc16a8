package skills

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity is what a diagnostic means for a skill.
type Severity uint8

// The severities, in increasing order.
const (
	Note    Severity = iota // the skill works; lint mentions it
	Warning                 // something was repaired or ignored; lint fails
	Error                   // the skill is skipped
)

// String returns "note", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	}
	return "error"
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Diagnostic is a problem with a skill, with its position.
type Diagnostic struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`   // from 1
	Column   int      `json:"column"` // from 1, in bytes
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // the problem, and what to do or what was done
}

// Error implements error: "FILE:LINE:COLUMN: SEVERITY: MESSAGE".
func (d Diagnostic) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", d.File, d.Line, d.Column, d.Severity, d.Message)
}

// Worst returns the highest severity, Note for no diagnostics.
func Worst(all []Diagnostic) Severity {
	worst := Note
	for _, d := range all {
		worst = max(worst, d.Severity)
	}
	return worst
}

// report collects the diagnostics of one file.
type report struct {
	file string
	list []Diagnostic
}

// maxDiagnostics bounds the diagnostics of one file, except errors.
const maxDiagnostics = 50

func (r *report) add(s Severity, line, column int, format string, args ...any) {
	if len(r.list) >= maxDiagnostics && s != Error {
		return
	}
	r.list = append(r.list, Diagnostic{File: r.file, Line: max(line, 1), Column: max(column, 1), Severity: s, Message: fmt.Sprintf(format, args...)})
}

// sorted returns the diagnostics ordered by position.
func (r *report) sorted() []Diagnostic {
	slices.SortStableFunc(r.list, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r.list
}
