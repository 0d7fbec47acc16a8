package env

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// Sandbox says how a [Local] confines the commands that sessions start: those
// of which [core.Command] says what was granted to their call. A command may
// write what was granted to be written, and no more; the files of the machine
// are there to be read, except for the hidden ones; the network is what was
// granted. A command whose grant is Unconfined is not confined.
type Sandbox struct {
	// Shell and Skills choose the level for commands and for scripts of
	// skills. Empty is sandbox.ModeAuto.
	Shell, Skills sandbox.Mode
	// Masked are absolute paths that commands cannot read, unless reading them
	// was granted. The last element may be a pattern of filepath.Match.
	Masked []string
	// Sensitive tells by the name which files in the workspace are hidden,
	// too; nil hides none. It is asked about the upper levels only, see
	// docs/sandbox.md.
	Sensitive func(name string) bool
	// ReadOnly are paths that stay as they are in directories that may be
	// written: absolute ones, and names such as ".git/" that are meant in each
	// such directory. See sandbox.Profile for a trailing slash.
	ReadOnly []string
	// Writable are files and directories that every command may write that may
	// write anything at all, such as caches.
	Writable []string
	// Scratch are directories, such as caches, of which commands write a copy.
	Scratch []string
	// Hosts can be reached by every command; see sandbox.ParseHost, "*" is all.
	Hosts []string
}

// check reports what is wrong with the options.
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

// Sandboxed reports whether the commands of sessions are confined, which means
// that the shell's mode is not off and a level works here. The first call may
// start a process to find out.
func (l *Local) Sandboxed(ctx context.Context) bool {
	if l.sandbox == nil {
		return false
	}
	level, err := l.supervisor.Sandbox().Choose(ctx, l.sandbox.Shell)
	return err == nil && level != sandbox.None
}

// confined is a command in its sandbox.
type confined struct {
	profile *sandbox.Profile
	dir     string
	out     io.Writer // where a note goes
	tail    *tail     // the last of what the command printed

	mu      sync.Mutex
	refused []string // hosts
}

// confine works the sandbox of a command out of its grants, and puts it into
// the spec. It returns nil for a command that is not confined.
func (l *Local) confine(cmd *core.Command, spec *proc.Spec) (*confined, error) {
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
	tmp, layers, err := l.tmp.dirs()
	if err != nil {
		return nil, fmt.Errorf("a directory for the command's temporary files: %w", err)
	}
	c := &confined{dir: spec.Dir}
	c.profile = &sandbox.Profile{Mode: mode, Readable: l.info.Roots, Tmp: tmp, Scratch: l.sandbox.Scratch, Layers: layers}
	l.grantFiles(c.profile, cmd.Grants)
	c.grantNetwork(l.sandbox.Hosts, cmd.Grants)
	spec.Sandbox = c.profile
	c.watch(spec)
	return c, nil
}

// ownGrant returns the grant by which the command was let through.
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
	return core.Grant{} // unknown: confined as a shell's command
}

// grantFiles opens the profile for what was granted.
func (l *Local) grantFiles(p *sandbox.Profile, grants []core.Grant) {
	for _, g := range grants {
		if g.Scope == core.ScopeWrite || g.Scope == core.ScopeDelete {
			p.Writable = append(p.Writable, g.Resource)
		}
	}
	mask := func(path string) {
		if !reads(grants, path) {
			p.Masked = append(p.Masked, path)
		}
	}
	for _, pattern := range l.sandbox.Masked {
		for _, path := range Expand(pattern) {
			mask(path)
		}
	}
	var names []string // of what stays as it is wherever it is
	for _, path := range l.sandbox.ReadOnly {
		if filepath.IsAbs(path) {
			p.ReadOnly = append(p.ReadOnly, path)
		} else {
			names = append(names, path)
		}
	}
	for _, dir := range p.Writable {
		for _, name := range names {
			p.ReadOnly = append(p.ReadOnly, dir+string(filepath.Separator)+name)
		}
		p.ReadOnly = append(p.ReadOnly, gitDirs(dir)...)
	}
	roots := slices.Concat(l.info.Roots, p.Writable)
	slices.Sort(roots)
	scan(slices.Compact(roots), names, l.sandbox.Sensitive, mask, func(path string) { p.ReadOnly = append(p.ReadOnly, path) })
	if len(p.Writable) > 0 {
		p.Writable = append(p.Writable, l.sandbox.Writable...)
	}
}

// reads reports whether reading a path was granted.
func reads(grants []core.Grant, path string) bool {
	return slices.ContainsFunc(grants, func(g core.Grant) bool {
		if g.Scope != core.ScopeRead {
			return false
		}
		return g.Resource == path || g.Recursive && sandbox.Below(g.Resource, path) && (g.Except == nil || !g.Except(path))
	})
}

// Expand returns the paths that a path, whose last element may be a pattern of
// filepath.Match, stands for now.
func Expand(pattern string) []string {
	if !strings.ContainsAny(filepath.Base(pattern), `*?[`) {
		return []string{pattern}
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return []string{pattern} // no pattern after all
	}
	return paths
}

