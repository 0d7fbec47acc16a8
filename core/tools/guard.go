package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/preview"
)

// guard remembers which files a session has read, and their state then: a file
// that was not read, or has changed since, is not overwritten. It is safe for
// concurrent use.
type guard struct {
	mu       sync.Mutex
	sessions map[string]map[string]stamp
}

// stamp identifies a file's content without reading it.
type stamp struct {
	size     int64
	modified time.Time
}

// maxGuarded is how many sessions are remembered. If a host opens more at once,
// some must read their files again.
const maxGuarded = 256

func newGuard() *guard { return &guard{sessions: map[string]map[string]stamp{}} }

// fileTool is a tool that tells the guard which files its calls read and
// change. A tool that changes files must be one.
type fileTool struct {
	core.Tool
	// changes lists the files whose content a call changes: the session must
	// have read those that exist. It may be nil.
	changes func(args json.RawMessage) []string
	// knows lists the files whose content the model knows after a successful
	// call, besides the changed ones. It may be nil.
	knows func(args json.RawMessage, result core.Result) []string
	// moves lists the files that a call moves, with their new paths. It may be
	// nil.
	moves func(args json.RawMessage) map[string]string
	// amended are the user's changes of calls; nil if there can be none.
	amended *amendments
}

// wrap puts the guard around a fileTool.
func (g *guard) wrap(t core.Tool) core.Tool {
	if files, ok := t.(fileTool); ok {
		return guarded{files, g}
	}
	return t
}

// guarded is a tool with the guard around it.
type guarded struct {
	fileTool
	guard *guard
}

// Preview implements [preview.Previewer]. Without a session it shows what a call
// would change in files that were not read, too.
func (t guarded) Preview(ctx context.Context, call *core.Call) ([]preview.Change, error) {
	if call.Session.ID != "" {
		if _, refusal := t.known(ctx, call); refusal != nil {
			return nil, &preview.Failure{Text: model.Parts(refusal.Content).Text()}
		}
	}
	return t.fileTool.Preview(ctx, call)
}

// known returns the files that a call changes, or a failure if one of them must be
// read before.
func (t guarded) known(ctx context.Context, call *core.Call) (paths []string, refusal *core.Result) {
	if t.changes != nil {
		paths = t.changes(call.Args)
	}
	for _, path := range paths {
		if refusal := t.guard.check(ctx, call, path); refusal != nil {
			return nil, refusal
		}
	}
	return paths, nil
}

// Run implements [core.Tool].
func (t guarded) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	known, refusal := t.known(ctx, call)
	if refusal != nil {
		return *refusal, nil
	}
	var moved []string // to be known at their new paths
	if t.moves != nil {
		for from, to := range t.moves(call.Args) {
			known = slices.DeleteFunc(known, func(path string) bool { return path == to })
			if _, _, ok := t.guard.state(ctx, call, from); ok && t.guard.check(ctx, call, from) == nil {
				moved = append(moved, to)
			}
		}
	}
	result, err := t.fileTool.Run(ctx, call)
	if err != nil || result.Code != "" {
		return result, err
	}
	if t.knows != nil {
		known = append(known, t.knows(call.Args, result)...)
	}
	for _, path := range append(known, moved...) {
		t.guard.note(ctx, call, path)
	}
	return result, nil
}

// filePath returns the argument file_path, which several tools have.
func filePath(args json.RawMessage) []string {
	var in struct {
		FilePath string `json:"file_path"`
	}
	if json.Unmarshal(args, &in) != nil {
		return nil // the tool reports it
	}
	return []string{in.FilePath}
}

// state returns a file's key and stamp; ok is false if it is not a regular file
// or cannot be read, which the tool reports.
func (g *guard) state(ctx context.Context, call *core.Call, path string) (key string, now stamp, ok bool) {
	to, err := call.Env.Resolve(ctx, path)
	if err != nil {
		return "", stamp{}, false
	}
	info, err := call.Env.Files().Stat(ctx, path)
	if err != nil || !info.Mode().IsRegular() {
		return to.Path, stamp{}, false
	}
	return to.Path, stamp{info.Size(), info.ModTime()}, true
}

// check returns a failure if a file must be read before it is changed.
func (g *guard) check(ctx context.Context, call *core.Call, path string) *core.Result {
	key, now, ok := g.state(ctx, call, path)
	if !ok {
		return nil
	}
	g.mu.Lock()
	was, known := g.sessions[call.Session.ID][key]
	g.mu.Unlock()
	var r core.Result
	switch {
	case !known:
		r = core.Failf(core.CodeValidation, "%s was not changed: you have not read it in this session. Read it first, so that no content is lost.", path)
	case !was.modified.Equal(now.modified) || was.size != now.size:
		r = core.Failf(core.CodeValidation, "%s was not changed: it was modified since you read it. Read it again.", path)
	default:
		return nil
	}
	return &r
}

// note remembers the present state of a file.
func (g *guard) note(ctx context.Context, call *core.Call, path string) {
	key, now, ok := g.state(ctx, call, path)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !ok {
		if _, err := call.Env.Files().Stat(ctx, path); errors.Is(err, fs.ErrNotExist) {
			delete(g.sessions[call.Session.ID], key)
		}
		return
	}
	files := g.sessions[call.Session.ID]
	if files == nil {
		if len(g.sessions) >= maxGuarded {
			clear(g.sessions)
		}
		files = map[string]stamp{}
		g.sessions[call.Session.ID] = files
	}
	files[key] = now
}
