package patch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/internal/patch"
)

// TestScenarios applies the patch of each folder to its input.
func TestScenarios(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*"))
	if err != nil || len(dirs) < 25 {
		t.Fatalf("%d scenarios, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(dir, "patch.txt"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := apply(string(text), tree(t, filepath.Join(dir, "input")))
			if want, werr := os.ReadFile(filepath.Join(dir, "error.txt")); werr == nil {
				if err == nil || err.Error()+"\n" != string(want) {
					t.Fatalf("error\n%v\nwant\n%s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := tree(t, filepath.Join(dir, "expected")); !maps.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// tree reads the files of a directory, which may be missing.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// apply applies a patch to files in memory.
func apply(text string, files map[string]string) (map[string]string, error) {
	p, err := patch.Parse(text)
	if err != nil {
		return nil, err
	}
	for _, f := range p.Files {
		switch f.Op {
		case patch.Add:
			files[f.Path] = f.Content
		case patch.Delete:
			delete(files, f.Path)
		case patch.Update:
			after, _, err := f.Apply(files[f.Path])
			if err != nil {
				return nil, err
			}
			if f.MoveTo != "" {
				delete(files, f.Path)
				f.Path = f.MoveTo
			}
			files[f.Path] = after
		}
	}
	return files, nil
}

func wrapped(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "a patch must begin with the line *** Begin Patch"},
		{"prose before", "Here it is:\n" + wrapped("*** Delete File: a\n"), `line 1 of the patch: expected *** Begin Patch, found "Here it is:"`},
		{"prose behind", wrapped("*** Delete File: a\n") + "Done.", `expected *** End Patch at the end, found "Done."`},
		{"no end", "*** Begin Patch\n*** Delete File: a\n", `line 2 of the patch: expected *** End Patch at the end, found "*** Delete File: a"`},
		{"no files", wrapped(""), "nothing between"},
		{"an unknown header", wrapped("*** Rename File: a\n"), `line 2 of the patch: expected *** Add File: PATH, *** Update File: PATH or *** Delete File: PATH, found "*** Rename File: a"`},
		{"no path", wrapped("*** Delete File: \n"), `line 2 of the patch: expected`},
		{"no plus", wrapped("*** Add File: a\n+x\ny\n"), `line 4 of the patch: every line of an added file must begin with +, found "y"`},
		{"no change", wrapped("*** Update File: a\n"), "line 2 of the patch: no changes to a"},
		{"no move", wrapped("*** Update File: a\n*** Move to: \n"), "line 3 of the patch: the path to move to is missing"},
		{"no kind", wrapped("*** Update File: a\n@@\nx\n"), `line 4 of the patch: a line of a change must begin with a space, - or +, found "x"`},
		{"delete and update", wrapped("*** Delete File: a\n*** Update File: a\n@@\n-x\n+y\n"), "line 3 of the patch: a already has a section at line 2"},
		{"two to one", wrapped("*** Update File: a\n*** Move to: c\n*** Update File: b\n*** Move to: c\n"), "line 4 of the patch: b already has a section at line 2"},
		{"text behind a deletion", wrapped("*** Delete File: a\n-x\n"), `line 3 of the patch: expected *** Add File`},
	} {
		_, err := patch.Parse(tt.text)
		var syntax *patch.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	p, err := patch.Parse(wrapped("*** Add File: a\n*** Update File: b\n*** Move to: c\n@@\n-x\n+y\n*** Delete File: d\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]patch.Tolerance{"x\n": patch.Exact, "x \n": patch.Trailing, " x\n": patch.Surrounding, "\u00a0x\n": patch.Surrounding} {
		_, notes, err := p.Files[1].Apply(text)
		got := patch.Exact
		if len(notes) > 0 {
			got = notes[0].Tolerance
		}
		if err != nil || got != want {
			t.Errorf("%q: tolerance %v, %v; want %v", text, got, err, want)
		}
	}
}

// FuzzParse: any text is a patch or an error, and Apply never panics.
func FuzzParse(f *testing.F) {
	dirs, _ := filepath.Glob(filepath.Join("testdata", "scenarios", "*", "patch.txt"))
	for _, name := range dirs {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "one\ntwo\r\n\nthree")
	}
	f.Fuzz(func(t *testing.T, text, content string) {
		p, err := patch.Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a message")
			}
			return
		}
		for _, file := range p.Files {
			if file.Op == patch.Update {
				_, _, _ = file.Apply(content)
			}
		}
	})
}

// FuzzApply: a patch from one text to another produces the other.
func FuzzApply(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "one\n2\nthree\n")
	f.Add("a\na\nb", "a\nb\nb")
	f.Add("", "x")
	f.Add("x\r\ny\r\n", "x\r\nz\r\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.ContainsAny(before+after, "\r\ufeff") || before == after || before == "" || after == "" || strings.HasSuffix(before, "\n") != strings.HasSuffix(after, "\n") {
			t.Skip("what a patch keeps of the file cannot be changed by it")
		}
		var b strings.Builder
		b.WriteString("*** Begin Patch\n*** Update File: f\n@@\n")
		for l := range strings.SplitSeq(strings.TrimSuffix(before, "\n"), "\n") {
			b.WriteString("-" + l + "\n")
		}
		for l := range strings.SplitSeq(strings.TrimSuffix(after, "\n"), "\n") {
			b.WriteString("+" + l + "\n")
		}
		b.WriteString("*** End of File\n*** End Patch\n")
		p, err := patch.Parse(b.String())
		if err != nil {
			t.Fatal(err)
		}
		got, notes, err := p.Files[0].Apply(before)
		if err != nil || got != after || len(notes) > 0 {
			t.Fatalf("%q, %v, %v; want %q by\n%s", got, notes, err, after, b.String())
		}
	})
}

func BenchmarkApply100Files(b *testing.B) {
	var content, text strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&content, "line %d of the file, of a usual length\n", i)
	}
	text.WriteString("*** Begin Patch\n")
	for i := range 100 {
		fmt.Fprintf(&text, "*** Update File: f%d\n@@\n line %d of the file, of a usual length\n-line %d of the file, of a usual length\n+changed\n", i, 1_000+i, 1_001+i)
	}
	text.WriteString("*** End Patch\n")
	before := content.String()
	b.ReportAllocs()
	for b.Loop() {
		p, err := patch.Parse(text.String())
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range p.Files {
			if _, _, err := f.Apply(before); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func ExampleParse() {
	p, err := patch.Parse(`*** Begin Patch
*** Update File: greet.go
@@ func greet() {
-	println("hello")
+	println("good morning")
*** End Patch`)
	if err != nil {
		fmt.Println(err)
		return
	}
	after, _, err := p.Files[0].Apply("package main\n\nfunc greet() {\n\tprintln(\"hello\")\n}\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(after)
	// Output:
	// package main
	//
	// func greet() {
	// 	println("good morning")
	// }
}
