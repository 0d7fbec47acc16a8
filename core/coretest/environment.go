package coretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// EnvironmentOptions describe what the environment under test supports.
type EnvironmentOptions struct {
	HasShell    bool // Command.Script runs in a POSIX shell with the usual programs
	HasSymlinks bool // the shell's ln -s makes symbolic links
	HasSetsid   bool // there is a setsid program, to test daemons
}

// secretName is set in the test's own environment: no command may see it.
const (
	secretName  = "CORETEST_CONFORMANCE_API_KEY"
	secretValue = "conformance-secret-value"
)

// killBound is how long a command that ignores SIGTERM may run after its context
// is done: two seconds, plus the delays of a busy machine.
const killBound = 20 * time.Second

// TestEnvironment checks an environment against the contracts of
// [core.Environment] and [core.FS]. The factory returns an environment whose
// working directory is empty; the suite closes it.
func TestEnvironment(t *testing.T, factory func(t *testing.T) core.Environment, opts EnvironmentOptions) {
	t.Setenv(secretName, secretValue)
	for _, c := range environmentChecks(opts) {
		if c.skip { // not for this environment
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			env := factory(t)
			t.Cleanup(func() {
				if err := env.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			c.check(&envTest{T: t, env: env, files: env.Files()})
		})
	}
}

// environmentCheck is one part of the suite.
type environmentCheck struct {
	name  string
	skip  bool
	check func(e *envTest)
}

func environmentChecks(opts EnvironmentOptions) []environmentCheck {
	return []environmentCheck{
		{"Info", false, (*envTest).info},
		{"Resolve", false, (*envTest).resolve},
		{"ResolveLinks", !opts.HasSymlinks, (*envTest).resolveLinks},
		{"Write", false, (*envTest).write},
		{"WriteKeepsMode", false, (*envTest).writeKeepsMode},
		{"WriteIsAtomic", false, (*envTest).writeIsAtomic},
		{"WriteRefuses", false, (*envTest).writeRefuses},
		{"Open", false, (*envTest).open},
		{"OpenRefusesPipes", !opts.HasShell, (*envTest).openRefusesPipes},
		{"Stat", false, (*envTest).stat},
		{"ReadDir", false, (*envTest).readDir},
		{"Rename", false, (*envTest).rename},
		{"Remove", false, (*envTest).remove},
		{"Missing", false, (*envTest).missing},
		{"ConcurrentFiles", false, (*envTest).concurrentFiles},
		{"CancelledFiles", false, (*envTest).cancelledFiles},
		{"StartRefuses", false, (*envTest).startRefuses},
		{"NoShell", opts.HasShell, (*envTest).noShell},
		{"Exec", !opts.HasShell, (*envTest).exec},
		{"ExecInterleaves", !opts.HasShell, (*envTest).execInterleaves},
		{"ExecLongLine", !opts.HasShell, (*envTest).execLongLine},
		{"ExecHidesSecrets", !opts.HasShell, (*envTest).execHidesSecrets},
		{"ExecHasNoTerminal", !opts.HasShell, (*envTest).execHasNoTerminal},
		{"ExecTimeout", !opts.HasShell, (*envTest).execTimeout},
		{"ExecInterrupt", !opts.HasShell, (*envTest).execInterrupt},
		{"ExecStubborn", !opts.HasShell, (*envTest).execStubborn},
		{"ExecLeavesNoChild", !opts.HasShell, (*envTest).execLeavesNoChild},
		{"ExecLeavesNoDaemon", !opts.HasShell || !opts.HasSetsid, (*envTest).execLeavesNoDaemon},
		{"ExecConcurrently", !opts.HasShell, (*envTest).execConcurrently},
	}
}

// envTest is one check of an environment.
type envTest struct {
	*testing.T
	env   core.Environment
	files core.FS
}

// put writes a file or fails the test.
func (e *envTest) put(name, content string) {
	e.Helper()
	if err := e.files.Write(e.Context(), name, strings.NewReader(content), 0); err != nil {
		e.Fatalf("Write(%q): %v", name, err)
	}
}

// want checks the content of a file.
func (e *envTest) want(name, content string) {
	e.Helper()
	data, err := core.ReadFile(e.Context(), e.files, name, 1<<20)
	if err != nil {
		e.Fatalf("read %q: %v", name, err)
	}
	if string(data) != content {
		e.Errorf("%q holds %q, want %q", name, data, content)
	}
}

// names lists a directory.
func (e *envTest) names(dir string) []string {
	e.Helper()
	entries, err := e.files.ReadDir(e.Context(), dir)
	if err != nil {
		e.Fatalf("ReadDir(%q): %v", dir, err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// run runs a script that must end well and returns its output.
func (e *envTest) run(script string) string {
	e.Helper()
	out, exit, err := core.Exec(e.Context(), e.env, core.Command{Script: script})
	if err != nil || exit.Code != 0 {
		e.Fatalf("%s: %+v, %v\n%s", script, exit, err, out)
	}
	return string(out)
}

func (e *envTest) info() {
	info := e.env.Info()
	if info.OS == "" || info.Dir == "" {
		e.Errorf("Info names no system or no directory: %+v", info)
	}
	if !slices.Contains(info.Roots, info.Dir) {
		e.Errorf("the roots %q do not contain the working directory %q", info.Roots, info.Dir)
	}
	to, err := e.env.Resolve(e.Context(), info.Dir)
	if err != nil || to.Path != info.Dir {
		e.Errorf("the working directory %q resolves to %q, %v", info.Dir, to.Path, err)
	}
	stat, err := e.files.Stat(e.Context(), info.Dir)
	if err != nil || !stat.IsDir() {
		e.Errorf("the working directory cannot be read: %v", err)
	}
}

func (e *envTest) resolve() {
	info := e.env.Info()
	e.put("dir/file", "x")
	tests := []struct {
		path, want string
		inside     bool
	}{
		{"", info.Dir, true},
		{".", info.Dir, true},
		{"dir/file", filepath.Join(info.Dir, "dir", "file"), true},
		{"./dir//file", filepath.Join(info.Dir, "dir", "file"), true},
		{"dir/../dir/file", filepath.Join(info.Dir, "dir", "file"), true},
		{"new/deep/file", filepath.Join(info.Dir, "new", "deep", "file"), true},
		{"new/../../x", filepath.Join(filepath.Dir(info.Dir), "x"), false},
		{"..", filepath.Dir(info.Dir), false},
		{info.Dir + "-sibling/x", info.Dir + "-sibling" + string(filepath.Separator) + "x", false},
		{"~x", filepath.Join(info.Dir, "~x"), true},
	}
	for _, test := range tests {
		to, err := e.env.Resolve(e.Context(), test.path)
		if err != nil || to.Path != test.want || to.Inside != test.inside {
			e.Errorf("Resolve(%q) = %+v, %v, want %q, inside %t", test.path, to, err, test.want, test.inside)
		}
	}
	if to, err := e.env.Resolve(e.Context(), "a\x00b"); !errors.Is(err, fs.ErrInvalid) {
		e.Errorf("Resolve of a path with a NUL byte = %+v, %v", to, err)
	}
	if info.Home == "" {
		return
	}
	home, err := e.env.Resolve(e.Context(), info.Home)
	if err != nil {
		e.Fatal(err)
	}
	for name, want := range map[string]string{"~": home.Path, "~/no-such-file": filepath.Join(home.Path, "no-such-file")} {
		if to, err := e.env.Resolve(e.Context(), name); err != nil || to.Path != want {
			e.Errorf("Resolve(%q) = %+v, %v, want %q", name, to, err, want)
		}
	}
}

func (e *envTest) resolveLinks() {
	dir := e.env.Info().Dir
	e.put("dir/sub/file", "x")
	e.run(`
		ln -s dir link; ln -s sub/file dir/inner; ln -s "$PWD/dir/sub" absolute
		ln -s missing broken; ln -s / root; ln -s loop2 loop1; ln -s loop1 loop2; ln -s .. up`)
	tests := []struct {
		path, want string
		inside     bool
	}{
		{"link/sub/file", "dir/sub/file", true},
		{"link/inner", "dir/sub/file", true},
		{"absolute/file", "dir/sub/file", true},
		{"absolute/..", "dir", true}, // resolved by the system, not lexically
		{"link/new/file", "dir/new/file", true},
		{"broken", "missing", true},
		{"broken/file", "missing/file", true},
		{"root/no-such-file", "/no-such-file", false},
		{"root" + dir + "/dir", "dir", true},
		{"up/no-such-file", "../no-such-file", false},
	}
	for _, test := range tests {
		want := test.want
		if !path.IsAbs(want) {
			want = path.Join(dir, want)
		}
		to, err := e.env.Resolve(e.Context(), test.path)
		if err != nil || to.Path != want || to.Inside != test.inside {
			e.Errorf("Resolve(%q) = %+v, %v, want %q, inside %t", test.path, to, err, want, test.inside)
		}
	}
	if to, err := e.env.Resolve(e.Context(), "loop1/x"); err == nil {
		e.Errorf("a loop of links resolves to %+v", to)
	}
	e.put("link/sub/file", "through the link")
	e.want("dir/sub/file", "through the link")
	if info, err := e.files.Stat(e.Context(), "link"); err != nil || !info.IsDir() {
		e.Errorf("Stat does not follow a link: %v, %v", info, err)
	}
	entries, err := e.files.ReadDir(e.Context(), ".")
	if err != nil {
		e.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "link" && entry.Type()&fs.ModeSymlink == 0 {
			e.Error("ReadDir does not return a link as such")
		}
	}
}

func (e *envTest) write() {
	e.put("a/b/c.txt", "one")
	e.want("a/b/c.txt", "one")
	e.put("a/b/c.txt", "two, longer")
	e.want("a/b/c.txt", "two, longer")
	e.put("a/b/c.txt", "")
	e.want("a/b/c.txt", "")
	e.put("bytes", "\xff\x00\r\n")
	e.want("bytes", "\xff\x00\r\n")
	if got := e.names("a/b"); !slices.Equal(got, []string{"c.txt"}) {
		e.Errorf("there are other files: %q", got)
	}
}

func (e *envTest) writeKeepsMode() {
	if e.env.Info().OS == "windows" {
		e.Skip("modes are of little use on Windows")
	}
	mode := func(name string) fs.FileMode {
		info, err := e.files.Stat(e.Context(), name)
		if err != nil {
			e.Fatal(err)
		}
		return info.Mode()
	}
	e.put("plain", "x")
	if got := mode("plain"); got&0o644 == 0 || got&0o111 != 0 {
		e.Errorf("a new file has the mode %v", got)
	}
	if err := e.files.Write(e.Context(), "script", strings.NewReader("x"), 0o750); err != nil {
		e.Fatal(err)
	}
	if got := mode("script"); got != 0o750 {
		e.Errorf("a file written with mode 0750 has %v", got)
	}
	e.put("script", "y")
	if got := mode("script"); got != 0o750 {
		e.Errorf("a file of the mode 0750 has %v after a Write with mode 0", got)
	}
}

// brokenReader returns half of the content, then fails or calls a function.
type brokenReader struct {
	read bool
	then func() error
}

var errBroken = errors.New("the content ended early")

func (r *brokenReader) Read(p []byte) (int, error) {
	if r.read {
		return 0, r.then()
	}
	r.read = true
	return copy(p, "half"), nil
}

func (e *envTest) writeIsAtomic() {
	e.put("dir/old", "old")
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	failures := map[string]struct {
		then func() error
		want error
	}{
		"broken content": {func() error { return errBroken }, errBroken},
		"cancelled":      {func() error { cancel(); return nil }, context.Canceled},
	}
	for _, what := range []string{"broken content", "cancelled"} {
		for _, name := range []string{"dir/old", "dir/new"} {
			err := e.files.Write(ctx, name, &brokenReader{then: failures[what].then}, 0)
			if !errors.Is(err, failures[what].want) {
				e.Errorf("%s: Write(%q) = %v, want %v", what, name, err, failures[what].want)
			}
		}
	}
	e.want("dir/old", "old")
	if got := e.names("dir"); !slices.Equal(got, []string{"old"}) {
		e.Errorf("failed writes left %q", got)
	}
}

func (e *envTest) writeRefuses() {
	e.put("dir/file", "x")
	for name, why := range map[string]string{"dir": "a directory", ".": "the working directory", "dir/file/below": "a file as directory"} {
		if err := e.files.Write(e.Context(), name, strings.NewReader("y"), 0); err == nil {
			e.Errorf("Write(%q) took %s for a file", name, why)
		}
	}
	e.want("dir/file", "x")
}

func (e *envTest) open() {
	e.put("file", "0123456789")
	f, err := e.files.Open(e.Context(), "file")
	if err != nil {
		e.Fatal(err)
	}
	defer f.Close()
	part := make([]byte, 4)
	if n, err := f.ReadAt(part, 3); n != 4 || err != nil || string(part) != "3456" {
		e.Errorf("ReadAt = %d, %v, %q", n, err, part)
	}
	e.put("file", "new content, longer than the old one")
	if data, err := io.ReadAll(f); err != nil || string(data) != "0123456789" {
		e.Errorf("an open file changed after it was opened: %q, %v", data, err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 10 {
		e.Errorf("Stat of the open file: %v, %v", info, err)
	}
	if f, err := e.files.Open(e.Context(), "."); err == nil {
		f.Close()
		e.Error("Open took a directory for a file")
	}
}

func (e *envTest) openRefusesPipes() {
	e.run("mkfifo pipe")
	for _, name := range []string{"pipe", "/dev/zero"} {
		f, err := e.files.Open(e.Context(), name)
		if err == nil {
			f.Close()
			e.Errorf("Open took %s for a file", name)
		}
	}
	if err := e.files.Write(e.Context(), "pipe", strings.NewReader("x"), 0); err == nil {
		e.Error("Write took a named pipe for a file")
	}
}

func (e *envTest) stat() {
	e.put("dir/file.txt", "four")
	info, err := e.files.Stat(e.Context(), "dir/file.txt")
	if err != nil {
		e.Fatal(err)
	}
	if info.Name() != "file.txt" || info.Size() != 4 || info.IsDir() || !info.Mode().IsRegular() || info.ModTime().IsZero() {
		e.Errorf("Stat of a file: %v", fs.FormatFileInfo(info))
	}
	info, err = e.files.Stat(e.Context(), "dir")
	if err != nil || !info.IsDir() || info.Name() != "dir" {
		e.Errorf("Stat of a directory: %v, %v", info, err)
	}
}

func (e *envTest) readDir() {
	for _, name := range []string{"dir/b", "dir/a", "dir/Z", "dir/sub/x", "dir/.hidden"} {
		e.put(name, "x")
	}
	if got, want := e.names("dir"), []string{".hidden", "Z", "a", "b", "sub"}; !slices.Equal(got, want) {
		e.Errorf("ReadDir = %q, want %q", got, want)
	}
	entries, err := e.files.ReadDir(e.Context(), "dir")
	if err != nil {
		e.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || entry.IsDir() != (entry.Name() == "sub") || info.IsDir() != entry.IsDir() {
			e.Errorf("the entry %v has the info %v, %v", entry, info, err)
		}
	}
	if _, err := e.files.ReadDir(e.Context(), "dir/a"); err == nil {
		e.Error("ReadDir took a file for a directory")
	}
}

func (e *envTest) rename() {
	e.put("from/file", "moved")
	e.put("to/other", "other")
	if err := e.files.Rename(e.Context(), "from/file", "to/file"); err != nil {
		e.Fatal(err)
	}
	e.want("to/file", "moved")
	if err := e.files.Rename(e.Context(), "to/file", "to/other"); err != nil {
		e.Errorf("Rename over a file: %v", err)
	}
	e.want("to/other", "moved")
	if err := e.files.Rename(e.Context(), "to", "renamed"); err != nil {
		e.Errorf("Rename of a directory: %v", err)
	}
	e.want("renamed/other", "moved")
	if got := e.names("."); !slices.Equal(got, []string{"from", "renamed"}) {
		e.Errorf("remaining files: %q", got)
	}
	if err := e.files.Rename(e.Context(), "renamed/other", "from"); err == nil {
		e.Error("Rename of a file onto a directory succeeded")
	}
}

func (e *envTest) remove() {
	e.put("dir/file", "x")
	if err := e.files.Remove(e.Context(), "dir"); err == nil {
		e.Error("Remove removed a directory that is not empty")
	}
	for _, name := range []string{"dir/file", "dir"} {
		if err := e.files.Remove(e.Context(), name); err != nil {
			e.Errorf("Remove(%q): %v", name, err)
		}
	}
	if got := e.names("."); len(got) != 0 {
		e.Errorf("remaining files: %q", got)
	}
}

func (e *envTest) missing() {
	ctx := e.Context()
	e.put("file", "x")
	_, openErr := e.files.Open(ctx, "missing")
	_, statErr := e.files.Stat(ctx, "missing/deep")
	_, dirErr := e.files.ReadDir(ctx, "missing")
	for op, err := range map[string]error{
		"Open": openErr, "Stat": statErr, "ReadDir": dirErr,
		"Remove":             e.files.Remove(ctx, "missing"),
		"Rename":             e.files.Rename(ctx, "missing", "other"),
		"Rename to missing/": e.files.Rename(ctx, "file", "missing/file"),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			e.Errorf("%s: %v is not an fs.ErrNotExist", op, err)
		}
		if err != nil && !strings.Contains(err.Error(), "missing") {
			e.Errorf("%s: the error does not name the path: %v", op, err)
		}
	}
}

func (e *envTest) concurrentFiles() {
	e.put("shared", strings.Repeat("0", 1000))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			content := strings.Repeat(fmt.Sprint(i), 1000)
			if err := e.files.Write(e.Context(), "shared", strings.NewReader(content), 0); err != nil {
				e.Errorf("Write: %v", err)
			}
			data, err := core.ReadFile(e.Context(), e.files, "shared", 1<<20)
			if err != nil || len(data) != 1000 || strings.Trim(string(data), string(data[:1])) != "" {
				e.Errorf("a reader saw a mixture of writes: %d bytes, %v", len(data), err)
			}
		})
	}
	all.Wait()
}

func (e *envTest) cancelledFiles() {
	e.put("file", "x")
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	_, openErr := e.files.Open(ctx, "file")
	_, resolveErr := e.env.Resolve(ctx, "file")
	_, startErr := e.env.Start(ctx, core.Command{Argv: []string{"true"}})
	for op, err := range map[string]error{
		"Open": openErr, "Resolve": resolveErr, "Start": startErr,
		"Write":  e.files.Write(ctx, "file", strings.NewReader("y"), 0),
		"Remove": e.files.Remove(ctx, "file"),
	} {
		if !errors.Is(err, context.Canceled) {
			e.Errorf("%s with a cancelled context: %v", op, err)
		}
	}
	e.want("file", "x")
}
