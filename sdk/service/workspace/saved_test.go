package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packs keeps packs in memory.
type packs map[string][]byte

func (p packs) put(_ context.Context, name string, content io.Reader) (err error) {
	p[name], err = io.ReadAll(content)
	return err
}

func (p packs) get(_ context.Context, name string) (io.ReadCloser, error) {
	data, found := p[name]
	if !found {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// save saves a workspace, which must work.
func save(t *testing.T, r *Root, last *Saved, put Put) *Saved {
	t.Helper()
	s, err := r.Save(t.Context(), "acme", "s", last, put)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// content reads a file of a workspace, "" without one.
func content(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// TestSaved: a workspace elsewhere becomes as it was saved, with differences that begin
// where they did. A save without a change adds nothing; after many, one pack has all.
func TestSaved(t *testing.T) {
	a, b := root(t, Options{}), root(t, Options{})
	spec := Spec{Directory: New}
	dir, err := a.Prepare(t.Context(), "acme", "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	kept := packs{}
	write(t, dir, map[string]string{".gitignore": "*.log\n", "x.log": "noise\n", "big": strings.Repeat("x", maxFileSize+1)})
	last := save(t, a, nil, kept.put)
	if again := save(t, a, last, kept.put); again != last {
		t.Errorf("nothing changed: %+v", again)
	}
	if len(last.Left) != 1 || !strings.HasPrefix(last.Left[0], "big: ") {
		t.Errorf("left out: %q", last.Left)
	}
	for i := range maxPacks {
		write(t, dir, map[string]string{"a.txt": fmt.Sprintf("version %d\n", i)})
		last = save(t, a, last, kept.put)
	}
	if len(last.Packs) != 1 {
		t.Errorf("%d packs", len(last.Packs))
	}
	dir, err = b.Restore(t.Context(), "acme", "s", spec, *last, kept.get)
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir, "a.txt") + content(t, dir, "x.log") + content(t, dir, "big"); got != fmt.Sprintf("version %d\n", maxPacks-1) {
		t.Errorf("restored: %q", got)
	}
	if again, err := b.Prepare(t.Context(), "acme", "s", spec); err != nil || again != dir {
		t.Errorf("prepared again: %s, %v", again, err)
	}
	d, err := b.Diff(t.Context(), "acme", "s")
	if err != nil || len(d.Files) != 2 || d.Files[1].Path != "a.txt" || d.Files[1].Kind != "create" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestSavedRepository: commits, the index and branches of a repository move, too.
func TestSavedRepository(t *testing.T) {
	address := "file://" + filepath.ToSlash(repository(t))
	a, b := root(t, Options{Schemes: []string{"file"}}), root(t, Options{})
	spec := Spec{Git: address}
	dir, err := a.Prepare(t.Context(), "acme", "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	git := func(dir string, args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	kept := packs{}
	last := save(t, a, nil, kept.put)
	git(dir, "checkout", "-qb", "mine")
	write(t, dir, map[string]string{"a.txt": "committed\n", "staged": "s\n", "loose": "l\n"})
	git(dir, "commit", "-qam", "mine")
	git(dir, "add", "staged")
	state := func(dir string) string { return git(dir, "status", "-sb") + git(dir, "log", "--format=%H %s") }
	before := state(dir)
	last = save(t, a, last, kept.put)
	dir, err = b.Restore(t.Context(), "acme", "s", spec, *last, kept.get)
	if err != nil {
		t.Fatal(err)
	}
	if after := state(dir); after != before {
		t.Errorf("restored:\n%s\nwas:\n%s", after, before)
	}
}

// TestRestoreDamaged: when packs are missing or damaged, what is there stays.
func TestRestoreDamaged(t *testing.T) {
	a, b := root(t, Options{}), root(t, Options{})
	spec := Spec{Directory: New}
	dir, err := a.Prepare(t.Context(), "acme", "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	good := packs{}
	write(t, dir, map[string]string{"a.txt": "a\n", "sub/b.txt": strings.Repeat("b ", 1000)})
	one := save(t, a, nil, good.put)
	write(t, dir, map[string]string{"a.txt": "two\n"})
	last := save(t, a, one, good.put)
	mine, err := b.Prepare(t.Context(), "acme", "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	write(t, mine, map[string]string{"a.txt": "mine\n"})
	name := last.Packs[0].Name
	for what, change := range map[string]func(packs){
		"missing":   func(p packs) { delete(p, name) },
		"cut":       func(p packs) { p[name] = p[name][:len(p[name])/2] },
		"changed":   func(p packs) { p[name][len(p[name])/2] ^= 1 },
		"exchanged": func(p packs) { p[name] = p[last.Packs[1].Name] },
	} {
		bad := packs{}
		for name, data := range good {
			bad[name] = bytes.Clone(data)
		}
		change(bad)
		if _, err := b.Restore(t.Context(), "acme", "s", spec, *last, bad.get); err == nil || !strings.Contains(err.Error(), "restore the workspace of session s") {
			t.Errorf("%s: %v", what, err)
		}
		if got := content(t, mine, "a.txt"); got != "mine\n" {
			t.Errorf("%s: a.txt is %q", what, got)
		}
		if homes, err := os.ReadDir(filepath.Dir(filepath.Dir(mine))); err != nil || len(homes) != 1 {
			t.Errorf("%s: there are %v, %v", what, homes, err)
		}
	}
	if dir, err := b.Restore(t.Context(), "acme", "s", spec, *last, good.get); err != nil || content(t, dir, "a.txt") != "two\n" {
		t.Errorf("the packs that are not damaged: %v", err)
	}
}

// TestSaveFails: when a pack cannot be kept, nothing counts as saved, and nothing is left.
func TestSaveFails(t *testing.T) {
	r := root(t, Options{})
	if _, err := r.Prepare(t.Context(), "acme", "s", Spec{Directory: New}); err != nil {
		t.Fatal(err)
	}
	full := errors.New("the store is full")
	saved, err := r.Save(t.Context(), "acme", "s", nil, func(context.Context, string, io.Reader) error { return full })
	if !errors.Is(err, full) || saved != nil {
		t.Errorf("%+v, %v", saved, err)
	}
	if left, err := filepath.Glob(filepath.Join(r.opts.Dir, "pack-*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
