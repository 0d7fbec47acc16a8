package env_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc"
)

// realDir returns the resolved path of a temporary directory.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNewLocal(t *testing.T) {
	dir := realDir(t)
	writeFile(t, filepath.Join(dir, "a", "file"), "x")
	writeFile(t, filepath.Join(dir, "b", "file"), "x")
	local := newLocal(t, env.LocalOptions{Dir: filepath.Join(dir, "a"), AddDirs: []string{"../b", filepath.Join(dir, "a")}, Home: dir})
	info := local.Info()
	want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	if info.Dir != want[0] || !slices.Equal(info.Roots, want) || info.Home != dir {
		t.Errorf("Info = %+v, want the roots %q", info, want)
	}
	if info.OS != runtime.GOOS || info.OSVersion == "" || info.Shell == "" {
		t.Errorf("Info = %+v", info)
	}
	to, err := local.Resolve(context.Background(), "../b/file")
	if err != nil || !to.Inside {
		t.Errorf("a path in an added directory is not inside: %+v, %v", to, err)
	}
	for _, opts := range []env.LocalOptions{
		{Dir: filepath.Join(dir, "missing")},
		{Dir: dir, AddDirs: []string{"missing"}},
		{Dir: filepath.Join(dir, "a", "file")},
	} {
		if _, err := env.NewLocal(opts); err == nil {
			t.Errorf("NewLocal(%+v) accepted something that is not a directory", opts)
		}
	}
}

func TestResolveMagicLinks(t *testing.T) {
	if _, err := os.Stat("/proc/self/root"); err != nil {
		t.Skip("no /proc")
	}
	dir := realDir(t)
	writeFile(t, filepath.Join(dir, "file"), "x")
	t.Chdir(dir)
	local := newLocal(t, env.LocalOptions{Dir: dir})
	tests := []struct {
		path, want string
		inside     bool
	}{
		{"/proc/self/root/etc/passwd", "/etc/passwd", false},
		{"/proc/self/cwd/file", filepath.Join(dir, "file"), true},
		{"/proc/self/cwd/../x", filepath.Join(filepath.Dir(dir), "x"), false},
		{"/proc/thread-self/root" + dir + "/file", filepath.Join(dir, "file"), true},
	}
	for _, test := range tests {
		to, err := local.Resolve(context.Background(), test.path)
		if err != nil || to.Path != test.want || to.Inside != test.inside {
			t.Errorf("Resolve(%q) = %+v, %v, want %q, inside %t", test.path, to, err, test.want, test.inside)
		}
	}
}

func TestResolveWithoutHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	local := newLocal(t, env.LocalOptions{Dir: t.TempDir()})
	if to, err := local.Resolve(context.Background(), "~/x"); err == nil || !strings.Contains(err.Error(), "home") {
		t.Errorf("Resolve = %+v, %v, want an error about the home directory", to, err)
	}
}

// swapper replaces a directory with a link on the first Read: after Write
// resolved and opened its path.
type swapper struct {
	swap func()
	io.Reader
}

func (s *swapper) Read(p []byte) (int, error) {
	if s.swap != nil {
		s.swap()
		s.swap = nil
	}
	return s.Reader.Read(p)
}

func TestWriteIsNotLedAstray(t *testing.T) {
	dir := realDir(t)
	inside, outside := filepath.Join(dir, "ws"), filepath.Join(dir, "outside")
	writeFile(t, filepath.Join(inside, "sub", "file"), "old")
	writeFile(t, filepath.Join(outside, "file"), "untouched")
	local := newLocal(t, env.LocalOptions{Dir: inside})
	content := &swapper{Reader: strings.NewReader("new"), swap: func() {
		if err := os.Rename(filepath.Join(inside, "sub"), filepath.Join(inside, "moved")); err != nil {
			t.Skip(err) // an open directory cannot be moved on this system
		}
		if err := os.Symlink(outside, filepath.Join(inside, "sub")); err != nil {
			t.Skip(err)
		}
	}}
	if err := local.Files().Write(context.Background(), "sub/file", content, 0); err != nil {
		t.Logf("Write: %v", err) // refusing is as good as writing to the original directory
	}
	if data, err := os.ReadFile(filepath.Join(outside, "file")); err != nil || string(data) != "untouched" {
		t.Errorf("the file outside holds %q, %v", data, err)
	}
}

// TestSwappedLinks swaps a directory and a link while a file is opened by its
// resolved path, as a call opens what was granted.
func TestSwappedLinks(t *testing.T) {
	dir := realDir(t)
	inside := filepath.Join(dir, "ws")
	writeFile(t, filepath.Join(inside, "sub", "file"), "right")
	writeFile(t, filepath.Join(inside, "secret", "file"), "wrong")
	if err := os.Symlink("secret", filepath.Join(inside, "link")); err != nil {
		t.Skip(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports the path of an open directory")
	}
	local := newLocal(t, env.LocalOptions{Dir: inside})
	granted := filepath.Join(inside, "sub", "file")
	files := env.ReadOnly(local).(core.ExactFiler).ExactFiles()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		at := func(name string) string { return filepath.Join(inside, name) }
		for {
			select {
			case <-quit:
				return
			default:
			}
			_ = os.Rename(at("sub"), at("away"))
			_ = os.Rename(at("link"), at("sub"))
			_ = os.Rename(at("sub"), at("link"))
			_ = os.Rename(at("away"), at("sub"))
		}
	}()
	for range 3000 {
		data, err := core.ReadFile(context.Background(), files, granted, 100)
		if err == nil && string(data) != "right" {
			t.Errorf("read %q through a link inserted meanwhile", data)
			break
		}
	}
	close(quit)
	<-done
	if data, err := core.ReadFile(context.Background(), files, granted, 100); err != nil || string(data) != "right" {
		t.Errorf("with everything in its place: %q, %v", data, err)
	}
}

