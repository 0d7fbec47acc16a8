package workspace

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func root(t *testing.T, o Options) *Root {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "data")
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// repository makes one with a commit on the branch main and one on the branch other.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := filepath.Join(t.TempDir(), "repository")
	write(t, dir, map[string]string{"a.txt": "one\n", "sub/b.txt": "b\n"})
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	git("checkout", "-qb", "other")
	write(t, dir, map[string]string{"a.txt": "two\n"})
	git("commit", "-qam", "second")
	git("checkout", "-q", "main")
	return dir
}

// TestGit fetches a repository at a revision, once, and shows what changed in it.
func TestGit(t *testing.T) {
	address := "file://" + filepath.ToSlash(repository(t))
	r := root(t, Options{Schemes: []string{"file"}})
	spec := Spec{Git: address, Revision: "other"}
	dir, err := r.Prepare(t.Context(), "acme", "s", spec)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(text) != "two\n" {
		t.Errorf("a.txt is %q, %v", text, err)
	}
	if head, err := exec.Command("git", "-C", dir, "rev-list", "--count", "HEAD").Output(); err != nil || strings.TrimSpace(string(head)) != "1" {
		t.Errorf("the history has %s commits, %v", head, err)
	}
	write(t, dir, map[string]string{"a.txt": "three\n", "new.bin": "\x00\x01"})
	if err := os.Remove(filepath.Join(dir, "sub", "b.txt")); err != nil {
		t.Fatal(err)
	}
	if again, err := r.Prepare(t.Context(), "acme", "s", spec); err != nil || again != dir {
		t.Errorf("prepared again: %s, %v", again, err)
	}
	d, err := r.Diff(t.Context(), "acme", "s")
	if err != nil || len(d.Files) != 3 || d.Truncated {
		t.Fatalf("%+v, %v", d, err)
	}
	if f := d.Files[0]; f.Path != "a.txt" || f.Kind != "modify" || f.Added != 1 || f.Removed != 1 || !strings.Contains(f.Diff, "-two\n+three\n") {
		t.Errorf("%+v", f)
	}
	if f := d.Files[1]; f.Path != "new.bin" || f.Kind != "create" || !f.Binary {
		t.Errorf("%+v", f)
	}
	if f := d.Files[2]; f.Path != "sub/b.txt" || f.Kind != "delete" {
		t.Errorf("%+v", f)
	}
	if err := r.Delete("acme", "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Diff(t.Context(), "acme", "s"); !errors.Is(err, ErrNone) {
		t.Errorf("the difference of a deleted workspace: %v", err)
	}
	if _, err := r.Prepare(t.Context(), "acme", "s2", Spec{Git: address, Revision: "missing"}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing revision: %v", err)
	}
	if _, err := r.Prepare(t.Context(), "acme", "s2", Spec{Git: address}); err != nil {
		t.Errorf("behind a failure: %v", err)
	}
}

