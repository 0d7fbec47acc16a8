package tools

import (
	"context"
	"slices"

	"github.com/seed-009c0928/agent/core"
)

// Options configure the built-in tools.
type Options struct {
	// Unguarded lets a session change files that it has not read, or that have
	// changed since.
	Unguarded bool
	// PDF reads PDF documents for read_file; nil refuses them.
	PDF PDFReader
}

// Set is the built-in tools as a toolset named "builtin". It never changes.
type Set struct {
	tools   []core.Tool
	jobs    *jobs
	amended *amendments
}

var _ core.Toolset = (*Set)(nil)

// Builtin returns the built-in tools. Close ends their background commands.
func Builtin(opts Options) *Set {
	background := newJobs()
	files := fileReader{pdf: opts.PDF}
	all := []core.Tool{
		files.one(),
		files.many(),
		WriteFile(),
		EditFile(),
		ApplyPatch(),
		shellWith(background),
		background.tool(),
		background.writeStdin(),
		Grep(),
		Glob(),
		ListDir(),
		UpdatePlan(),
		AskUser(),
	}
	amended, g := &amendments{}, newGuard()
	for i, t := range all {
		if files, ok := t.(fileTool); ok {
			files.amended = amended
			all[i] = files
		}
		if !opts.Unguarded {
			all[i] = g.wrap(all[i])
		}
	}
	return &Set{jobs: background, tools: all, amended: amended}
}

// Name implements [core.Toolset].
func (s *Set) Name() string { return "builtin" }

// Tools implements [core.Toolset].
func (s *Set) Tools(context.Context) ([]core.Tool, error) { return slices.Clone(s.tools), nil }

// Changed implements [core.Toolset].
func (s *Set) Changed() <-chan struct{} { return nil }

// End ends a session's background commands; the host calls it when the session
// is over.
func (s *Set) End(session string) { s.jobs.end(session) }

// Close implements [core.Toolset].
func (s *Set) Close() error {
	s.jobs.close()
	return nil
}
