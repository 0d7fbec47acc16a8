package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/preview"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/snapshot"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/permissions/shell"
)

// Trial is a command that was run on a layer over the workspace. The caller calls
// Close, which drops what is not applied.
type Trial struct {
	Exit core.Exit
	// Notes say what the command may do besides, or needs: what mode workspace
	// asks about.
	Notes []string
	// Files are what it would change.
	Files []TriedFile
	// Limits are effects that Files do not have, and reasons to doubt them.
	Limits []string

	trial *env.Trial
	agent *Agent
}

// TriedFile is a change that a command would make. Its path is relative to the
// working directory, or absolute if it is not in it.
type TriedFile struct {
	event.FileChange
	Below   int    `json:"below,omitempty"`   // further paths, which are not listed
	Refused string `json:"refused,omitempty"` // why it is not applied
}

// Try runs a command on a layer over the workspace: nothing changes. A command that
// a rule denies is not run. The error is [env.ErrNoTrial] where that is impossible.
func (a *Agent) Try(ctx context.Context, command string, stdout, stderr io.Writer) (*Trial, error) {
	local, ok := a.env.(*env.Local)
	if !ok {
		return nil, fmt.Errorf("%w: only on this machine", env.ErrNoTrial)
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return nil, err
	}
	req := core.PermissionRequest{
		Session: core.SessionInfo{Dir: a.env.Info().Dir}, Tool: "shell", Args: args,
		Accesses: []core.Access{{Scope: core.ScopeShell, Resource: command}},
	}
	d := a.policy.Decide(ctx, req)
	if d.Verdict == core.Deny {
		return nil, fmt.Errorf("the command is denied: %s", d.Reason)
	}
	cmd := core.Command{Script: command, Stdout: stdout, Stderr: stderr}
	for _, g := range d.Grants {
		if g.Scope == core.ScopeShell && g.Resource == command {
			cmd.Env = append(cmd.Env, g.Env...)
		}
	}
	trial, err := local.Try(ctx, cmd)
	if err != nil {
		return nil, err
	}
	t := &Trial{Exit: trial.Exit, Limits: trial.Limits, trial: trial, agent: a}
	if p, ok := a.policy.(*permissions.Policy); ok { // this mode asks only for what matters
		t.Notes = p.WithMode(permissions.ModeWorkspace).Decide(ctx, req).Why
	}
	for i := range trial.Dirs {
		t.list(ctx, &trial.Dirs[i])
	}
	return t, nil
}

// Close drops the changes.
func (t *Trial) Close() error { return t.trial.Close() }

// Apply makes the changes, except those that are refused or whose files changed
// meanwhile.
func (t *Trial) Apply(ctx context.Context) (skipped []env.Skipped, err error) {
	for i := range t.trial.Dirs {
		d := &t.trial.Dirs[i]
		some, applyErr := d.Apply(func(c sandbox.Change) string { return t.refused(ctx, d, c) })
		for _, s := range some {
			s.Path = t.name(d, s.Path)
			skipped = append(skipped, s)
		}
		err = errors.Join(err, applyErr)
	}
	return skipped, err
}

// name is how a path is shown.
func (t *Trial) name(d *env.Tried, rel string) string {
	if d.Dir == t.agent.env.Info().Dir {
		return filepath.ToSlash(rel)
	}
	return filepath.Join(d.Dir, rel)
}

// refused returns why a change must not be applied.
func (t *Trial) refused(ctx context.Context, d *env.Tried, c sandbox.Change) string {
	if !c.Mode.IsRegular() && !c.Mode.IsDir() && c.Mode&fs.ModeSymlink == 0 && c.Kind != sandbox.Deleted {
		return "it is not a regular file"
	}
	return t.agent.Refuses(ctx, filepath.Join(d.Dir, c.Path), c.Kind == sandbox.Deleted)
}

// Refuses returns why a path in the workspace must not be changed even though the
// user approves of edits: it is protected, or the rules deny it or always ask. It is
// empty if it may be.
func (a *Agent) Refuses(ctx context.Context, path string, remove bool) string {
	if local, ok := a.env.(*env.Local); ok && local.Protects(path) {
		return "it is protected: programs run it or trust what it contains"
	}
	if inGit(path) {
		return ""
	}
	policy := a.policy
	if p, ok := policy.(*permissions.Policy); ok && p.Mode() != permissions.ModeReadOnly {
		policy = p.WithMode(permissions.ModeBypass) // what is protected or has a rule stays so
	}
	scope, tool := core.ScopeWrite, "write_file"
	if remove {
		scope, tool = core.ScopeDelete, "apply_patch"
	}
	d := policy.Decide(ctx, core.PermissionRequest{
		Tool: tool, Args: json.RawMessage("{}"), Accesses: []core.Access{{Scope: scope, Resource: path, Inside: true}},
	})
	if d.Verdict != core.Allow {
		return d.Reason
	}
	return ""
}

// inGit reports whether a path is in the directory of a git repository.
func inGit(rel string) bool {
	return strings.Contains("/"+filepath.ToSlash(rel)+"/", "/.git/")
}

// Limits of what is shown of a trial, in bytes.
const (
	maxTriedFile  = 1 << 20
	maxTriedDiffs = 256 << 10
)

