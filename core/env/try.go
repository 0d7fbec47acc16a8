package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Trial is a command that ran on a copy of the workspace, which costs nothing
// until it is written: a layer. The caller calls [Trial.Close].
type Trial struct {
	Exit core.Exit
	// Dirs are the directories with what the command changed in each.
	Dirs []Tried
	// Limits say why the changes may not be what the command would do without
	// the layer.
	Limits []string

	dir *sandbox.TempDir
}

// Tried is what a command changed in a directory.
type Tried struct {
	Dir     string
	Upper   string // has the new content of each changed file, at the same path
	Changes []sandbox.Change

	stamps map[string]stamp // of the changed paths as they are in Dir
}

// ErrNoTrial means that commands cannot be tried here.
var ErrNoTrial = errors.New("commands cannot be tried here")

// Try runs a command so that what it changes in the workspace goes to a layer. It
// reaches no host but those of the settings and its grants, and writes nothing
// else. The error is [ErrNoTrial] if that is not possible.
func (l *Local) Try(ctx context.Context, cmd core.Command) (_ *Trial, err error) {
	if l.level(ctx) != sandbox.Namespace {
		return nil, fmt.Errorf("%w: they need the sandbox level namespace; agent doctor says why it does not work", ErrNoTrial)
	}
	for _, root := range l.info.Roots {
		mounts, err := sandbox.MountsBelow(root)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoTrial, err)
		}
		if len(mounts) > 0 {
			return nil, fmt.Errorf("%w: %s is mounted in the workspace, and no layer covers it", ErrNoTrial, mounts[0])
		}
	}
	t := &Trial{}
	if t.dir, err = sandbox.NewTempDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	line := cmd.Script
	if line == "" {
		line = strings.Join(cmd.Argv, " ")
	}
	cmd.Grants = append(slices.Clone(cmd.Grants), core.Grant{Access: core.Access{Scope: core.ScopeShell, Resource: line}})
	for _, root := range l.info.Roots {
		for _, scope := range []core.Scope{core.ScopeRead, core.ScopeWrite} {
			cmd.Grants = append(cmd.Grants, core.Grant{Access: core.Access{Scope: scope, Resource: root, Recursive: true}, Except: l.secret})
		}
	}
	p, err := l.start(ctx, cmd, t.dir.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTrial, err)
	}
	if t.Exit, err = p.Wait(); err != nil {
		return nil, err
	}
	if err := t.read(p.(localProcess).confined.profile.Tried); err != nil {
		return nil, err
	}
	t.limits(p.(localProcess).confined)
	return t, nil
}

// secret reports whether reading a file needs a grant for it.
func (l *Local) secret(path string) bool {
	return l.sandbox.Sensitive != nil && slices.ContainsFunc(l.info.Roots, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel) && l.sandbox.Sensitive(filepath.ToSlash(rel))
	})
}

// try sends what a command writes to layers in a directory.
func (c *confined) try(dir string) {
	c.profile.Mode, c.profile.Try = sandbox.ModeNamespace, dir
	for _, path := range c.profile.Writable {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			c.profile.Tried = append(c.profile.Tried, path)
		}
	}
	c.profile.Writable, c.planted = nil, &inspection{}
}

// read lists the changes in the layers.
func (t *Trial) read(dirs []string) error {
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if slices.ContainsFunc(t.Dirs, func(d Tried) bool { return sandbox.Below(d.Dir, dir) }) {
			continue
		}
		d := Tried{Dir: dir, Upper: sandbox.TriedIn(t.dir.Path, dir)}
		var err error
		if d.Changes, err = sandbox.ReadChanges(d.Upper, dir); err != nil {
			return fmt.Errorf("read what the command changed: %w", err)
		}
		d.stamps = map[string]stamp{}
		for _, c := range d.Changes {
			d.stamps[c.Path], _ = stampOf(filepath.Join(dir, c.Path)) // zero if it is missing
		}
		t.Dirs = append(t.Dirs, d)
	}
	return nil
}

// limits finds out what the layer and the sandbox may have kept the command from.
func (t *Trial) limits(c *confined) {
	add := func(format string, args ...any) { t.Limits = append(t.Limits, fmt.Sprintf(format, args...)) }
	c.mu.Lock()
	for _, host := range c.refused {
		add("it was refused the network: %s; what it would do there is unknown", host)
	}
	c.mu.Unlock()
	if t.Exit.Left > 0 {
		add("it left %d processes running, which were ended", t.Exit.Left)
	}
	for _, d := range t.Dirs {
		for _, change := range d.Changes {
			if change.Links {
				add("%s has other names (hard links), which keep what they had", change.Path)
			}
		}
	}
	if c.tail == nil {
		return
	}
	output := string(c.tail.Kept)
	if t.Exit.Code != 0 {
		for _, cause := range c.profile.Explain(sandbox.Namespace, c.dir, output) {
			add("%s", describe(cause))
		}
	}
	if strings.Contains(output, "Value too large for defined data type") || strings.Contains(output, "EOVERFLOW") {
		add("files of other users and groups cannot be changed in a layer")
	}
	if strings.Contains(output, "Invalid cross-device link") || strings.Contains(output, "EXDEV") {
		add("directories cannot be renamed in a layer")
	}
}

// Close drops the changes.
func (t *Trial) Close() error { return t.dir.Remove() }

// Protects reports whether a path, absolute and without symbolic links, is one that
// commands must not write: programs run it later, or trust what it contains.
func (l *Local) Protects(path string) bool {
	if l.sandbox == nil {
		return false
	}
	names := l.listings().names
	at := path[:len(path)-len(strings.TrimLeft(path, "/"))]
	parts := strings.Split(strings.TrimLeft(filepath.ToSlash(path), "/"), "/")
	for i, part := range parts {
		at = filepath.Join(at, part)
		if slices.Contains(l.sandbox.ReadOnly, at) {
			return true
		}
		if !slices.ContainsFunc(l.info.Roots, func(root string) bool { return at != root && sandbox.Below(root, at) }) && part != ".git" {
			continue // the names apply in the workspace
		}
		if part == ".git" && names.match(at) {
			return gitProtects(at, strings.Join(parts[i+1:], "/"))
		}
		if names.match(at) {
			return true
		}
	}
	return false
}

// gitProtects reports whether a path in the directory of a repository makes git run
// programs.
func gitProtects(dir, rest string) bool {
	if rest == "" || !isGitDir(dir) || strings.HasPrefix(rest, "modules/") {
		return true
	}
	if strings.HasPrefix(rest, "worktrees/") {
		name := filepath.Base(rest)
		return name == "commondir" || name == "gitdir" || name == "config.worktree"
	}
	return slices.ContainsFunc(gitPaths, func(p string) bool { return rest == p || strings.HasPrefix(rest, p+"/") })
}
