package coretest

import (
	"bytes"
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

// EnvironmentOptions say what the environment under test can do.
type EnvironmentOptions struct {
	HasShell    bool // Command.Script runs in a POSIX shell with the usual programs
	HasSymlinks bool // the shell's ln -s makes symbolic links
	HasSetsid   bool // there is a setsid program, to try daemons with
}

// secretName is set in the test's own environment: no command may see it.
const (
	secretName  = "CORETEST_CONFORMANCE_API_KEY"
	secretValue = "conformance-secret-value"
)

// killBound is how long a command that ignores the request to end may last
// after its context: two seconds, and what a busy machine takes; far below what
// it would by itself.
const killBound = 20 * time.Second

// TestEnvironment checks an environment against the contract that stands on
// [core.Environment] and [core.FS]. The factory makes an environment whose
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
		e.Errorf("the roots %q do not hold the working directory %q", info.Roots, info.Dir)
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
		{"absolute/..", "dir", true}, // where the system goes, not where the text goes
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
		e.Errorf("beside the file there is something else: %q", got)
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
		e.Errorf("a file that was to have the mode 0750 has %v", got)
	}
	e.put("script", "y")
	if got := mode("script"); got != 0o750 {
		e.Errorf("a file of the mode 0750 has %v after a Write with mode 0", got)
	}
}

// brokenReader gives half of the content, then fails or does what it is told.
type brokenReader struct {
	read bool
	then func() error
}

var errBroken = errors.New("the content broke off")

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
		e.Errorf("an open file is no longer what it was when it was opened: %q, %v", data, err)
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
		e.Errorf("what is left: %q", got)
	}
	if err := e.files.Rename(e.Context(), "renamed/other", "from"); err == nil {
		e.Error("Rename of a file onto a directory went well")
	}
}

func (e *envTest) remove() {
	e.put("dir/file", "x")
	if err := e.files.Remove(e.Context(), "dir"); err == nil {
		e.Error("Remove took a directory that is not empty")
	}
	for _, name := range []string{"dir/file", "dir"} {
		if err := e.files.Remove(e.Context(), name); err != nil {
			e.Errorf("Remove(%q): %v", name, err)
		}
	}
	if got := e.names("."); len(got) != 0 {
		e.Errorf("what is left: %q", got)
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
			e.Errorf("%s: %v is no fs.ErrNotExist", op, err)
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
				e.Errorf("a reader saw a file that nobody wrote: %d bytes, %v", len(data), err)
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

func (e *envTest) startRefuses() {
	for what, cmd := range map[string]core.Command{
		"nothing": {},
		"both":    {Script: "true", Argv: []string{"true"}},
	} {
		if _, err := e.env.Start(e.Context(), cmd); err == nil {
			e.Errorf("a command that says %s was started", what)
		}
	}
}

func (e *envTest) noShell() {
	if shell := e.env.Info().Shell; shell != "" {
		e.Errorf("Info names the shell %q", shell)
	}
	_, err := e.env.Start(e.Context(), core.Command{Script: "true"})
	if err == nil || !strings.Contains(err.Error(), "shell") {
		e.Errorf("Start = %v, want an error that says that there is no shell", err)
	}
}

func (e *envTest) exec() {
	e.put("dir/file", "x")
	tests := []struct {
		name           string
		cmd            core.Command
		stdout, stderr string
		code           int
		signal         string
	}{
		{name: "streams", cmd: core.Command{Script: "echo out; echo err >&2"}, stdout: "out\n", stderr: "err\n"},
		{name: "exit code", cmd: core.Command{Script: "exit 42"}, code: 42},
		{name: "signal", cmd: core.Command{Script: "kill -KILL $$"}, code: -1, signal: "SIGKILL"},
		{name: "no input", cmd: core.Command{Script: "cat"}},
		{name: "input", cmd: core.Command{Script: "cat", Stdin: strings.NewReader("in\n")}, stdout: "in\n"},
		{name: "input that nobody reads", cmd: core.Command{Script: "true", Stdin: bytes.NewReader(make([]byte, 1<<20))}},
		{name: "variable", cmd: core.Command{Script: `echo "$ADDED"`, Env: []string{"ADDED=value"}}, stdout: "value\n"},
		{name: "working directory", cmd: core.Command{Script: "ls"}, stdout: "dir\n"},
		{name: "directory", cmd: core.Command{Script: "ls", Dir: "dir"}, stdout: "file\n"},
		{name: "arguments", cmd: core.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "*"}}, stdout: "a b|$HOME|*|"},
		{name: "bytes", cmd: core.Command{Script: `printf '\377\000\200'`}, stdout: "\xff\x00\x80"},
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		cmd := test.cmd
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		p, err := e.env.Start(e.Context(), cmd)
		if err != nil {
			e.Errorf("%s: Start: %v", test.name, err)
			continue
		}
		exit, err := p.Wait()
		if err != nil || exit.Code != test.code || exit.Signal != test.signal || exit.Left != 0 {
			e.Errorf("%s: %+v, %v, want code %d, signal %q", test.name, exit, err, test.code, test.signal)
		}
		if stdout.String() != test.stdout || stderr.String() != test.stderr {
			e.Errorf("%s: stdout %q, stderr %q, want %q, %q", test.name, &stdout, &stderr, test.stdout, test.stderr)
		}
	}
	for what, cmd := range map[string]core.Command{
		"a missing program":   {Argv: []string{"no-such-program-anywhere"}},
		"a missing directory": {Script: "true", Dir: "no-such-directory"},
	} {
		if p, err := e.env.Start(e.Context(), cmd); err == nil {
			exit, _ := p.Wait()
			e.Errorf("a command with %s was started: %+v", what, exit)
		}
	}
}

