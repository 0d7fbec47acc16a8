package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/charset"
)

const (
	grepResults    = 100    // the default of max_results
	maxGrepResults = 10_000 // the maximum of max_results
	maxGrepContext = 100
	grepLineChars  = 400 // shown of a line

	maxEncodedNotes = 5 // files whose encoding is told
)

// The output modes of grep.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

//go:embed grep.md
var grepDoc string

type grepArgs struct {
	Pattern         string `json:"pattern"`
	Path            string `json:"path,omitempty"`
	GlobFilter      string `json:"glob_filter,omitempty" jsonschema:"such as src/**/*.ts, or !vendor/**"`
	CaseInsensitive bool   `json:"case_insensitive,omitempty"`
	MaxResults      int    `json:"max_results,omitempty"`
	OutputMode      string `json:"output_mode,omitempty" jsonschema:"content (default), files_with_matches or count"`
	Context         int    `json:"context,omitempty"`
}

// Grep returns the tool grep, which searches files for a regular expression.
func Grep() core.Tool { return grepWith(nativeSearch) }

// grepWith returns grep with the given engine.
func grepWith(search grepEngine) core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        "grep",
		Description: strings.TrimSpace(grepDoc),
		ReadOnly:    true,
		Scopes:      []core.Scope{core.ScopeRead},
		Output:      core.OutputLimit{MaxChars: 20_000, MaxLines: 200, Mode: core.Tail},
	}, func(_ context.Context, _ *core.Call, in grepArgs) ([]core.Access, error) {
		return fileAccess(core.ScopeRead, orHere(in.Path), true), nil
	}, func(ctx context.Context, call *core.Call, in grepArgs) (core.Result, error) {
		return runGrep(ctx, call, in, search)
	})
}

// A grepEngine runs a query and yields each file with a match, in the order of
// paths, until yield returns false.
type grepEngine func(ctx context.Context, env core.Environment, q *grepQuery, yield func(grepFile) bool) (grepTally, error)

// grepQuery is what to search for, and where.
type grepQuery struct {
	base   string // as the model wrote it; empty = the working directory
	file   bool   // the base is a file
	filter pathFilter
	// pattern and caseInsensitive are what matcher matches, for engines with
	// their own matcher.
	pattern         string
	caseInsensitive bool
	matcher         *lineMatcher
	mode            string
	context         int
	max             int // lines, or files
}

// grepFile is a file with matches.
type grepFile struct {
	rel     string // relative to the base; empty if the base is the file
	matches int    // matching lines, as far as the mode needs them
	lines   []grepLine
	// encoding is how the file is stored.
	encoding charset.Encoding
}

// grepLine is a line to show.
type grepLine struct {
	number int
	text   string // without its line break, clipped
	match  bool   // else it is context
}

// grepTally counts what an engine searched.
type grepTally struct {
	searched int // files
	denied   int // files and directories that may not be read
	failed   int // could not be read
	large    int // files that are too large
}