func TestWriteKeepsHardLinksApart(t *testing.T) {
	dir := realDir(t)
	writeFile(t, filepath.Join(dir, "outside"), "old")
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "outside"), filepath.Join(dir, "ws", "file")); err != nil {
		t.Skip(err)
	}
	local := newLocal(t, env.LocalOptions{Dir: filepath.Join(dir, "ws")})
	if err := local.Files().Write(context.Background(), "file", strings.NewReader("new"), 0); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "outside")); string(data) != "old" {
		t.Errorf("the other name of the file now has %q", data)
	}
}

func TestWriteRefusesReadOnlyFile(t *testing.T) {
	dir := realDir(t)
	path := filepath.Join(dir, "file")
	writeFile(t, path, "old")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	local := newLocal(t, env.LocalOptions{Dir: dir})
	err := local.Files().Write(context.Background(), "file", strings.NewReader("new"), 0)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("Write = %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "old" {
		t.Errorf("the file holds %q", data)
	}
}

func TestRemoveSparesTheWorkspace(t *testing.T) {
	dir := realDir(t)
	local := newLocal(t, env.LocalOptions{Dir: dir})
	if err := local.Files().Remove(context.Background(), "."); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Remove = %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestFilesOutsideTheWorkspace(t *testing.T) {
	dir := realDir(t)
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	files := newLocal(t, env.LocalOptions{Dir: filepath.Join(dir, "ws"), Home: dir}).Files()
	ctx := context.Background()
	if err := files.Write(ctx, "~/made/file", strings.NewReader("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := files.Rename(ctx, filepath.Join(dir, "made", "file"), "file"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "ws", "file")); err != nil || string(data) != "x" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestWorkspaceMadeAnew removes and recreates the working directory, as version
// control does.
func TestWorkspaceMadeAnew(t *testing.T) {
	dir := filepath.Join(realDir(t), "ws")
	writeFile(t, filepath.Join(dir, "file"), "old")
	files := newLocal(t, env.LocalOptions{Dir: dir}).Files()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := files.Stat(ctx, "file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat = %v", err)
	}
	writeFile(t, filepath.Join(dir, "file"), "new")
	if data, err := core.ReadFile(ctx, files, "file", 100); err != nil || string(data) != "new" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestSharedSupervisorOutlivesEnvironment(t *testing.T) {
	supervisor := proc.NewSupervisor(proc.Options{})
	defer supervisor.Close()
	for range 2 {
		local, err := env.NewLocal(env.LocalOptions{Dir: t.TempDir(), Supervisor: supervisor})
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := core.Exec(context.Background(), local, core.Command{Script: "echo hello"})
		if err != nil || strings.TrimSpace(string(out)) != "hello" {
			t.Errorf("%q, %v", out, err)
		}
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEnvironmentOptions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs env")
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "PLAIN=1", "MY_TOKEN=2", "OTHER_TOKEN=3"}
	tests := []struct {
		inherit proc.Inherit
		pass    []string
		want    string
	}{
		{proc.InheritAll, nil, "PLAIN=1"},
		{proc.InheritAll, []string{"MY_TOKEN"}, "PLAIN=1 MY_TOKEN=2"},
		{proc.InheritCore, []string{"MY_TOKEN"}, "MY_TOKEN=2"},
		{proc.InheritCore, nil, ""},
	}
	for _, test := range tests {
		local := newLocal(t, env.LocalOptions{Dir: t.TempDir(), Environ: environ, Inherit: test.inherit, PassEnv: test.pass})
		out, _, err := core.Exec(context.Background(), local, core.Command{Argv: []string{"env"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "PLAIN=") || strings.Contains(line, "_TOKEN=") {
				got = append(got, line)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v, %q: a command sees %q, want %q", test.inherit, test.pass, got, test.want)
		}
	}
}

func TestTooLongCommand(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit differs on this system")
	}
	local := newLocal(t, env.LocalOptions{Dir: t.TempDir()})
	_, err := local.Start(context.Background(), core.Command{Script: strings.Repeat("# a long script\n", 20_000)})
	if !errors.Is(err, syscall.E2BIG) || !strings.Contains(err.Error(), "write it to a file") {
		t.Errorf("Start = %v", err)
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := realDir(b)
	writeFile(b, filepath.Join(dir, "a", "b", "c", "file"), strings.Repeat("a line of text\n", 200))
	files := newLocal(b, env.LocalOptions{Dir: dir}).Files()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := core.ReadFile(ctx, files, "a/b/c/file", 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	files := newLocal(b, env.LocalOptions{Dir: b.TempDir()}).Files()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := files.Write(ctx, "file", strings.NewReader("content"), 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScript(b *testing.B) {
	local := newLocal(b, env.LocalOptions{Dir: b.TempDir()})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := core.Exec(ctx, local, core.Command{Script: "true"}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestWithheld(t *testing.T) {
	local := newLocal(t, env.LocalOptions{
		Dir:     t.TempDir(),
		Environ: []string{"Z_TOKEN=x", "PATH=/bin", "MY_API_KEY=k", "KEPT_SECRET=s", "broken", "PLAIN=1"},
		PassEnv: []string{"KEPT_SECRET"},
	})
	if got, want := local.Withheld(), []string{"MY_API_KEY", "Z_TOKEN"}; !slices.Equal(got, want) {
		t.Errorf("withheld %q, want %q", got, want)
	}
}
