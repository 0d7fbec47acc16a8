package envtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// strangeNames are names that a shell or a listing may mishandle, the hardest
// first.
var strangeNames = []string{
	"new\nline", "ends in newline\n", "it's", "\xff\xfe", "-rf", "*", "\\n", "a b",
	" ", "\n", `"quoted"`, "--", "?", "$HOME", "`id`", `back\slash`, "tab\t", "ünï", "semi;colon", "#", "~", "{a,b}", "!", "&", "...", "..a",
	".hidden", "a=b", "0100644 5 0 x .y",
}

// TestHardCases checks what is likely to fail if files and commands go through a
// shell on another machine. The factory creates an environment with a POSIX
// shell and an empty working directory, used by an unprivileged user; the checks
// close it.
func TestHardCases(t *testing.T, factory func(t *testing.T) core.Environment) {
	for name, check := range map[string]func(*testing.T, core.Environment){
		"StrangeNames":     strange,
		"Symlinks":         symlinks,
		"ExactFiles":       exact,
		"Binary":           binary,
		"LargeFile":        large,
		"LargeSnapshot":    snapshot,
		"Missing":          missing,
		"PermissionDenied": denied,
		"ManyFiles":        many,
		"Environment":      variables,
		"CancelKills":      cancelKills,
		"CloseKills":       closeKills,
	} {
		t.Run(name, func(t *testing.T) {
			env := factory(t)
			t.Cleanup(func() {
				if err := env.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			check(t, env)
		})
	}
}

func put(t *testing.T, env core.Environment, name, content string) {
	t.Helper()
	if err := env.Files().Write(t.Context(), name, strings.NewReader(content), 0); err != nil {
		t.Fatalf("Write(%q): %v", name, err)
	}
}

func run(t *testing.T, env core.Environment, script string) string {
	t.Helper()
	out, exit, err := core.Exec(t.Context(), env, core.Command{Script: script})
	if err != nil || exit.Code != 0 {
		t.Fatalf("%s: %+v, %v\n%s", script, exit, err, out)
	}
	return string(out)
}

func strange(t *testing.T, env core.Environment) {
	files, ctx := env.Files(), t.Context()
	names := strangeNames
	if testing.Short() {
		names = names[:8]
	}
	for _, name := range names {
		given := "dir/" + name
		put(t, env, given, name)
		if data, err := core.ReadFile(ctx, files, given, 1000); err != nil || string(data) != name {
			t.Errorf("%q holds %q, %v", name, data, err)
		}
		info, err := files.Stat(ctx, given)
		if err != nil || info.Name() != name || info.Size() != int64(len(name)) {
			t.Errorf("Stat(%q) = %v, %v", name, info, err)
		}
		to, err := env.Resolve(ctx, given)
		if err != nil || to.Path != path.Join(env.Info().Dir, "dir")+"/"+name {
			t.Errorf("Resolve(%q) = %+v, %v", name, to, err)
		}
	}
	found := map[string]int64{}
	entries, err := files.ReadDir(ctx, "dir")
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = info.Size()
	}
	if err != nil || len(entries) != len(names) {
		t.Errorf("ReadDir finds %d of %d: %v", len(entries), len(names), err)
	}
	for _, name := range names {
		if found[name] != int64(len(name)) {
			t.Errorf("ReadDir says that %q has %d bytes", name, found[name])
		}
		moved := "moved/" + name
		put(t, env, "moved/keep", "")
		if err := files.Rename(ctx, "dir/"+name, moved); err != nil {
			t.Errorf("Rename(%q): %v", name, err)
			continue
		}
		if err := files.Remove(ctx, moved); err != nil {
			t.Errorf("Remove(%q): %v", name, err)
		}
	}
	inStrangeDirectory(t, env)
}

func inStrangeDirectory(t *testing.T, env core.Environment) {
	const dir = "-d 'q'\n\"$x\"\n"
	put(t, env, dir+"/f", "x")
	out, exit, err := core.Exec(t.Context(), env, core.Command{Argv: []string{"ls"}, Dir: dir})
	if err != nil || exit.Code != 0 || string(out) != "f\n" {
		t.Errorf("a command in the directory %q: %q, %+v, %v", dir, out, exit, err)
	}
}

func symlinks(t *testing.T, env core.Environment) {
	files, ctx := env.Files(), t.Context()
	put(t, env, "dir/file", "old")
	run(t, env, `ln -s file dir/link; ln -s dir dirlink; ln -s "$(printf 'new\nline')" odd; ln -s nowhere broken`)
	put(t, env, "dir/link", "through the link")
	if data, err := core.ReadFile(ctx, files, "dirlink/file", 1000); err != nil || string(data) != "through the link" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	put(t, env, "odd", "x")
	if data, err := core.ReadFile(ctx, files, "new\nline", 1000); err != nil || string(data) != "x" {
		t.Errorf("the target of a link with a newline holds %q, %v", data, err)
	}
	entries, err := files.ReadDir(ctx, "dirlink")
	if err != nil || len(entries) != 2 || entries[1].Type()&fs.ModeSymlink == 0 {
		t.Errorf("ReadDir = %v, %v", entries, err)
	}
	if _, err := files.Stat(ctx, "broken"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of a broken link: %v", err)
	}
	if err := files.Remove(ctx, "dir/link"); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if _, err := files.Stat(ctx, "dir/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove of a link did not remove its target: %v", err)
	}
}