func (e *envTest) execInterleaves() {
	got := e.run("i=0; while [ $i -lt 100 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done")
	var want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i, i)
	}
	if got != want.String() {
		e.Error("stdout and stderr of one writer are out of order")
	}
}

func (e *envTest) execLongLine() {
	const size = 10 << 20
	got := e.run(fmt.Sprintf(`head -c %d /dev/zero | tr '\000' x; echo`, size))
	if len(got) != size+1 || strings.Count(got, "x") != size || got[size] != '\n' {
		e.Errorf("a line of %d bytes came as %d bytes", size+1, len(got))
	}
}

func (e *envTest) execHidesSecrets() {
	if got := e.run("env"); strings.Contains(got, secretValue) {
		e.Errorf("a command sees %s", secretName)
	}
	if got := e.run(`echo "$PATH"`); strings.TrimSpace(got) == "" {
		e.Error("a command has no PATH")
	}
	out, _, err := core.Exec(e.Context(), e.env, core.Command{Argv: []string{"env"}, Env: []string{secretName + "=given"}})
	if err != nil || !strings.Contains(string(out), secretName+"=given") {
		e.Errorf("a variable that the command was given is missing: %v", err)
	}
}

func (e *envTest) execHasNoTerminal() {
	out, exit, err := core.Exec(e.Context(), e.env, core.Command{Script: "exec 2>/dev/null; exec 3<>/dev/tty && echo opened"})
	if err != nil || len(out) != 0 || exit.Code == 0 {
		e.Errorf("/dev/tty: %q, %+v, %v", out, exit, err)
	}
}

// start starts a script and returns once it has made the file "started".
func (e *envTest) start(ctx context.Context, script string, out io.Writer) core.Process {
	e.Helper()
	p, err := e.env.Start(ctx, core.Command{Script: script, Stdout: out, Stderr: out})
	if err != nil {
		e.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if info, err := e.files.Stat(e.Context(), "started"); err == nil && info.Size() > 0 {
			return p
		}
		if time.Now().After(deadline) {
			e.Fatal("the script did not start")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// wantGone checks that the process whose id stands in the file "started" is
// gone, by asking in the environment itself. A zombie is.
func (e *envTest) wantGone() {
	e.Helper()
	got := e.run(`pid=$(cat started)
		kill -0 "$pid" 2>/dev/null || exit 0
		state=$(sed 's/.*) \(.\).*/\1/' /proc/$pid/stat 2>/dev/null || ps -o stat= -p "$pid")
		case $state in Z*|X*|'') exit 0 ;; esac
		echo "$pid is $state"; ps -fp "$pid"`)
	if got != "" {
		e.Errorf("a process is left: %s", got)
	}
}

func (e *envTest) execTimeout() {
	// Far away, a command takes its time to start.
	ctx, cancel := context.WithTimeout(e.Context(), time.Second)
	defer cancel()
	out, exit, err := core.Exec(ctx, e.env, core.Command{Script: "echo before; trap 'echo asked; exit 3' TERM; sleep 300 & wait"})
	if !errors.Is(err, context.DeadlineExceeded) {
		e.Errorf("error %v, want that of the context", err)
	}
	if exit.Code != 3 || string(out) != "before\nasked\n" {
		e.Errorf("the command was not asked to end: %+v, %q", exit, out)
	}
}

func (e *envTest) execStubborn() {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	var out bytes.Buffer
	p := e.start(ctx, `trap '' TERM HUP INT; echo $$ >started; while :; do sleep 300; done`, &out)
	start := time.Now()
	cancel()
	exit, err := p.Wait()
	took := time.Since(start)
	if !errors.Is(err, context.Canceled) || exit.Code != -1 || exit.Signal != "SIGKILL" {
		e.Errorf("exit %+v, %v, want SIGKILL and the error of the context", exit, err)
	}
	if took > killBound {
		e.Errorf("Wait returned %v after the end of the context, want %v at most", took, killBound)
	}
	e.wantGone()
}

func (e *envTest) execLeavesNoChild() {
	var out bytes.Buffer
	p := e.start(e.Context(), `sleep 300 & echo $! >started; echo done`, &out)
	exit, err := p.Wait()
	if err != nil || exit.Code != 0 || exit.Left != 1 || out.String() != "done\n" {
		e.Errorf("exit %+v, %v, output %q, want one process left", exit, err, &out)
	}
	e.wantGone()
}

func (e *envTest) execLeavesNoDaemon() {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	var out bytes.Buffer
	p := e.start(ctx, `(setsid sh -c 'echo $$ >started; exec sleep 300' &); sleep 300`, &out)
	cancel()
	if exit, err := p.Wait(); !errors.Is(err, context.Canceled) {
		e.Errorf("exit %+v, %v", exit, err)
	}
	e.wantGone()
}

func (e *envTest) execConcurrently() {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			out, exit, err := core.Exec(e.Context(), e.env, core.Command{Script: fmt.Sprintf("echo %d; exit %d", i, i)})
			if err != nil || exit.Code != i || string(out) != fmt.Sprintf("%d\n", i) {
				e.Errorf("command %d: %q, %+v, %v", i, out, exit, err)
			}
		})
	}
	all.Wait()
}
