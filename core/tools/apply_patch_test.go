package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

func patchOf(body string) args { return args{"patch": "*** Begin Patch\n" + body + "*** End Patch\n"} }

func contentAt(t *testing.T, where core.Environment, path string) string {
	t.Helper()
	data, err := core.ReadFile(t.Context(), where.Files(), path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return "(not there)"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	where := env.NewMemory("/w", map[string]string{"a.txt": "one\ntwo \n", "b.txt": "b\n", "c.txt": "c\n", "new": "old\n"})
	in := patchOf("*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: d/c.txt\n@@\n-c\n+C\n" +
		"*** Update File: new\n*** Move to: older\n*** Add File: sub/new\n+new\n")
	result, text := run(t, tools.ApplyPatch(), where, in)
	want := "Done:\nM a.txt\n  (the change at line 3 of the patch: matched ignoring differences in white space at line ends; check the result)\n" +
		"D b.txt\nR c.txt → d/c.txt\nR new → older\nA sub/new"
	if text != want || result.Code != "" {
		t.Errorf("answered (%s)\n%s\nwant\n%s", result.Code, text, want)
	}
	for path, want := range map[string]string{
		"a.txt": "one\n2\n", "b.txt": "(not there)", "c.txt": "(not there)", "d/c.txt": "C\n", "new": "(not there)", "older": "old\n", "sub/new": "new\n",
	} {
		if got := contentAt(t, where, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if diff := string(result.Meta["diff"]); !strings.Contains(diff, "+2") || !strings.Contains(diff, "b/d/c.txt") || !strings.Contains(diff, "-b") {
		t.Errorf("the diff for interfaces is %s", diff)
	}
}

// TestApplyPatchTwice: a second section for a file continues from the first.
func TestApplyPatchTwice(t *testing.T) {
	t.Parallel()
	where := env.NewMemory("/w", map[string]string{"a.txt": "one\ntwo\n"})
	_, text := run(t, tools.ApplyPatch(), where, patchOf("*** Update File: a.txt\n@@\n-two\n+2\n*** Update File: a.txt\n@@\n-one\n+1\n"))
	if got := contentAt(t, where, "a.txt"); got != "1\n2\n" || text != "Done:\nM a.txt" {
		t.Errorf("a.txt is %q; answered %q", got, text)
	}
}

// TestApplyPatchPaths: sections are about files, however they are named, and no
// section is lost.
func TestApplyPatchPaths(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 10<<20+1)
	for name, c := range map[string]struct {
		body, report string
		want         map[string]string
	}{
		"two names": {
			"*** Update File: a\n@@\n-one\n+1\n*** Update File: ./a\n@@\n-two\n+2\n*** Update File: /w/a\n@@\n-three\n+3\n",
			"M a",
			map[string]string{"a": "1\n2\n3\n"},
		},
		"swap": {
			"*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: a\n@@\n-bee\n+B\n",
			"R a → b\nR b → a",
			map[string]string{"a": "B\n", "b": "one\ntwo\nthree\n"},
		},
		"rotation": {
			"*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: bin\n*** Update File: bin\n*** Move to: a\n",
			"R a → b\nR b → bin\nR bin → a",
			map[string]string{"a": "\x00\x01", "b": "one\ntwo\nthree\n", "bin": "bee\n"},
		},
		"move onto a file":  {"*** Update File: a\n*** Move to: ./b\n", "R a → ./b (replaced the existing file)", map[string]string{"a": "(not there)", "b": "one\ntwo\nthree\n"}},
		"move and change":   {"*** Update File: a\n*** Move to: c\n*** Update File: c\n@@\n-one\n+1\n", "R a → c", map[string]string{"a": "(not there)", "c": "1\ntwo\nthree\n"}},
		"move to itself":    {"*** Update File: a\n*** Move to: /w/a\n@@\n-one\n+1\n", "M a", map[string]string{"a": "1\ntwo\nthree\n"}},
		"add over a file":   {"*** Add File: crlf\n+x\n+y\n", "A crlf (replaced the existing file)\n  (kept the file's line endings, which are not LF)", map[string]string{"crlf": "x\r\ny\r\n"}},
		"delete and add":    {"*** Delete File: a\n*** Add File: ./a\n+new\n", "A ./a (replaced the existing file)", map[string]string{"a": "new\n"}},
		"file to directory": {"*** Delete File: a\n*** Add File: a/b\n+new\n", "D a\nA a/b", map[string]string{"a/b": "new\n"}},
		"mixed endings":     {"*** Update File: mixed\n@@\n a\n-b\n+B\n+new\n c\n-d\n+D\n", "M mixed", map[string]string{"mixed": "a\r\nB\nnew\nc\r\nD\r\n"}},
		"binary files":      {"*** Delete File: bin\n*** Update File: bin2\n*** Move to: sub/bin\n", "D bin\nR bin2 → sub/bin", map[string]string{"bin": "(not there)", "bin2": "(not there)", "sub/bin": "\x00\x02"}},
		"large files":       {"*** Delete File: large\n*** Update File: large2\n*** Move to: sub/large\n", "D large\nR large2 → sub/large", map[string]string{"large": "(not there)", "large2": "(not there)", "sub/large": large}},
		"environment":       {"*** Environment ID: local\n   *** Update File: a\n@@ -1,2 +1,2 @@ text\n-one\n+1\n", "M a", map[string]string{"a": "1\ntwo\nthree\n"}},
		"indentation":       {"*** Update File: py\n@@\n a()\n-b()\n+c()\n+d()\n", "M py\n  (the change at line 3 of the patch: matched ignoring differences in white space; changed the indentation of the added lines to the file's; check the result)", map[string]string{"py": "def f():\n    a()\n    c()\n    d()\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := env.NewMemory("/w", map[string]string{
				"a": "one\ntwo\nthree\n", "b": "bee\n", "bin": "\x00\x01", "bin2": "\x00\x02", "crlf": "a\r\nb\r\n",
				"mixed": "a\r\nb\nc\r\nd\r\n", "large": large, "large2": large, "py": "def f():\n    a()\n    b()\n",
			})
			result, text := run(t, tools.ApplyPatch(), where, patchOf(c.body))
			if result.Code != "" || text != "Done:\n"+c.report {
				t.Errorf("answered (%s) %q, want %q", result.Code, text, c.report)
			}
			for path, want := range c.want {
				data, err := core.ReadFile(t.Context(), where.Files(), path, 1<<30)
				if got := string(data); got != want && (want != "(not there)" || !errors.Is(err, fs.ErrNotExist)) {
					t.Errorf("%s has %d bytes (%.40q), %v; want %.40q", path, len(got), got, err, want)
				}
			}
		})
	}
}

