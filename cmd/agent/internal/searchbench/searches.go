package main

import (
	"fmt"
	"slices"
	"strings"
)

// query is one search, for the tool and for its rival.
type query struct {
	name   string
	corpus string
	args   arguments
	// ascii turns off ripgrep's Unicode mode: \w, \d, \s and \b are ASCII in Go.
	ascii bool
}

// arguments are those of grep, or of glob if there is no mode.
type arguments struct {
	Pattern         string `json:"pattern"`
	Path            string `json:"path,omitempty"`
	GlobFilter      string `json:"glob_filter,omitempty"`
	CaseInsensitive bool   `json:"case_insensitive,omitempty"`
	MaxResults      int    `json:"max_results,omitempty"`
	OutputMode      string `json:"output_mode,omitempty"`
	Context         int    `json:"context,omitempty"`
}

func (q *query) grep() bool { return q.args.OutputMode != "" }

// class is a class of patterns.
type class struct {
	name, pattern string
	fold, ascii   bool
}

var classes = []class{
	{name: "literal", pattern: `ErrUnexpectedEOF`},
	{name: "literal without a match", pattern: `zzyzx_never`},
	{name: "short common literal", pattern: `if`},
	{name: "any case", pattern: `deadline exceeded`, fold: true},
	{name: "any case of k and s", pattern: `sticky keys|mask`, fold: true},
	{name: "word", pattern: `\bneedle\b`, ascii: true},
	{name: "two literals", pattern: `sync\.Mutex|atomic\.Int64`},
	{name: "40 literals", pattern: strings.Join(strings.Fields(`alpha bravo charlie delta echo foxtrot golf hotel india juliett
		kilo lima mike november oscar papa quebec romeo sierra tango uniform victor whiskey xray yankee zulu monday tuesday
		wednesday thursday friday saturday sunday january february march april june july august`), "|")},
	{name: "literals with classes", pattern: `func \(.*\) Close\(\)`},
	{name: "character classes", pattern: `[A-Z]{3,}_[A-Z]{3,}\s*=`, ascii: true},
	{name: "start of a line", pattern: `^package http$`},
	{name: "end of a line", pattern: `\}\)\)\)$`},
	{name: "in order", pattern: `a.*b.*c.*d.*e`, ascii: true},
	{name: "alternation repeated", pattern: `(a|b|c)*x`},
	{name: "leading wildcard", pattern: `.*needle`},
	{name: "optional parts", pattern: `colou?rs?( scheme)?`},
	{name: "Unicode class", pattern: `\p{Greek}+`},
	{name: "negated class", pattern: `"[^"]*needle[^"]*"`},
	{name: "counted repetition", pattern: `\b0x[0-9a-f]{12,}\b`, ascii: true},
	{name: "three words", pattern: `\w+\s+\w+\s+\w+`, ascii: true},
	{name: "digits", pattern: `[0-9]{3,}`},
	{name: "identifiers", pattern: `\bnew[A-Z]\w+\(`, ascii: true},
	{name: "beyond ASCII", pattern: `世界|naïve`},
}

// classesOf are the classes measured in the generated trees.
var classesOf = map[string][]string{
	"repository": {"literal", "40 literals", "in order", "three words"},
	"small":      {"literal without a match", "word", "any case", "digits", "in order"},
	"large":      {"literal without a match", "word", "any case", "40 literals", "digits", "in order", "alternation repeated", "leading wildcard", "three words"},
	"lines":      {"literal without a match", "word", "in order", "counted repetition", "digits"},
	"unicode":    {"literal without a match", "beyond ASCII", "Unicode class", "digits", "in order", "leading wildcard"},
	"ignored":    {"literal without a match", "word", "in order"},
}

