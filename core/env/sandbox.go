package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env/internal/notes"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Sandbox configures how a [Local] confines the commands of sessions, which are
// those whose [core.Command] has grants. A command may write only what was
// granted, read all files except hidden ones, and reach only the granted hosts.
// A command whose grant is Unconfined is not confined.
type Sandbox struct {
	// Shell and Skills select the sandbox level for commands and for scripts of
	// skills. Empty means sandbox.ModeAuto.
	Shell, Skills sandbox.Mode
	// Masked are absolute paths that commands cannot read unless granted. The
	// last element may be a pattern of filepath.Match.
	Masked []string
	// Sensitive reports by a path relative to a directory of the workspace, with
	// forward slashes, which files there are hidden too; nil hides none. It is
	// called only for the upper levels, see docs/sandbox.md.
	Sensitive func(path string) bool
	// Fixture reports by a path relative to a directory of the workspace which of
	// these stay visible if they are committed; nil keeps none.
	Fixture func(path string) bool
	// ReadOnly are protected paths in writable directories: absolute paths, and
	// names such as ".git/" that apply in each such directory. For the trailing
	// slash see sandbox.Profile.
	ReadOnly []string
	// Writable are files and directories, such as caches, that a command may
	// write if it may write anything.
	Writable []string
	// Scratch are directories, such as caches, whose changes go to a copy.
	Scratch []string
	// Home returns a directory in which everything is hidden but what is open, the
	// workspace, and what was granted; an empty one hides nothing. The paths are
	// absolute, without symbolic links. It is called for each command, at once for
	// several; nil hides nothing.
	Home func() (hidden string, open []string)
	// Hosts can be reached by every command; see sandbox.ParseHost. "*" is all.
	Hosts []string
}

