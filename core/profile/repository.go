package profile

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// repository is the git repository of the working directory, as it was at the
// start of the session.
type repository struct {
	looked bool
	root   string // the top of the working tree; empty outside a repository
	branch string // empty if no branch is checked out
	status string // output of git status --porcelain
	log    []string
	asked  bool           // git ran successfully
	git    sync.WaitGroup // until git has answered, status, log and asked are not to be read
}

// gitTime is the timeout of git; after it, the prompt has no git state.
const gitTime = 2 * time.Second

// findRepository looks for a repository in the working directory and above. If
// there is one, and its configuration names no programs that git would run, it
// starts git; the caller waits for its answers.
func findRepository(ctx context.Context, env core.Environment) *repository {
	info := env.Info()
	r := &repository{looked: true}
	slash := pathsOf(info.OS)
	var dir string
	for at := info.Dir; ; {
		meta := slash.join(at, ".git")
		if stat, err := env.Files().Stat(ctx, meta); err == nil {
			r.root = at
			if dir = meta; !stat.IsDir() {
				dir = linkedDir(ctx, env, slash, meta)
			}
			break
		}
		up := slash.dir(at)
		if up == at || up == "" {
			return r
		}
		at = up
	}
	if head, ok := small(ctx, env, slash.join(dir, "HEAD")); ok {
		r.branch, _ = strings.CutPrefix(strings.TrimSpace(head), "ref: refs/heads/")
		if r.branch == strings.TrimSpace(head) { // a commit
			r.branch = ""
		}
	}
	if harmless(ctx, env, slash, dir) {
		r.git.Go(func() { r.ask(ctx, env) })
	}
	return r
}

// linkedDir returns the directory named by the .git file of a worktree or
// submodule.
func linkedDir(ctx context.Context, env core.Environment, slash paths, file string) string {
	text, _ := small(ctx, env, file)
	to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
	switch {
	case !ok:
		return file
	case slash.isAbs(to):
		return to
	}
	return slash.join(slash.dir(file), to)
}

// harmless reports whether the repository's own configuration has nothing that
// makes git run other programs: filters, monitors, signatures.
func harmless(ctx context.Context, env core.Environment, slash paths, dir string) bool {
	if common, ok := small(ctx, env, slash.join(dir, "commondir")); ok {
		if to := strings.TrimSpace(common); slash.isAbs(to) {
			dir = to
		} else {
			dir = slash.join(dir, to)
		}
	}
	config, ok := small(ctx, env, slash.join(dir, "config"))
	if !ok {
		return false
	}
	config = strings.ToLower(config)
	for _, word := range []string{"[filter", "[include", "fsmonitor", "[gpg", "[diff", "worktreeconfig", "attributesfile", "[alias", "sshcommand"} {
		if strings.Contains(config, word) {
			return false
		}
	}
	return true
}

// ask runs git for the state of the files and, at the same time, for the last commits.
func (r *repository) ask(ctx context.Context, env core.Environment) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	var log string
	var other sync.WaitGroup
	other.Go(func() {
		log, _ = r.run(ctx, env, "log", "-n", "8", "--pretty=oneline", "--abbrev-commit", "--no-decorate") // fails before the first commit
	})
	r.status, r.asked = r.run(ctx, env, "status", "--porcelain", "--ignore-submodules=all")
	other.Wait()
	for l := range strings.SplitSeq(strings.TrimSpace(log), "\n") {
		if l = oneLine(l); l != "" {
			r.log = append(r.log, clip(l, 100))
		}
	}
}

// Uncommitted reports whether the repository of env's working directory has changes that
// are not committed. Without git or a repository there are none. git runs programs that
// the repository's settings name: call it only where they are trusted.
func Uncommitted(ctx context.Context, env core.Environment) bool {
	r := &repository{root: env.Info().Dir}
	changes, ok := r.run(ctx, env, "status", "--porcelain", "--ignore-submodules=all")
	return ok && changes != ""
}

// run runs git, without a shell, and reports whether it succeeded.
func (r *repository) run(ctx context.Context, env core.Environment, args ...string) (string, bool) {
	var out bytes.Buffer
	p, err := env.Start(ctx, core.Command{
		Argv:   append([]string{"git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "color.ui=false"}, args...),
		Dir:    r.root,
		Env:    []string{"GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "LC_ALL=C"},
		Stdout: &out,
	})
	if err != nil {
		return "", false
	}
	exit, err := p.Wait()
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), err == nil && exit.Code == 0
}

// snapshot describes the state of the repository to the model.
func (r *repository) snapshot() string {
	if !r.asked {
		return ""
	}
	modified, untracked := 0, 0
	for l := range strings.SplitSeq(strings.TrimRight(r.status, "\n "), "\n") {
		switch {
		case strings.HasPrefix(l, "??"):
			untracked++
		case l != "":
			modified++
		}
	}
	var b strings.Builder
	b.WriteString("<git>\nState at the start of the session; git status shows the current state.\n")
	fmt.Fprintf(&b, "Changed files: %d\nUntracked: %d\n", modified, untracked)
	if len(r.log) > 0 {
		b.WriteString("Last commits:\n")
		for _, l := range r.log {
			b.WriteString("  " + l + "\n")
		}
	}
	b.WriteString("</git>")
	return b.String()
}

// clip shortens a line to n characters.
func clip(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// small reads a small file, and reports whether it succeeded.
func small(ctx context.Context, env core.Environment, path string) (string, bool) {
	const most = 64 << 10
	data, err := core.ReadFile(ctx, env.Files(), path, most)
	return string(data), err == nil
}

// paths handles the paths of an environment, which may be those of another OS.
type paths struct{ windows bool }

func pathsOf(os string) paths { return paths{os == "windows"} }

func (p paths) join(elem ...string) string {
	if p.windows {
		return filepath.Join(elem...)
	}
	return path.Join(elem...)
}

func (p paths) dir(at string) string {
	if p.windows {
		return filepath.Dir(at)
	}
	return path.Dir(at)
}

func (p paths) isAbs(at string) bool {
	if p.windows {
		return filepath.IsAbs(at)
	}
	return path.IsAbs(at)
}