// queries returns all searches.
func queries() []*query {
	var list []*query
	add := func(corpus string, c *class) {
		list = append(list, &query{name: c.name, corpus: corpus, ascii: c.ascii, args: arguments{
			Pattern: c.pattern, CaseInsensitive: c.fold, OutputMode: "count", MaxResults: 10_000,
		}})
	}
	for i := range classes {
		add("go", &classes[i])
	}
	list = append(list, ways()...)
	for _, corpus := range []string{"repository", "small", "large", "lines", "unicode", "ignored"} {
		for i := range classes {
			if slices.Contains(classesOf[corpus], classes[i].name) {
				add(corpus, &classes[i])
			}
		}
	}
	return append(list, globs()...)
}

// ways are the ways to show matches.
func ways() []*query {
	const pattern = `ErrUnexpectedEOF`
	return []*query{
		{name: "shown lines", corpus: "go", args: arguments{Pattern: pattern, OutputMode: "content", MaxResults: 10_000}},
		{name: "shown lines with context", corpus: "go", args: arguments{Pattern: pattern, OutputMode: "content", MaxResults: 10_000, Context: 3}},
		{name: "8,000 shown lines", corpus: "go", args: arguments{Pattern: `io\.Reader|bytes\.Buffer|strings\.Builder`, OutputMode: "content", MaxResults: 10_000}},
		{name: "files with matches", corpus: "go", args: arguments{Pattern: `if`, OutputMode: "files_with_matches", MaxResults: 10_000}},
		{name: "filtered by glob", corpus: "go", args: arguments{Pattern: pattern, OutputMode: "count", MaxResults: 10_000, GlobFilter: "*_test.go"}},
		{name: "a file of 3.9 MB", corpus: "large", args: arguments{Pattern: "needle", Path: "large3.txt", OutputMode: "count", MaxResults: 10_000}},
	}
}

// globs are the searches for paths.
func globs() []*query {
	var list []*query
	for _, g := range []struct{ name, corpus, pattern string }{
		{"all", "go", "**"},
		{"extension", "go", "**/*.go"},
		{"several extensions", "go", "**/*.{s,h,S}"},
		{"name", "go", "**/go.mod"},
		{"subtree", "go", "cmd/**/*_test.go"},
		{"no match", "go", "**/*.zzyzx"},
		{"extension", "repository", "**/*.go"},
		{"extension", "small", "**/*.ts"},
		{"extension", "ignored", "**/*.go"},
		{"no match", "ignored", "**/*.zzyzx"},
	} {
		list = append(list, &query{name: "glob: " + g.name, corpus: g.corpus, args: arguments{Pattern: g.pattern}})
	}
	return list
}

// ripgrep returns the options for ripgrep to find the same.
func (q *query) ripgrep() []string {
	args := []string{
		"--no-config", "--hidden", "--no-require-git", "--no-ignore-dot", "--no-ignore-global", "--glob=!.git",
		"--max-filesize=4M", "--crlf", "--no-messages", "--with-filename", "--color=never", "--no-heading",
	}
	switch q.args.OutputMode {
	case "content":
		args = append(args, "--line-number", "--max-columns=400", "--max-columns-preview", fmt.Sprintf("--context=%d", q.args.Context))
	case "files_with_matches":
		args = append(args, "--files-with-matches")
	default:
		args = append(args, "--count")
	}
	if q.args.CaseInsensitive {
		args = append(args, "--ignore-case")
	}
	if q.ascii {
		args = append(args, "--no-unicode")
	}
	if q.args.GlobFilter != "" {
		args = append(args, "--glob="+q.args.GlobFilter)
	}
	args = append(args, "--regexp="+q.args.Pattern)
	if q.args.Path != "" {
		args = append(args, "--", q.args.Path)
	}
	return args
}

// fd returns the options for fd to find the same.
func (q *query) fd(dir string) []string {
	pattern := dir + "/" + q.args.Pattern
	return []string{
		"--hidden", "--no-global-ignore-file", "--exclude=.git", "--color=never", "--type=file", "--type=symlink",
		"--case-sensitive", "--full-path", "--glob", pattern,
	}
}
