package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/core/snapshot"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// moveFiles is where a moved session works, with the files that it takes along.
type moveFiles struct {
	spec  workspace.Spec
	root  *os.Root // nil without files
	names []string
}

func (w *moveFiles) close() {
	if w.root != nil {
		_ = w.root.Close() // it was only read
	}
}

// workspace finds out where the session continues that works in a directory here.
func (o *moveOptions) workspace(ctx context.Context, dir string) (*moveFiles, error) {
	switch {
	case o.empty:
		return &moveFiles{spec: workspace.Spec{Directory: workspace.New}}, nil
	case o.dir != "" && !filepath.IsAbs(o.dir):
		return nil, cmdutil.Usagef("--cd %s: use the absolute path of a directory on the machine of the service", o.dir)
	case o.dir != "":
		return &moveFiles{spec: workspace.Spec{Directory: o.dir}}, nil
	case o.files:
		w, left, err := filesOf(ctx, dir)
		if err != nil {
			return nil, fmt.Errorf("the files of %s: %w", dir, err)
		}
		fmt.Fprintf(o.Err, "agent: uploading %s of %s\n", display.Plural(len(w.names), "file"), dir)
		for _, l := range left {
			fmt.Fprintf(o.Err, "agent: %s stays here: %s\n", display.OneLine(l.Path, 200), l.Reason)
		}
		return w, nil
	}
	spec, why := pushed(ctx, dir)
	if why != "" {
		return nil, cmdutil.Advise(fmt.Errorf("the service cannot fetch the files of the session: %s %s", dir, why),
			"To take them along: commit and push them, or upload them with --files. Otherwise --cd DIR names a directory on the service's machine, and --empty leaves the files here.\n")
	}
	return &moveFiles{spec: spec}, nil
}

const (
	maxMovedFile = 1 << 30 // bytes
	maxMovedAll  = 2 << 30
)

// filesOf lists the files of a directory that a service may have, and what it may not.
func filesOf(ctx context.Context, dir string) (files *moveFiles, left []snapshot.Left, err error) {
	tmp, err := sandbox.NewTempDir() // the next agent removes what a killed one left
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, tmp.Remove()) }()
	w, err := snapshot.Open(snapshot.Options{
		Root: dir, Dir: filepath.Join(tmp.Path, "store"), NoIndex: true, MaxFileSize: maxMovedFile, MaxBytes: maxMovedAll,
		Leave: func(name string) string {
			if e, ok := sensitive.Match(filepath.ToSlash(dir)+"/"+name, len(dir)); ok && e.Class == sensitive.Secret {
				return "it may hold secrets"
			}
			return ""
		},
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	nothing, err := w.Peek(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	all, err := w.Take(ctx, snapshot.TakeOptions{})
	if err != nil {
		return nil, nil, err
	}
	changes, err := w.Changes(nothing.ID, all.ID)
	if err != nil {
		return nil, nil, err
	}
	files = &moveFiles{spec: workspace.Spec{Directory: workspace.New}}
	for _, c := range changes {
		files.names = append(files.names, c.Path)
	}
	files.root, err = os.OpenRoot(dir)
	return files, all.Left, err
}

// pushed returns the commit of a repository from which a service can make the directory
// as it is, or why it cannot.
func pushed(ctx context.Context, dir string) (spec workspace.Spec, why string) {
	top, err := gitIn(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return spec, "is in no git repository"
	}
	if at, err := filepath.EvalSymlinks(dir); err != nil || filepath.Clean(filepath.FromSlash(top)) != at {
		return spec, "is only a part of its git repository"
	}
	if changed, err := gitIn(ctx, dir, "status", "--porcelain", "--untracked-files=normal"); err != nil || changed != "" {
		return spec, fmt.Sprintf("has uncommitted changes (%s)", display.Plural(strings.Count(changed, "\n")+1, "file"))
	}
	commit, err := gitIn(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return spec, "has no commit"
	}
	remotes, err := gitIn(ctx, dir, "remote")
	for _, name := range strings.Fields(remotes) {
		refs, failed := gitIn(ctx, dir, "for-each-ref", "--contains", commit, "--count=1", "refs/remotes/"+name+"/")
		address, noURL := gitIn(ctx, dir, "remote", "get-url", name)
		if failed != nil || noURL != nil || refs == "" {
			continue
		}
		if u, err := url.Parse(address); err == nil && u.Scheme == "https" && u.User == nil {
			return workspace.Spec{Git: address, Revision: commit}, ""
		}
		why = "has a remote that is not reached by https:// without a user"
	}
	if err == nil && why != "" {
		return spec, why
	}
	return spec, fmt.Sprintf("has a commit that no remote has, %.12s", commit)
}

// gitIn runs git without programs that the repository names.
func gitIn(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
