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
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Scope says where a plugin comes from.
type Scope string

// The scopes, in the order in which they are looked through: of two plugins
// with one name the first counts, so that a project can replace none.
const (
	Bundled Scope = "bundled" // part of the agent's own program
	User    Scope = "user"    // installed for the person
	Linked  Scope = "link"    // a folder that the person works on, used in place
	Project Scope = "project" // comes with the project
	Carried Scope = "carried" // given by a skill
)

// loaded is what an origin has at one time.
type loaded struct {
	spec Spec
	dir  string   // the plugin's folder
	argv []string // the command, with absolute paths
	hash string   // of its files, by which its description is kept; "" = not known before verify
	said *toolproto.Description
}

// origin is where a plugin comes from. Its methods are safe for concurrent use.
type origin interface {
	// stamp changes when load may have become another. It is cheap.
	stamp() string
	// load reads what there is, without reading all files.
	load(ctx context.Context) (loaded, error)
	// verify reports whether the files are what the person agreed to.
	verify(ctx context.Context, l *loaded) error
}

// stampOf makes a stamp of files.
func stampOf(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			fmt.Fprintf(&b, "%s:-;", name)
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d;", name, info.Size(), info.ModTime().UnixNano())
	}
	return b.String()
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

// checkName holds what is in a folder against the name that it is known by.
func (l *loaded) checkName(name string) error {
	if l.spec.Name != name {
		return fmt.Errorf("%s: it names the plugin %q, expected %q", filepath.Join(l.dir, SpecFile), l.spec.Name, name)
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
		return loaded{}, fmt.Errorf("nobody agreed to what it is now: run 'agent plugins add %s' again", o.name)
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

// ChecksumError says that a plugin's files are not those that were agreed to.
type ChecksumError struct {
	Plugin  string
	Changes []bundle.Change
}

// Error implements error.
func (e *ChecksumError) Error() string {
	var list []string
	for _, c := range e.Changes {
		list = append(list, fmt.Sprintf("%s was %s", c.Path, c.Kind))
	}
	return fmt.Sprintf("its files are not those that were agreed to (%s): if that is meant, add it again, else remove it",
		shorten(cleanLine(strings.Join(list, ", ")), 300))
}

// project is a plugin of a trusted project: the person trusts its plugin.json,
// and the checksums in there pin the rest.
type project struct{ dir string }

func (o *project) stamp() string { return stampOf(filepath.Join(o.dir, SpecFile)) }

func (o *project) load(context.Context) (loaded, error) {
	l, err := read(o.dir)
	if err != nil {
		return l, err
	}
	if len(l.spec.Checksums) == 0 {
		return l, fmt.Errorf("%s has no checksums, by which the trust in a project covers its plugins: run 'agent plugins seal %s'",
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

// verifySums holds a folder against the checksums in its plugin.json.
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
		return &ChecksumError{Plugin: s.Name, Changes: changes}
	}
	return nil
}

// linked is a folder that the person works on: what is built there runs.
type linked struct {
	name, dir string

	mu    sync.Mutex
	spec  string   // stamp of the plugin.json that files are of
	files []string // that the command names
}

func (o *linked) stamp() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	spec := stampOf(filepath.Join(o.dir, SpecFile))
	if spec != o.spec { // it is looked at before each call, and seldom changes
		o.spec, o.files = spec, nil
		if l, err := read(o.dir); err == nil {
			for _, arg := range l.argv {
				if filepath.IsAbs(arg) {
					o.files = append(o.files, arg)
				}
			}
		}
	}
	return spec + stampOf(o.files...)
}

func (o *linked) load(context.Context) (loaded, error) {
	l, err := read(o.dir)
	if err != nil {
		return l, err
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
		return loaded{}, fmt.Errorf("%s: a plugin's program is named like the plugin: lower-case letters, digits and -", o.path)
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

// anyVersion stands where no plugin.json says a version: any will do.
const anyVersion = ""

// builtIn is a plugin in the agent's own program.
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

// checkProgram reports why a program cannot be started, better than the
// attempt would.
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
		return fmt.Errorf("its program %s may not be executed: chmod +x it, or name its interpreter in %s", program, SpecFile)
	}
	return nil
}