// TestCredentials reach the server of the address alone: no file of the workspace and no
// error has them, and no redirection takes them elsewhere.
func TestCredentials(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		t.Errorf("%s reached another server with %q", req.URL, req.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("bot:hunter2"))
	got := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got <- req.Header.Get("Authorization")
		if strings.HasPrefix(req.URL.Path, "/moved") {
			http.Redirect(w, req, elsewhere.URL+req.URL.Path, http.StatusFound)
			return
		}
		http.Error(w, "no: "+req.Header.Get("Authorization"), http.StatusForbidden)
	}))
	defer server.Close()
	r := root(t, Options{Schemes: []string{"http"}, Credentials: func(context.Context, string) (string, string, error) { return "bot", "hunter2", nil }})
	for _, name := range []string{"repo.git", "moved.git"} {
		_, err := r.Prepare(t.Context(), "acme", "s", Spec{Git: server.URL + "/" + name})
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), want[6:]) {
			t.Errorf("%s: %v", name, err)
		}
		if header := <-got; header != want {
			t.Errorf("%s: the server got %q", name, header)
		}
	}
	err := filepath.WalkDir(r.opts.Dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), want[6:]) {
			t.Errorf("%s has the password", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDirectories: a named one is shared within the tenant, a new one is not, and one of
// this machine must be allowed.
func TestDirectories(t *testing.T) {
	allowed, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(other, filepath.Join(allowed, "out")); err != nil {
		t.Skip(err)
	}
	if err := os.Mkdir(filepath.Join(allowed, "project"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := root(t, Options{Allow: []string{allowed}})
	dirs := map[string]string{}
	for name, c := range map[string]struct {
		tenant string
		spec   Spec
	}{
		"none": {"acme", Spec{}}, "shared1": {"acme", Spec{Directory: "docs"}}, "shared2": {"acme", Spec{Directory: "docs"}}, "foreign": {"globex", Spec{Directory: "docs"}},
		"new1": {"acme", Spec{Directory: New}}, "new2": {"acme", Spec{Directory: New}}, "real": {"acme", Spec{Directory: filepath.Join(allowed, "project")}},
	} {
		dir, err := r.Prepare(t.Context(), c.tenant, name, c.spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		dirs[name] = dir
	}
	if dirs["none"] != "" || dirs["shared1"] != dirs["shared2"] || dirs["shared1"] == dirs["foreign"] || dirs["new1"] == dirs["new2"] || filepath.Base(dirs["real"]) != "project" {
		t.Errorf("directories %q", dirs)
	}
	for _, spec := range []Spec{
		{Directory: other},
		{Directory: filepath.Join(allowed, "out")},
		{Directory: filepath.Join(allowed, "missing")},
		{Directory: filepath.Join(allowed, "..")},
		{Directory: "../x"},
		{Directory: "a/b"},
		{Directory: "x", Git: "https://example.com/x"},
		{Revision: "main"},
		{Git: "http://example.com/x"},
		{Git: "file:///etc"},
		{Git: "ext::sh -c id"},
		{Git: "git@example.com:x"},
		{Git: "-x"},
		{Git: "https://"},
		{Git: "https://bot:pw@example.com/x"},
		{Git: "https://bot@example.com/x"},
		{Git: "https://example.com/x y"},
		{Git: "https://example.com/x", Revision: "--upload-pack=id"},
		{Git: "https://example.com/x", Revision: "a..b"},
		{Git: "https://example.com/x", Revision: "a b"},
	} {
		var refused *RefusedError
		if _, err := r.Prepare(t.Context(), "acme", "bad", spec); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

// TestFile: only regular files of the workspace are shown.
func TestFile(t *testing.T) {
	r := root(t, Options{})
	dir, err := r.Prepare(t.Context(), "acme", "s", Spec{Directory: New})
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, filepath.Dir(outside), map[string]string{"secret": "s3cret"})
	write(t, dir, map[string]string{"sub/a.txt": "hello"})
	for name, to := range map[string]string{"in": "sub/a.txt", "out": outside, "up": "../workspace.json", "dir": filepath.Dir(outside)} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	large, err := os.Create(filepath.Join(dir, "large"))
	if err == nil {
		err = errors.Join(large.Truncate(MaxFile+1), large.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sub/a.txt", "in", "./sub/../sub/a.txt"} {
		f, size, err := r.File("acme", "s", name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil || string(text) != "hello" || size != 5 {
			t.Errorf("%s is %q (%d bytes), %v", name, text, size, err)
		}
	}
	for _, name := range []string{"missing", "out", "up", "dir/secret", "sub", "", ".", "..", "../workspace.json", "/etc/passwd", outside} {
		if _, _, err := r.File("acme", "s", name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := r.File("acme", "s", "large"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	for _, id := range []string{"other", "../s"} {
		if _, _, err := r.File("acme", id, "sub/a.txt"); err == nil {
			t.Errorf("session %s has the file", id)
		}
	}
}
