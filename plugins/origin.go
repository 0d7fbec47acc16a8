package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Scope is where a plugin comes from.
type Scope string

// The scopes, in order of precedence for plugins with the same name: a project
// cannot replace any.
const (
	Bundled      Scope = "bundled" // built into the agent
	User         Scope = "user"    // installed by the user
	Linked       Scope = "link"    // a linked folder, used in place
	Project      Scope = "project" // part of the project
	SkillToolset Scope = "carried" // a toolset of a skill
)

// loaded is a snapshot of an origin.
type loaded struct {
	spec Spec
	dir  string   // the plugin's folder
	argv []string // the command, with absolute paths
	hash string   // of its files, the key of the cached description; "" = not cached
	desc *toolproto.Description
}

// origin is where a plugin comes from. Its methods are safe for concurrent use.
type origin interface {
	// stamp changes when the result of load may have changed. It is cheap.
	stamp() string
	// load reads the plugin, but not all of its files.
	load(ctx context.Context) (loaded, error)
	// verify reports whether the files are what the user approved.
	verify(ctx context.Context, l *loaded) error
}

// stampOf returns a stamp of files: their sizes and times.
func stampOf(names ...string) string {
	var b []byte
	for _, name := range names {
		b = append(append(b, name...), ':')
		if info, err := os.Stat(name); err != nil {
			b = append(b, '-')
		} else {
			b = strconv.AppendInt(append(strconv.AppendInt(b, info.Size(), 10), ':'), info.ModTime().UnixNano(), 10)
		}
		b = append(b, ';')
	}
	return string(b)
}

// read loads the plugin in a folder.
func read(dir string) (loaded, error) {
	s, err := ReadSpec(dir)
	if err != nil {
		return loaded{}, err
	}
	l := loaded{spec: s, dir: dir}
	l.argv, err = s.argv(dir)
	return l, err
}

// checkName checks that the plugin has the expected name.
func (l *loaded) checkName(name string) error {
	if l.spec.Name != name {
		return fmt.Errorf("%s: the plugin's name is %q, expected %q", filepath.Join(l.dir, SpecFile), l.spec.Name, name)
	}
	return nil
}

// installed is a plugin in a store, pinned by its lock file.
type installed struct {
	store *bundle.Store
	name  string
}

func (o *installed) stamp() string {
	return stampOf(o.store.LockFile(), filepath.Join(o.store.Path(o.name), SpecFile))
}

func (o *installed) load(ctx context.Context) (loaded, error) {
	entry, err := o.store.Entry(ctx, o.name)
	if err != nil {
		return loaded{}, err
	}
	if !entry.Consented() {
		return loaded{}, fmt.Errorf("its files changed since you approved them: run 'agent plugins add %s' again", o.name)
	}
	l, err := read(o.store.Path(o.name))
	if err != nil {
		return loaded{}, err
	}
	l.hash = entry.Tree
	return l, l.checkName(o.name)
}

func (o *installed) verify(ctx context.Context, _ *loaded) error {
	_, changes, err := o.store.Verify(ctx, o.name)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		return &ChecksumError{Plugin: o.name, Changes: changes}
	}
	return nil
}

// ChecksumError says that a plugin's files are not those that the user approved, or
// those of the checksums in its plugin.json.
type ChecksumError struct {
	Plugin  string
	Changes []bundle.Change
	Sealed  string // the folder whose plugin.json has the checksums; empty for an installed plugin
}

// Error implements error.
func (e *ChecksumError) Error() string {
	var list []string
	for _, c := range e.Changes {
		list = append(list, fmt.Sprintf("%s was %s", c.Path, c.Kind))
	}
	changes := shorten(cleanLine(strings.Join(list, ", ")), 300)
	if e.Sealed != "" {
		return fmt.Sprintf("its files are not those of the checksums in %s (%s): restore them or, if the changes are intended, run 'agent plugins seal %s'",
			SpecFile, changes, e.Sealed)
	}
	return fmt.Sprintf("its files changed since you approved them (%s): run 'agent plugins remove %s --discard-edits', then add it again", changes, e.Plugin)
}

// project is a plugin of a trusted project: its plugin.json is trusted, and the
// checksums in it pin the other files.
type project struct{ dir string }

func (o *project) stamp() string { return stampOf(filepath.Join(o.dir, SpecFile)) }

func (o *project) load(context.Context) (loaded, error) {
	l, err := read(o.dir)
	if err != nil {
		return l, err
	}
	if len(l.spec.Checksums) == 0 {
		return l, fmt.Errorf("%s has no checksums, which a project's plugin needs: run 'agent plugins seal %s'",
			filepath.Join(o.dir, SpecFile), o.dir)
	}
	if l.hash, err = fileHash(filepath.Join(o.dir, SpecFile)); err != nil {
		return l, err
	}
	return l, l.checkName(filepath.Base(o.dir))
}