// check validates the options.
func (s *Sandbox) check() error {
	if s == nil {
		return nil
	}
	for _, mode := range []sandbox.Mode{s.Shell, s.Skills} {
		if !mode.Valid() {
			return fmt.Errorf("sandbox: unknown mode %q: use auto, require, namespace, landlock or off", mode)
		}
	}
	for _, h := range s.Hosts {
		if _, err := sandbox.ParseHost(h); err != nil && h != "*" {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil
}

// Sandboxed reports whether the commands of sessions are confined: the shell's
// mode is not off, and a level works on this machine. The first call may start a
// process to find out.
func (l *Local) Sandboxed(ctx context.Context) bool {
	return l.level(ctx) != sandbox.None
}

// confined is a command in its sandbox.
type confined struct {
	profile *sandbox.Profile
	dir     string
	tail    *notes.Tail // end of the command's output; nil without
	planted *inspection
	// unsigned says that git would sign, outside the sandbox.
	unsigned bool

	mu      sync.Mutex
	refused []string // hosts
}

// confine derives the sandbox of a command from its grants and adds it to the
// spec. It returns nil for a command that is not confined.
func (l *Local) confine(ctx context.Context, cmd *core.Command, spec *proc.Spec, try string) (*confined, error) {
	if l.sandbox == nil || cmd.Grants == nil {
		return nil, nil
	}
	own := l.ownGrant(cmd)
	mode := l.sandbox.Shell
	if own.Scope == core.ScopeSkillScript {
		mode = l.sandbox.Skills
	}
	if own.Unconfined || mode == sandbox.ModeOff {
		return nil, nil
	}
	level, err := l.supervisor.Sandbox().Choose(ctx, mode)
	if err != nil || level == sandbox.None {
		return nil, err
	}
	tmp, layers, err := l.tmp.dirs()
	if err != nil {
		return nil, fmt.Errorf("create a directory for temporary files: %w", err)
	}
	c := &confined{dir: spec.Dir}
	c.profile = &sandbox.Profile{Mode: mode, Readable: append(borrowed(l.info.Roots), l.info.Roots...), Tmp: tmp, Scratch: l.sandbox.Scratch, Layers: layers}
	c.planted = l.grantFiles(c.profile, cmd.Grants)
	if try != "" {
		c.try(try)
	}
	c.unsigned = unsigned(strings.Join(append(slices.Clone(cmd.Argv), cmd.Script), " "), l.info.Home, l.info.Roots)
	spec.Env = gitEnv(spec.Env)
	c.grantNetwork(l.sandbox.Hosts, cmd.Grants)
	spec.Sandbox = c.profile
	c.tail = notes.Watch(&spec.Stdout, &spec.Stderr)
	return c, nil
}

// ownGrant returns the grant that allowed the command.
func (l *Local) ownGrant(cmd *core.Command) core.Grant {
	line := cmd.Script
	if line == "" {
		line = strings.Join(cmd.Argv, " ")
	}
	for _, g := range cmd.Grants {
		if (g.Scope == core.ScopeShell || g.Scope == core.ScopeSkillScript) && g.Resource == line {
			return g
		}
	}
	return core.Grant{} // unknown: confined like a shell command
}

// sweep removes what killed agents left behind.
func (l *Local) sweep() {
	sandbox.SweepTempDirs()
	ignore := func(string) {}
	scan(l.info.Roots, l.listings(), ignore, func(path string) { sandbox.RemovePlaceholder(filepath.Clean(path)) })
}

// grantFiles adds the granted paths to the profile. It returns what to check after
// the command.
func (l *Local) grantFiles(p *sandbox.Profile, grants []core.Grant) *inspection {
	for _, g := range grants {
		switch {
		case g.Scope == core.ScopeWrite || g.Scope == core.ScopeDelete:
			p.Writable = append(p.Writable, g.Resource)
		case g.Scope == core.ScopeRead && sandbox.InTempDir(g.Resource):
			p.Readable = append(p.Readable, g.Resource) // what this program put there
		}
	}
	mask := func(path string) {
		if !reads(grants, path) {
			p.Masked = append(p.Masked, path)
		}
	}
	// Most of the time here is that of looking at directories.
	var hidden []string
	var looking sync.WaitGroup
	writable := p.Writable[:len(p.Writable):len(p.Writable)]
	looking.Go(func() { hidden = l.hidden(writable, grants) })
	for _, path := range l.masked().existing(nil) {
		mask(path)
	}
	committed := fixtures{roots: l.info.Roots, is: l.sandbox.Fixture}
	look := protect(p, l.sandbox.ReadOnly, l.listings(), l.info.Roots, func(path string) {
		if !committed.has(path) {
			mask(path)
		}
	})
	if len(p.Writable) > 0 {
		p.Writable = append(p.Writable, l.sandbox.Writable...)
	}
	looking.Wait()
	p.Masked = append(p.Masked, hidden...)
	return look
}

// Protect adds what must not be written in the writable directories of a profile:
// the names and paths of [Sandbox.ReadOnly].
func Protect(p *sandbox.Profile, readOnly []string) {
	protect(p, readOnly, newListings(newNames(readOnly), nil), nil, nil)
}

// Secrets returns the files to hide in directories that a process sees, found as in a
// workspace; see [Sandbox.Sensitive] and [Sandbox.Fixture].
func Secrets(dirs []string, secret, fixture func(path string) bool) (paths []string) {
	committed := fixtures{roots: dirs, is: fixture}
	scan(dirs, newListings(newNames(nil), secret), func(path string) {
		if !committed.has(path) {
			paths = append(paths, path)
		}
	}, func(string) {})
	return paths
}

// protect adds protected paths to a profile, and reports sensitive files in its
// writable directories and further ones. It returns what to check after the command.
func protect(p *sandbox.Profile, readOnly []string, in *listings, further []string, mask func(path string)) *inspection {
	for _, path := range readOnly {
		if filepath.IsAbs(path) {
			p.ReadOnly = append(p.ReadOnly, path)
		}
	}
	look := inspect(in, p.Writable)
	repositories := 0
	git := func(dir string) {
		if repositories++; repositories > maxRepositories {
			p.ReadOnly = append(p.ReadOnly, filepath.Join(dir, ".git"))
		} else {
			protectGit(p, dir)
		}
	}
	if in.names.match("/.git") {
		for _, dir := range look.roots {
			git(dir)
		}
	}
	roots := slices.Concat(further, p.Writable)
	slices.Sort(roots)
	scan(slices.Compact(roots), in, mask, func(path string) {
		look.remember(path)
		switch dir := filepath.Dir(path); {
		case filepath.Base(path) != ".git":
			if len(p.ReadOnly) < maxProtected {
				p.ReadOnly = append(p.ReadOnly, path)
			}
		case !slices.Contains(look.roots, dir):
			git(dir)
		}
	})
	look.exclude(p.ReadOnly)
	return look
}

// hidden returns what is hidden of the home directory.
func (l *Local) hidden(writable []string, grants []core.Grant) []string {
	if l.sandbox.Home == nil {
		return nil
	}
	home, open := l.sandbox.Home()
	if home == "" {
		return nil
	}
	open = slices.Concat(open, l.info.Roots, writable)
	for _, dir := range l.info.Roots { // the repository of a worktree
		open = append(open, gitDirs(dir)...)
	}
	open = append(open, borrowed(l.info.Roots)...)
	for _, g := range grants {
		if g.Scope == core.ScopeRead {
			open = append(open, g.Resource)
		}
	}
	return sandbox.HideExcept([]string{home}, open)
}

// maxRepositories is the maximum number of repositories that git may write; those of
// further directories are read-only.
const maxRepositories = 8

// maxProtected limits the mounts for protected files. Changes to further ones are set
// aside after the command.
const maxProtected = 100

// reads reports whether reading a path was granted.
func reads(grants []core.Grant, path string) bool {
	return slices.ContainsFunc(grants, func(g core.Grant) bool {
		if g.Scope != core.ScopeRead {
			return false
		}
		return g.Resource == path || g.Recursive && sandbox.Below(g.Resource, path) && (g.Except == nil || !g.Except(path))
	})
}

// grantNetwork adds the granted hosts to the profile.
func (c *confined) grantNetwork(hosts []string, grants []core.Grant) {
	hosts = slices.Clone(hosts)
	for _, g := range grants {
		if g.Scope == core.ScopeNetwork {
			hosts = append(hosts, g.Resource)
		}
	}
	n := &c.profile.Network
	for _, h := range hosts {
		if h == "*" {
			n.Full = true
		} else if _, err := sandbox.ParseHost(h); err == nil { // else it is not a host
			n.Hosts = append(n.Hosts, h)
		}
	}
	n.Refused = func(host, reason string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if at, port, err := net.SplitHostPort(host); err == nil && port == "443" {
			host = at
		}
		if text := host + " (" + reason + ")"; !slices.Contains(c.refused, text) && len(c.refused) < maxRefused {
			c.refused = append(c.refused, text)
		}
	}
}

// maxRefused limits the hosts reported to the model.
const maxRefused = 8

// explain sets aside what the command planted, and appends a note to its output
// about that, and about what the sandbox may have made fail.
func (c *confined) explain(level sandbox.Level, exit core.Exit, aside []string) {
	if c == nil || level == sandbox.None {
		return
	}
	aside = append(aside, c.planted.setAside()...)
	if c.tail == nil {
		return
	}
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	var lines []string
	hosts := hostsToAsk(refused)
	for _, host := range refused {
		lines = append(lines, "the connection to "+host+" was refused")
	}
	for _, path := range aside {
		lines = append(lines, asideNote(path))
	}
	if c.unsigned && exit.Code == 0 {
		lines = append(lines, "git signs nothing here, since keys are hidden: the commits and tags of this command are unsigned")
	}
	if exit.Code != 0 {
		for _, cause := range c.profile.Explain(level, c.dir, string(c.tail.Kept)) {
			if cause.Kind != sandbox.NoNetwork || len(refused) == 0 {
				lines = append(lines, describe(cause))
				if cause.Kind == sandbox.Unserved && cause.Path != "" || cause.Kind == sandbox.NoNetwork {
					hosts = cmp.Or(hosts, fmt.Sprintf("[%q]", cmp.Or(cause.Path, "HOST")))
				}
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	text := "[sandbox: " + strings.Join(lines, "; ") + ". "
	if hosts != "" {
		text += "To ask the user for the hosts, run the command again with hosts: " + hosts + ". "
	}
	c.tail.Note(text + "To run the command without the sandbox, the user must approve it.]\n")
}

// hostsToAsk writes the refused hosts like an argument of the tool shell.
func hostsToAsk(refused []string) string {
	if len(refused) == 0 {
		return ""
	}
	names := make([]string, len(refused))
	for i, text := range refused {
		host, _, _ := strings.Cut(text, " ")
		names[i] = strconv.Quote(host)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func describe(c sandbox.Cause) string {
	switch c.Kind {
	case sandbox.Hidden:
		return c.Path + " is hidden from commands"
	case sandbox.Protected:
		return c.Path + " is protected: commands cannot write, rename or remove it"
	case sandbox.Beside:
		return "programs that are new in " + c.Path + " cannot be started at this sandbox level (landlock), because it contains a hidden file"
	case sandbox.NoNetwork:
		if c.Path != "" {
			return "the command has no network access to " + c.Path
		}
		return "the command has no network access"
	case sandbox.Unserved:
		return "the command reaches only servers that it starts itself, not " + cmp.Or(c.Path, "others on this machine")
	case sandbox.Socket:
		return "the socket " + c.Path + " is hidden from commands, if it exists"
	case sandbox.Keys:
		return "your keys, passwords and sign-ins are hidden from commands"
	case sandbox.Process:
		return "processes outside the sandbox are invisible"
	case sandbox.Call:
		return "the sandbox refuses this system call"
	}
	return "the command cannot write " + c.Path
}

// Limits of scanning a workspace for each command.
const (
	scanDepth   = 8
	scanEntries = 3000
)

// skipped are directories with lots of third-party files.
var skipped = []string{"node_modules", "vendor", "target", "dist", "build", "__pycache__", ".venv", "venv"}

// scan walks directories, the upper levels first, and reports sensitive files
// and entries with protected names.
func scan(roots []string, in *listings, mask, pin func(path string)) {
	type place struct{ dir, rel string }
	queue := make([]place, len(roots))
	for i, dir := range roots {
		queue[i].dir = dir
	}
	left := scanEntries
	for range scanDepth {
		var next []place
		for _, at := range queue {
			found, err := in.of(at.dir, at.rel, left)
			if err != nil {
				continue // the command cannot read it either
			}
			if left -= found.size; left <= 0 {
				return
			}
			for _, e := range found.entries {
				switch {
				case e.kind&fs.ModeSymlink != 0:
					continue
				case e.protected:
					pin(e.path)
				case e.secret:
					mask(e.path)
					continue
				}
				if e.kind.IsDir() && e.name != ".git" && !slices.Contains(skipped, e.name) {
					next = append(next, place{e.path, at.rel + e.name + "/"})
				}
			}
		}
		queue = next
	}
}

// readSome returns at most n entries of a directory.
func readSome(dir string, n int) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(n)
	if err == io.EOF { // of an empty directory
		err = nil
	}
	return entries, err
}

// tmpDir is a directory for the temporary files of all commands, and for their
// changes of caches. It is created on demand.
type tmpDir struct {
	mu  sync.Mutex
	dir *sandbox.TempDir
}

func (t *tmpDir) dirs() (files, layers string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == nil {
		if t.dir, err = sandbox.NewTempDir(); err != nil {
			return "", "", err
		}
	}
	files, layers = filepath.Join(t.dir.Path, "tmp"), filepath.Join(t.dir.Path, "layers")
	for _, dir := range []string{files, layers} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", "", err
		}
	}
	return files, layers, nil
}

// remove removes the directory.
func (t *tmpDir) remove() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	dir := t.dir
	t.dir = nil
	return dir.Remove()
}