// TestApplyPatchRefuses: a refused patch changes nothing.
func TestApplyPatchRefuses(t *testing.T) {
	t.Parallel()
	const good = "*** Update File: a.txt\n@@\n-one\n+1\n"
	for name, c := range map[string]struct {
		body string
		code core.ErrorCode
		want string
	}{
		"no patch":                         {"*** Rename File: a.txt\n", core.CodeValidation, "Invalid patch: line 2 of the patch: expected"},
		"a missing file":                   {good + "*** Update File: a.tx1\n@@\n-x\n+y\n", core.CodeNotFound, "File not found"},
		"a missing deletion":               {good + "*** Delete File: z.txt\n", core.CodeNotFound, "File not found"},
		"lines not there":                  {good + "*** Update File: b.txt\n@@\n-x\n+y\n", core.CodeValidation, "Most like it|these lines of the change at line"},
		"an added directory":               {good + "*** Add File: dir\n+x\n", core.CodeIO, "it is a directory"},
		"an update that a move would lose": {good + "*** Update File: b.txt\n*** Move to: ./a.txt\n", core.CodeValidation, "./a.txt has sections at lines 2 and 6"},
		"two moves to one":                 {good + "*** Update File: b.txt\n*** Move to: x\n*** Update File: c.bin\n*** Move to: /w/x\n", core.CodeValidation, "one of which would be lost"},
		"a deletion of an update":          {good + "*** Delete File: /w/a.txt\n", core.CodeValidation, "is changed at line 2 of the patch and deleted at line 6"},
		"an update of a deletion":          {good + "*** Delete File: b.txt\n*** Update File: ./b.txt\n@@\n-b\n+c\n", core.CodeValidation, "is deleted at line 6 of the patch, and used again at line 7"},
		"an update of a moved file":        {good + "*** Update File: b.txt\n*** Move to: x\n*** Update File: ./b.txt\n@@\n-b\n+c\n", core.CodeValidation, "is moved at line 6"},
		"an addition to an update":         {good + "*** Add File: dir/../a.txt\n+x\n", core.CodeValidation, "has sections at lines 2 and 6"},
		"a directory":                      {good + "*** Delete File: dir\n", core.CodeIO, "it is a directory"},
		"a binary file":                    {good + "*** Update File: c.bin\n@@\n-x\n+y\n", core.CodeIO, "not a text file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := env.NewMemory("/w", map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.bin": "\x00\x01\x02\x00", "dir/x": ""})
			result, text := run(t, tools.ApplyPatch(), where, patchOf(c.body))
			found := false
			for want := range strings.SplitSeq(c.want, "|") {
				found = found || strings.Contains(text, want)
			}
			if result.Code != c.code || !found || !strings.Contains(text, "Nothing was changed.") {
				t.Errorf("answered (%s) %q, want (%s) %q", result.Code, text, c.code, c.want)
			}
			if got := contentAt(t, where, "a.txt"); got != "one\n" {
				t.Errorf("a.txt is %q", got)
			}
		})
	}
}