// list describes what changed in a directory. What is below a deleted directory,
// and in a repository, is only counted.
func (t *Trial) list(ctx context.Context, d *env.Tried) {
	groups, left := map[string]int{}, maxTriedDiffs
	for _, c := range d.Changes {
		f := TriedFile{Refused: t.refused(ctx, d, c)}
		f.Path, f.Kind, f.Dir = t.name(d, c.Path), string(c.Kind), c.Mode.IsDir()
		key := c.Path
		at := filepath.Join(d.Dir, c.Path)
		if inGit(at) {
			key, _ = filepath.Rel(d.Dir, strings.SplitAfter(at+"/", "/.git/")[0]) // both are absolute
			f.Path, f.Kind, f.Dir = t.name(d, key), string(sandbox.Modified), true
		} else if c.Kind == sandbox.Deleted {
			for dir := filepath.Dir(c.Path); dir != "."; dir = filepath.Dir(dir) {
				if i, ok := groups[dir]; ok && t.Files[i].Kind == string(sandbox.Deleted) {
					key = dir
				}
			}
		}
		if i, ok := groups[key]; ok && f.Refused == t.Files[i].Refused && (key != c.Path || inGit(at)) {
			t.Files[i].Below++
			continue
		}
		if f.Kind == string(sandbox.Moded) {
			f.Kind, f.Mode = string(snapshot.Modify), fmt.Sprintf("%o", c.Mode.Perm())
		}
		if !f.Dir && c.Kind != sandbox.Moded {
			f.FileChange = compare(f.FileChange, filepath.Join(d.Dir, c.Path), filepath.Join(d.Upper, c.Path), c, &left)
		}
		groups[key] = len(t.Files)
		t.Files = append(t.Files, f)
	}
}

// compare adds the diff of a file. Left is how much of it fits.
func compare(f event.FileChange, before, after string, c sandbox.Change, left *int) event.FileChange {
	old, name := "a/"+f.Path, "b/"+f.Path
	var was, is []byte
	ok := true
	if c.Kind != sandbox.Created {
		was, ok = small(before)
	} else {
		old = "/dev/null"
	}
	if c.Kind != sandbox.Deleted {
		var fits bool
		is, fits = small(after)
		ok = ok && fits
	} else {
		name = "/dev/null"
	}
	if !ok {
		return f
	}
	diff := snapshot.Compare(old, name, was, is)
	f.Binary, f.Added, f.Removed = diff.Binary, diff.Added, diff.Removed
	if text := strings.ToValidUTF8(diff.Text, "\uFFFD"); len(text) <= *left {
		f.Diff = text
		*left -= len(text)
	}
	return f
}

// small reads a file or link that is not too large to be shown.
func small(path string) ([]byte, bool) {
	info, err := os.Lstat(path)
	switch {
	case err != nil || info.Size() > maxTriedFile:
		return nil, false
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return []byte(target), err == nil
	case !info.Mode().IsRegular():
		return nil, false
	}
	data, err := os.ReadFile(path)
	return data, err == nil
}

// Limits of a trial for a question.
const (
	tryTime  = 5 * time.Second
	tryLines = 12
)

// explain adds to a permission request what a call would change: of a command that
// deletes or overwrites files, and of a tool that is a [preview.Previewer].
func (a *Agent) explain(ctx context.Context, e core.Entry, call *core.Call, q *core.Question) {
	if line, ok := a.loses(call, q); ok {
		if text := a.preview(ctx, line); text != "" {
			q.Detail = strings.TrimSpace(q.Detail + "\n" + text)
		}
	}
	changes, err := previewOf(ctx, e, call)
	if fails := (*preview.Failure)(nil); errors.As(err, &fails) {
		why, _, _ := strings.Cut(fails.Text, "\n")
		q.Detail = strings.TrimSpace(q.Detail + "\nThe call would fail; a yes tells the model why: " + why)
	}
	if err != nil {
		return // the question is asked without them
	}
	size := 0
	for _, c := range changes {
		if size += len(c.Before) + len(c.After); size > maxTriedFile {
			return
		}
		q.Edits = append(q.Edits, c.Edits()...)
	}
}

// loses returns the command line that a question is about, if running it loses the
// content of files. Those of subagents may be about other directories.
func (a *Agent) loses(call *core.Call, q *core.Question) (line string, ok bool) {
	if len(call.Session.AgentPath) > 0 {
		return "", false
	}
	info := a.env.Info()
	for _, access := range q.Accesses {
		switch {
		case access.Scope != core.ScopeShell:
		case access.Unconfined || line != "":
			return "", false
		default:
			line = access.Resource
		}
	}
	script := shell.Analyze(line, shell.Options{Dialect: info.Shell, Dir: info.Dir, Home: info.Home})
	for access := range script.Accesses() {
		ok = ok || access.Loss != shell.LosesNone
	}
	return line, ok
}

// preview describes in a few lines what a command would change; it is empty if that
// is unknown.
func (a *Agent) preview(ctx context.Context, line string) string {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	t, err := a.Try(ctx, line, nil, nil)
	if err != nil {
		return ""
	}
	defer t.Close()
	text := "tried on a copy of the workspace, it would change nothing"
	if len(t.Files) > 0 {
		text = "tried on a copy of the workspace, it would:"
	}
	for _, f := range t.Files[:min(len(t.Files), tryLines)] {
		text += "\n  " + f.Kind + " " + strconv.Quote(f.Path)
		if f.Below > 0 {
			text += fmt.Sprintf(" and what is below (%d)", f.Below)
		}
	}
	if left := len(t.Files) - tryLines; left > 0 {
		text += fmt.Sprintf("\n  and change %d more", left)
	}
	if t.Exit.Code != 0 || len(t.Limits) > 0 {
		text += "\n  (this may not be all"
		if t.Exit.Code != 0 {
			text += fmt.Sprintf(": exit code %d", t.Exit.Code)
		}
		for _, l := range t.Limits {
			text += "; " + l
		}
		text += ")"
	}
	return text
}