// grantNetwork opens the profile for the hosts that were granted.
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
		} else if _, err := sandbox.ParseHost(h); err == nil { // else it stands for nothing that could be reached
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

// maxRefused bounds the hosts that are named to the model.
const maxRefused = 8

// watch keeps the last of what the command prints, to see why it failed.
func (c *confined) watch(spec *proc.Spec) {
	c.out = spec.Stderr
	if c.out == nil {
		c.out = spec.Stdout
	}
	if _, direct := c.out.(*os.File); direct || c.out == nil {
		return
	}
	c.tail = &tail{w: c.out}
	if same(spec.Stdout, spec.Stderr) {
		spec.Stdout = c.tail
	}
	if spec.Stderr != nil {
		spec.Stderr = c.tail
	} else {
		spec.Stdout = c.tail
	}
}

// same reports whether two writers are one.
func same(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// explain writes behind the output of a command that failed what the sandbox
// has to do with it.
func (c *confined) explain(level sandbox.Level, exit core.Exit, aside []string) {
	if c == nil || c.out == nil || level == sandbox.None {
		return
	}
	c.mu.Lock()
	refused := c.refused
	c.mu.Unlock()
	var notes []string
	for _, host := range refused {
		notes = append(notes, "the connection to "+host+" was refused")
	}
	for _, path := range aside {
		notes = append(notes, strings.TrimSuffix(path, sandbox.AsideSuffix)+" is protected and was set aside as "+path)
	}
	if exit.Code != 0 && c.tail != nil {
		for _, cause := range c.profile.Explain(level, c.dir, string(c.tail.kept)) {
			if cause.Kind != sandbox.NoNetwork || len(refused) == 0 {
				notes = append(notes, describe(cause))
			}
		}
	}
	if len(notes) == 0 {
		return
	}
	text := "[sandbox: " + strings.Join(notes, "; ") + ". Outside the sandbox the command runs only if the person allows it.]\n"
	if c.tail != nil && !c.tail.ended() {
		text = "\n" + text
	}
	_, _ = io.WriteString(c.out, text) // a failure of the output is its owner's matter
}

func describe(c sandbox.Cause) string {
	switch c.Kind {
	case sandbox.Hidden:
		return c.Path + " is hidden from commands"
	case sandbox.Protected:
		return c.Path + " is protected: commands cannot write, rename or remove it"
	case sandbox.Beside:
		return "nothing can be made, removed or replaced directly in " + c.Path + " by this machine's kind of sandbox (landlock), since something in it is protected; in its directories it can"
	case sandbox.NoNetwork:
		return "the command has no network"
	}
	return "the command cannot write " + c.Path
}

// tail passes output on and keeps the end of it.
type tail struct {
	w    io.Writer
	kept []byte
}

// tailSize is how much is kept at least.
const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b[max(0, len(b)-tailSize):]...)
	if len(t.kept) > 2*tailSize {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-tailSize:]...)
	}
	return t.w.Write(b)
}

// ended reports whether the output ended with a line.
func (t *tail) ended() bool { return len(t.kept) == 0 || t.kept[len(t.kept)-1] == '\n' }

// gitDirs returns the directories of the repository that a worktree's file .git
// leads to.
func gitDirs(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, ".git"))
	if err != nil {
		return nil // there is none, or it is a directory
	}
	at, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir:")
	if at = strings.TrimSpace(at); !ok || at == "" {
		return nil
	}
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	dirs := []string{at}
	if text, err = os.ReadFile(filepath.Join(at, "commondir")); err == nil {
		common := strings.TrimSpace(string(text))
		if !filepath.IsAbs(common) {
			common = filepath.Join(at, common)
		}
		dirs = append(dirs, common)
	}
	return dirs
}

// The part of a workspace that is looked through for each command.
const (
	scanDepth   = 4
	scanEntries = 3000
)

// skipped are directories that hold what others made, and much of it.
var skipped = []string{"node_modules", "vendor", "target", "dist", "build", "__pycache__", ".venv", "venv"}

// scan looks through directories, the upper levels first, and tells of
// sensitive files, and of what has one of the names that stay as they are.
func scan(roots, names []string, sensitive func(string) bool, mask, pin func(path string)) {
	queue := slices.Clone(roots)
	left := scanEntries
	for range scanDepth {
		var next []string
		for _, dir := range queue {
			entries, err := readSome(dir, left)
			if err != nil {
				continue // it cannot be read: nor can the command
			}
			if left -= len(entries); left <= 0 {
				return
			}
			for _, e := range entries {
				path := filepath.Join(dir, e.Name())
				switch {
				case e.Type()&fs.ModeSymlink != 0:
				case slices.Contains(names, e.Name()), slices.Contains(names, e.Name()+"/"):
					pin(path)
				case sensitive != nil && sensitive(e.Name()):
					mask(path)
				case e.IsDir() && !slices.Contains(skipped, e.Name()):
					next = append(next, path)
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

// tmpDir is a directory for the temporary files of all commands, and for what
// they change in caches. It is made when it is needed.
type tmpDir struct {
	mu   sync.Mutex
	path string
}

func (t *tmpDir) dirs() (files, layers string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path == "" {
		path, err := os.MkdirTemp("", "agent-tmp-")
		if err != nil {
			return "", "", err
		}
		t.path = path
	}
	files, layers = filepath.Join(t.path, "tmp"), filepath.Join(t.path, "layers")
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
	if t.path == "" {
		return nil
	}
	path := t.path
	t.path = ""
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	// The kernel's own directories in a layer, and those of Go's modules, are
	// locked.
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