func exact(t *testing.T, env core.Environment) {
	filer, ok := env.(core.ExactFiler)
	if !ok {
		t.Skip("it has no exact files")
	}
	dir := env.Info().Dir
	put(t, env, "dir/file", "x")
	run(t, env, "ln -s dir link")
	files, ctx := filer.ExactFiles(), t.Context()
	if _, err := core.ReadFile(ctx, files, dir+"/dir/file", 10); err != nil {
		t.Errorf("a resolved path was refused: %v", err)
	}
	_, openErr := files.Open(ctx, dir+"/link/file")
	_, statErr := files.Stat(ctx, "dir/file")
	for op, err := range map[string]error{
		"Open": openErr, "Stat of a relative path": statErr,
		"Write":  files.Write(ctx, dir+"/link/file", strings.NewReader("y"), 0),
		"Remove": files.Remove(ctx, dir+"/link/file"),
		"Rename": files.Rename(ctx, dir+"/dir/file", dir+"/link/other"),
	} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s of a path that is not resolved: %v", op, err)
		}
	}
}

func binary(t *testing.T, env core.Environment) {
	all := make([]byte, 0, 1<<16)
	for i := range 1 << 16 {
		all = append(all, byte(i), byte(i>>8))
	}
	put(t, env, "bin", string(all))
	if data, err := core.ReadFile(t.Context(), env.Files(), "bin", 1<<20); err != nil || !bytes.Equal(data, all) {
		t.Errorf("%d bytes came back as %d, %v", len(all), len(data), err)
	}
	out, _, err := core.Exec(t.Context(), env, core.Command{Argv: []string{"cat"}, Stdin: bytes.NewReader(all)})
	if err != nil || !bytes.Equal(out, all) {
		t.Errorf("%d bytes through a command came back as %d, %v", len(all), len(out), err)
	}
}

// noise returns a reader of varying bytes that does not reveal its length.
func noise(size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{1}), size)
}

func large(t *testing.T, env core.Environment) {
	const size = 50<<20 + 12345
	files, ctx := env.Files(), t.Context()
	if err := files.Write(ctx, "large", noise(size), 0); err != nil {
		t.Fatal(err)
	}
	want := sha256.New()
	_, _ = io.Copy(want, noise(size))
	f, err := files.Open(ctx, "large")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := sha256.New()
	n, err := io.Copy(got, f)
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d bytes came back as %d, %v, or changed", size, n, err)
	}
	end := make([]byte, 100)
	if n, err := f.ReadAt(end, size-50); n != 50 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt across the end = %d, %v", n, err)
	}
	if n, err := f.ReadAt(end, 30<<20); n != 100 || err != nil {
		t.Errorf("ReadAt in the middle = %d, %v", n, err)
	}
	if n, err := f.ReadAt(end, 1<<40); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt far past the end = %d, %v", n, err)
	}
}