func (o *project) verify(ctx context.Context, l *loaded) error {
	return verifySums(ctx, l.dir, l.spec)
}

// verifySums checks a folder against the checksums in its plugin.json.
func verifySums(ctx context.Context, dir string, s Spec) error {
	tree, err := bundle.Scan(ctx, dir, bundle.Limits{})
	if err != nil {
		return err
	}
	var changes []bundle.Change
	left := len(s.Checksums)
	for _, f := range tree.Files {
		if f.Path == SpecFile {
			continue
		}
		switch want, ok := s.Checksums[f.Path]; {
		case !ok:
			changes = append(changes, bundle.Change{Path: f.Path, Kind: bundle.Added})
			continue
		case want != f.SHA256:
			changes = append(changes, bundle.Change{Path: f.Path, Kind: bundle.Modified})
		}
		left--
	}
	if left > 0 {
		for name := range s.Checksums {
			if !slices.ContainsFunc(tree.Files, func(f bundle.File) bool { return f.Path == name }) {
				changes = append(changes, bundle.Change{Path: name, Kind: bundle.Removed})
			}
		}
	}
	if len(changes) > 0 {
		return &ChecksumError{Plugin: s.Name, Changes: changes, Sealed: dir}
	}
	return nil
}

// linked is a folder that is used in place. Its files are not verified, but its
// manifest cannot grow beyond what the user approved.
type linked struct {
	name, dir string
	approved  *Manifest // nil = any

	mu    sync.Mutex
	spec  string   // stamp of the plugin.json that files were read from
	files []string // that the command names, such as the built program
}

func (o *linked) stamp() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	spec := stampOf(filepath.Join(o.dir, SpecFile))
	if spec != o.spec { // stamp runs before each call, and plugin.json seldom changes
		o.spec, o.files = spec, nil
		if l, err := read(o.dir); err == nil {
			for _, arg := range l.argv {
				if filepath.IsAbs(arg) {
					o.files = append(o.files, arg)
				}
			}
		}
	}
	return spec + stampOf(o.files...) + SourceStamp(o.dir, nil)
}

func (o *linked) load(context.Context) (loaded, error) {
	l, err := read(o.dir)
	if err != nil {
		return l, err
	}
	if o.approved != nil {
		if more := l.spec.Manifest.beyond(*o.approved); len(more) > 0 {
			return l, asksForMore(more, o.dir)
		}
	}
	sum := sha256.Sum256([]byte(o.stamp()))
	l.hash = hex.EncodeToString(sum[:])
	return l, l.checkName(o.name)
}

func (*linked) verify(context.Context, *loaded) error { return nil }

// binary is a single program with a pinned checksum.
type binary struct{ path, sum string }

func (o *binary) stamp() string { return stampOf(o.path) }

func (o *binary) load(context.Context) (loaded, error) {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(o.path)), ".exe")
	if !namePattern().MatchString(name) {
		return loaded{}, fmt.Errorf("%s: the program must have the plugin's name: lower-case letters, digits and -", o.path)
	}
	return loaded{
		spec: Spec{Name: name, Protocol: toolproto.Version, Version: anyVersion},
		dir:  filepath.Dir(o.path), argv: []string{o.path}, hash: o.sum,
	}, nil
}

func (o *binary) verify(context.Context, *loaded) error {
	sum, err := fileHash(o.path)
	if err != nil {
		return err
	}
	if sum != o.sum {
		return fmt.Errorf("the checksum of %s is %s, expected %s", o.path, sum, o.sum)
	}
	return nil
}

// anyVersion is the version without a plugin.json: any is accepted.
const anyVersion = ""

// builtIn is a plugin built into the agent.
type builtIn struct{ loaded loaded }

func (*builtIn) stamp() string                          { return "" }
func (o *builtIn) load(context.Context) (loaded, error) { return o.loaded, nil }
func (*builtIn) verify(context.Context, *loaded) error  { return nil }

// fileHash returns the SHA-256 of a file in hex.
func fileHash(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkProgram reports why a program cannot be started, with a better error than
// the attempt would return.
func checkProgram(program string) error {
	if !filepath.IsAbs(program) {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("its program %q is not in PATH: install it, or correct the command in %s", program, SpecFile)
		}
		return nil
	}
	info, err := os.Stat(program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("its program %s is missing: build it, or correct the command in %s", program, SpecFile)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("its program %s is a folder", program)
	case !executable(info):
		return fmt.Errorf("its program %s is not executable: run chmod +x, or set its interpreter in %s", program, SpecFile)
	}
	return nil
}
