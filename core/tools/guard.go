package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/patch"
)

// guard remembers which files a session has read, and as they were then: what
// was not read, or has changed since, is not overwritten. It is safe for
// concurrent use.
type guard struct {
	mu       sync.Mutex
	sessions map[string]map[string]stamp
}

// stamp tells a file's content from another without reading it.
type stamp struct {
	size     int64
	modified time.Time
}

// maxGuarded is how many sessions are remembered. A host that has more open at
// once has some read their files again.
const maxGuarded = 256

func newGuard() *guard { return &guard{sessions: map[string]map[string]stamp{}} }

// wrap puts the guard around the tools that read and change files.
func (g *guard) wrap(t core.Tool) core.Tool {
	switch t.Definition().Name {
	case "read_file", "read_many_files", "edit_file", "write_file", "apply_patch":
		return guarded{t, g}
	}
	return t
}

// guarded is a tool with the guard around it.
type guarded struct {
	core.Tool
	guard *guard
}

// Run implements [core.Tool].
func (t guarded) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	name := t.Definition().Name
	reads, changes := touched(name, call.Args)
	for _, path := range changes {
		if refusal := t.guard.check(ctx, call, path); refusal != nil {
			return *refusal, nil
		}
	}
	result, err := t.Tool.Run(ctx, call)
	if err == nil && result.Code == "" {
		if name == "read_many_files" {
			reads = filesOf(result)
		}
		for _, path := range append(reads, changes...) {
			t.guard.note(ctx, call, path)
		}
	}
	return result, err
}

// filesOf returns the files that read_many_files has read.
func filesOf(r core.Result) []string {
	var read manyRead
	_ = json.Unmarshal(r.Structured, &read) // it is our own, or there is none
	return read.Files
}

// touched returns the files that a call reads, and those that it changes.
func touched(tool string, args json.RawMessage) (reads, changes []string) {
	var in struct {
		FilePath string `json:"file_path"`
		Patch    string `json:"patch"`
	}
	if json.Unmarshal(args, &in) != nil {
		return nil, nil // the tool says so
	}
	switch tool {
	case "read_file":
		return []string{in.FilePath}, nil
	case "read_many_files":
		return nil, nil // its result tells
	case "apply_patch":
		p, err := patch.Parse(in.Patch)
		if err != nil {
			return nil, nil
		}
		for _, f := range p.Files {
			if f.Op != patch.Delete {
				changes = append(changes, f.Path)
			}
			if f.MoveTo != "" {
				reads = append(reads, f.MoveTo) // the session knows what is in it
			}
		}
		return reads, changes
	}
	return nil, []string{in.FilePath}
}

// state returns a file's key and stamp; ok is false for what is no file, or
// cannot be told: that is the tool's matter.
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

// check says why a file must be read before it is changed.
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
		r = core.Failf(core.CodeValidation, "%s was not changed: you have not read it in this session. Read it first, so that nothing is lost that you do not know of.", path)
	case !was.modified.Equal(now.modified) || was.size != now.size:
		r = core.Failf(core.CodeValidation, "%s was not changed: something else has changed it since you read it. Read it again.", path)
	default:
		return nil
	}
	return &r
}

// note remembers a file as it is now.
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