func runGrep(ctx context.Context, call *core.Call, in grepArgs, search grepEngine) (core.Result, error) {
	q, err := newGrepQuery(in)
	if err != nil {
		return core.Failf(core.CodeValidation, "%v.", err), nil
	}
	info, err := call.Env.Files().Stat(ctx, orHere(in.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(ctx, call.Env, in.Path), nil
	case err != nil:
		return failure("search", orHere(in.Path), err), nil
	case info.Mode().IsRegular():
		q.file = true
	case !info.IsDir():
		return core.Failf(core.CodeIO, "Cannot search %q: it is %s.", in.Path, special(info.Mode())), nil
	}
	report := grepReport{query: q}
	tally, err := search(ctx, call.Env, q, report.add)
	if err != nil {
		return failure("search", orHere(in.Path), err), nil
	}
	return core.TextResult(report.finish(tally)), nil
}

// newGrepQuery validates the arguments. Its error is for the model.
func newGrepQuery(in grepArgs) (*grepQuery, error) {
	q := &grepQuery{
		base: in.Path, pattern: in.Pattern, caseInsensitive: in.CaseInsensitive,
		mode: in.OutputMode, context: in.Context, max: in.MaxResults,
	}
	switch q.mode {
	case "":
		q.mode = modeContent
	case modeContent, modeFiles, modeCount:
	default:
		return nil, fmt.Errorf("output_mode %q is unknown. Use %s, %s or %s", in.OutputMode, modeContent, modeFiles, modeCount)
	}
	switch {
	case in.Pattern == "":
		return nil, errors.New("pattern is empty. Give a regular expression")
	case in.MaxResults < 0 || in.Context < 0:
		return nil, errors.New("max_results and context cannot be negative")
	case in.Context > maxGrepContext:
		return nil, fmt.Errorf("context can be %d at most. Use read_file to see more of a file", maxGrepContext)
	case in.MaxResults == 0:
		q.max = grepResults
	}
	q.max = min(q.max, maxGrepResults)
	var err error
	if q.matcher, err = newLineMatcher(q.pattern, q.caseInsensitive); err != nil {
		return nil, fmt.Errorf("pattern is not a valid regular expression: %w. "+
			"The syntax is RE2: no look-around, no back-references; escape characters such as ( [ { . with a backslash", err)
	}
	var ok bool
	if q.filter, ok = newPathFilter(in.GlobFilter); !ok {
		return nil, fmt.Errorf("glob_filter %q is not a valid glob pattern: a bracket or brace is not closed", in.GlobFilter)
	}
	return q, nil
}

// pathFilter selects files by a glob pattern: without a slash it matches the
// name, else the path. The zero value selects all.
type pathFilter struct {
	pattern string
	negated bool
}

func newPathFilter(pattern string) (pathFilter, bool) {
	var f pathFilter
	f.pattern, f.negated = strings.CutPrefix(pattern, "!")
	return f, doublestar.ValidatePattern(f.pattern)
}

func (f pathFilter) selects(rel string) bool {
	if f.pattern == "" {
		return true
	}
	if !strings.Contains(f.pattern, "/") {
		rel = path.Base(rel)
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(f.pattern, "/"), rel) != f.negated
}

// grepReport writes what was found.
type grepReport struct {
	query *grepQuery
	out   strings.Builder
	n     int  // lines, or files
	more  bool // there are more than the maximum
	// encoded are the files shown that are not UTF-8, with their encodings.
	encoded []string
}

// add writes a file and reports whether there is room for another.
func (r *grepReport) add(f grepFile) bool {
	if r.n == r.query.max {
		r.more = true
		return false
	}
	name := joinPath(r.query.base, f.rel)
	if !f.encoding.UTF8() {
		r.encoded = append(r.encoded, fmt.Sprintf("%s is in %s", name, f.encoding))
	}
	switch r.query.mode {
	case modeFiles:
		r.n++
		fmt.Fprintln(&r.out, name)
	case modeCount:
		r.n++
		fmt.Fprintf(&r.out, "%s:%d\n", name, f.matches)
	default:
		return r.addLines(name, f.lines)
	}
	return true
}

func (r *grepReport) addLines(name string, lines []grepLine) bool {
	lines, r.more = firstMatches(lines, r.query.max-r.n, r.query.context)
	for i, l := range lines {
		gap := i == 0 || l.number != lines[i-1].number+1
		if gap && r.query.context > 0 && r.out.Len() > 0 {
			r.out.WriteString("--\n")
		}
		separator := '-'
		if l.match {
			r.n++
			separator = ':'
		}
		fmt.Fprintf(&r.out, "%s%c%d%c%s\n", name, separator, l.number, separator, l.text)
	}
	return !r.more
}

// firstMatches limits lines to the first room matches and their context, and
// reports whether a match was left out.
func firstMatches(lines []grepLine, room, context int) ([]grepLine, bool) {
	last := 0
	for i, l := range lines {
		if !l.match {
			continue
		}
		if room > 0 {
			room--
			last = l.number
			continue
		}
		for i > 0 && lines[i-1].number > last+context {
			i--
		}
		return lines[:i], true
	}
	return lines, false
}

// finish returns the report.
func (r *grepReport) finish(tally grepTally) string {
	if r.n == 0 {
		fmt.Fprintf(&r.out, "No matches for %s in %s (%s searched).\n", r.query.pattern, orHere(r.query.base), count(tally.searched, "file"))
	}
	if r.more {
		what := "lines"
		if r.query.mode != modeContent {
			what = "files"
		}
		fmt.Fprintf(&r.out, "(Only the first %d matching %s are shown. Narrow pattern, path or glob_filter, or raise max_results.)\n", r.n, what)
	}
	if n := len(r.encoded); n > maxEncodedNotes {
		r.encoded = append(r.encoded[:maxEncodedNotes], fmt.Sprintf("%d more files are not in UTF-8", n-maxEncodedNotes))
	}
	if len(r.encoded) > 0 {
		fmt.Fprintf(&r.out, "(%s.)\n", strings.Join(r.encoded, "; "))
	}
	note := func(n int, why string) {
		if n > 0 {
			fmt.Fprintf(&r.out, "(%s not searched: %s.)\n", count(n, "path"), why)
		}
	}
	note(tally.denied, "sensitive, or access not granted")
	note(tally.large, "larger than "+byteSize(maxGrepFile))
	note(tally.failed, "could not be read")
	return strings.TrimSuffix(r.out.String(), "\n")
}

// clip shortens a line to a number of characters around the byte offset at,
// and makes it valid UTF-8.
func clip(line string, at, chars int) string {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) <= chars {
		return line
	}
	start := 0
	if at > chars/2 {
		start = min(at, len(line)) - chars/4
		for start > 0 && !utf8.RuneStart(line[start]) {
			start--
		}
	}
	end := start
	for n := 0; n < chars && end < len(line); n++ {
		_, size := utf8.DecodeRuneInString(line[end:])
		end += size
	}
	clipped := line[start:end]
	if start > 0 {
		clipped = "…" + clipped
	}
	if end < len(line) {
		clipped += fmt.Sprintf("… [%d more bytes]", len(line)-end)
	}
	return clipped
}