// TestApplyPatchAccess: a patch declares all that it touches, and can touch
// nothing else.
func TestApplyPatchAccess(t *testing.T) {
	t.Parallel()
	raw := `{"patch":"*** Begin Patch\n*** Add File: ../new\n+x\n*** Delete File: /etc/passwd\n*** Update File: a\n*** Move to: .git/hooks/post-commit\n*** Update File: b\n@@\n-x\n+y\n*** End Patch"}`
	all, err := tools.ApplyPatch().Access(t.Context(), &core.Call{Args: []byte(raw)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range all {
		got = append(got, string(a.Scope)+" "+a.Resource)
	}
	want := "fs-read ../new|fs-write ../new|fs-read /etc/passwd|fs-delete /etc/passwd|fs-write /etc/passwd|fs-read a|fs-delete a|fs-write a|" +
		"fs-read .git/hooks/post-commit|fs-write .git/hooks/post-commit|fs-delete .git/hooks/post-commit|fs-read b|fs-write b"
	if strings.Join(got, "|") != want {
		t.Errorf("accesses %q, want %q", got, want)
	}
}

// failingFiles fails to write one path.
type failingFiles struct {
	core.FS
	at string
}

func (f failingFiles) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	if path == f.at {
		return errors.New("no space left on device")
	}
	return f.FS.Write(ctx, path, content, mode)
}

type failing struct {
	core.Environment
	at string
}

func (f failing) Files() core.FS { return failingFiles{f.Environment.Files(), f.at} }

func TestApplyPatchRollsBack(t *testing.T) {
	t.Parallel()
	memory := env.NewMemory("/w", map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n"})
	in := patchOf("*** Update File: a.txt\n@@\n-one\n+1\n*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: e.txt\n*** Update File: d.txt\n@@\n-d\n+D\n")
	result, text := run(t, tools.ApplyPatch(), failing{memory, "/w/d.txt"}, in)
	if result.Code != core.CodeIO || !strings.Contains(text, "disk is full") || !strings.Contains(text, "all other files are unchanged") {
		t.Errorf("answered (%s) %q", result.Code, text)
	}
	for path, want := range map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n"} {
		if got := contentAt(t, memory, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestApplyPatchAndLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("creating links needs a privilege on Windows")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"real.txt": "x\n", "script": "#!/bin/sh\nold\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real.txt", filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	where, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = where.Close() })
	for _, body := range []string{"*** Delete File: link.txt\n", "*** Update File: link.txt\n*** Move to: other.txt\n"} {
		if result, text := run(t, tools.ApplyPatch(), where, patchOf(body)); result.Code != core.CodeIO || !strings.Contains(text, "symbolic link") {
			t.Errorf("answered (%s) %q", result.Code, text)
		}
	}
	if got := contentAt(t, where, "real.txt"); got != "x\n" {
		t.Errorf("real.txt is %q", got)
	}
	if result, text := run(t, tools.ApplyPatch(), where, patchOf("*** Update File: script\n*** Move to: bin/script\n@@\n-old\n+new\n")); result.Code != "" {
		t.Fatalf("answered (%s) %q", result.Code, text)
	}
	if info, err := os.Stat(filepath.Join(dir, "bin", "script")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the moved script: %v, %v", info, err)
	}
}

// TestApplyUnifiedDiff: a diff as git prints it is applied, and needs the same
// permissions.
func TestApplyUnifiedDiff(t *testing.T) {
	where := env.NewMemory("", map[string]string{"f.txt": "a\nb\nc\n", "g.txt": "x\n"})
	diff := "diff --git a/f.txt b/f.txt\nindex 1..2 100644\n--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- a/g.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
	check(t, tools.ApplyPatch(), where, args{"patch": diff}, "", "Done:\nM f.txt\nD g.txt")
	if got := content(t, where, "f.txt"); got != "a\nB\nc\n" {
		t.Errorf("f.txt is %q", got)
	}
	raw, err := json.Marshal(args{"patch": diff})
	if err != nil {
		t.Fatal(err)
	}
	call := &core.Call{Args: raw, Env: where}
	accesses, err := tools.ApplyPatch().Access(t.Context(), call)
	if err != nil || len(accesses) < 2 {
		t.Errorf("accesses %v, %v", accesses, err)
	}
}