// snapshot replaces and removes a large file while it is open.
func snapshot(t *testing.T, env core.Environment) {
	files, ctx := env.Files(), t.Context()
	put(t, env, "file", strings.Repeat("old", 1<<20))
	f, err := files.Open(ctx, "file")
	if err != nil {
		t.Fatal(err)
	}
	put(t, env, "file", "new")
	if err := files.Remove(ctx, "file"); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil || len(data) != 3<<20 || strings.Count(string(data), "old") != 1<<20 {
		t.Errorf("an open file has changed: %d bytes, %v", len(data), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
}

func missing(t *testing.T, env core.Environment) {
	_, err := env.Files().Open(t.Context(), "no 'such'\nfile")
	pathErr, ok := errors.AsType[*fs.PathError](err)
	if !errors.Is(err, fs.ErrNotExist) || !ok || !strings.HasSuffix(pathErr.Path, "no 'such'\nfile") {
		t.Errorf("Open: %v, want an fs.ErrNotExist with the path", err)
	}
}

func denied(t *testing.T, env core.Environment) {
	files, ctx := env.Files(), t.Context()
	put(t, env, "secret", "x")
	put(t, env, "locked/file", "x")
	put(t, env, "closed/file", "x")
	run(t, env, "chmod 0 secret; chmod 500 locked; chmod 0 closed")
	t.Cleanup(func() { // Close comes after this
		_, _, _ = core.Exec(context.Background(), env, core.Command{Script: "chmod 700 locked closed"})
	})
	_, openErr := files.Open(ctx, "secret")
	_, listErr := files.ReadDir(ctx, "closed")
	_, statErr := files.Stat(ctx, "closed/file")
	for op, err := range map[string]error{
		"Open": openErr, "ReadDir": listErr, "Stat": statErr,
		"Write":    files.Write(ctx, "locked/file", strings.NewReader("y"), 0),
		"Create":   files.Write(ctx, "locked/new", strings.NewReader("y"), 0),
		"Parents":  files.Write(ctx, "locked/new/file", strings.NewReader("y"), 0),
		"ReadOnly": files.Write(ctx, "secret", strings.NewReader("y"), 0),
		"Rename":   files.Rename(ctx, "locked/file", "elsewhere"),
		"Remove":   files.Remove(ctx, "locked/file"),
	} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want an fs.ErrPermission", op, err)
		}
	}
}

func many(t *testing.T, env core.Environment) {
	run(t, env, `mkdir d; cd d; i=0; while [ $i -lt 1000 ]; do : >file$i; i=$((i+1)); done`)
	entries, err := env.Files().ReadDir(t.Context(), "d")
	if err != nil || len(entries) != 1000 {
		t.Errorf("ReadDir finds %d of 1000: %v", len(entries), err)
	}
}

func variables(t *testing.T, env core.Environment) {
	const value = " a'b\"c\\n$HOME`id`\nsecond line\n\n\xff#*"
	out, _, err := core.Exec(t.Context(), env, core.Command{
		Argv: []string{"sh", "-c", `printf %s "$ODD|$path|$status|$token"`},
		Env:  []string{"ODD=" + value, "path=1", "status=2", "token=3"},
	})
	if want := value + "|1|2|3"; err != nil || string(out) != want {
		t.Errorf("variables came as %q, %v, want %q", out, err, want)
	}
	if _, err := env.Start(t.Context(), core.Command{Script: "true", Env: []string{"A;id=x"}}); err == nil {
		t.Error("a name that is shell code was accepted")
	}
}

// waitFor waits until the script succeeds.
func waitFor(t *testing.T, env core.Environment, script string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		_, exit, err := core.Exec(t.Context(), env, core.Command{Script: script})
		if err != nil {
			t.Fatal(err)
		}
		if exit.Code == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never succeeded: %s", script)
		}
	}
}

// gone is a script that succeeds if the process whose id is in the file pid has
// ended.
const gone = `pid=$(cat pid); kill -0 $pid 2>/dev/null || exit 0; grep -q '^[0-9]* (.*) Z' /proc/$pid/stat`

func cancelKills(t *testing.T, env core.Environment) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := env.Start(ctx, core.Command{Script: `sh -c 'trap "" TERM; echo $$ >pid; while :; do sleep 1; done' & wait`})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, env, "test -s pid")
	cancel()
	if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait: %v", err)
	}
	if _, exit, err := core.Exec(t.Context(), env, core.Command{Script: gone}); err != nil || exit.Code != 0 {
		t.Errorf("the remote process survived: %+v, %v", exit, err)
	}
}

// closeKills checks that nothing blocks once the environment is closed.
func closeKills(t *testing.T, env core.Environment) {
	p, err := env.Start(t.Context(), core.Command{Script: "echo $$ >pid; sleep 300"})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, env, "test -s pid")
	if err := env.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := p.Wait(); err == nil {
		t.Error("a command that Close ended has no error")
	}
	if _, err := env.Start(t.Context(), core.Command{Script: "true"}); err == nil {
		t.Error("a closed environment starts commands")
	}
}

// Dir creates a temporary directory that any user may use, for environments that
// drop the privileges of the test.
func Dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "env")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
