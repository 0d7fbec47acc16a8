package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

func TestEditFile(t *testing.T) {
	const bom = "\uFEFF"
	tests := []struct {
		name     string
		file     string
		old, new string
		all      bool
		want     string // the file afterwards
		says     string // the confirmation holds
	}{
		{name: "exact", file: "a\nb\nc\n", old: "b", new: "x", want: "a\nx\nc\n", says: "Edited f: 1 replacement (line 2)."},
		{name: "several lines", file: "a\nb\nc\n", old: "a\nb\n", new: "x\n", want: "x\nc\n", says: "(lines 1–2)."},
		{name: "deletion", file: "a\nb\nc\n", old: "b\n", new: "", want: "a\nc\n", says: "1 replacement"},
		{name: "all", file: "a b a\na\n", old: "a", new: "x", all: true, want: "x b x\nx\n", says: "3 replacements (lines 1, 1, 2)."},
		{name: "all of one", file: "a b\n", old: "a", new: "x", all: true, want: "x b\n", says: "1 replacement (line 1)."},
		{name: "all without overlap", file: "aaaa\n", old: "aa", new: "b", all: true, want: "bb\n", says: "2 replacements"},
		{name: "CRLF is kept", file: "a\r\nb\r\nc\r\n", old: "a\nb", new: "x\ny\nz", want: "x\r\ny\r\nz\r\nc\r\n", says: "(lines 1–2)."},
		{name: "CRLF asked for in an LF file", file: "a\nb\n", old: "a\r\nb", new: "x\r\ny", want: "x\ny\n", says: "1 replacement"},
		{name: "new lines in one line of a CRLF file", file: "a\r\nb\r\n", old: "a", new: "x\ny", want: "x\r\ny\r\nb\r\n", says: "(line 1)."},
		{name: "mixed endings", file: "a\r\nb\nc\nd\n", old: "b\nc", new: "x", want: "a\r\nx\nd\n", says: "(lines 2–3)."},
		{name: "byte order mark is kept", file: bom + "a\nb\n", old: "a\n", new: "x\n", want: bom + "x\nb\n", says: "(line 1)."},
		{name: "byte order mark in old", file: bom + "a\nb\n", old: bom + "a", new: bom + "x", want: bom + "x\nb\n", says: "(line 1)."},
		{name: "dollar signs mean themselves", file: "a\n", old: "a", new: "$1 ${x}", want: "$1 ${x}\n", says: "1 replacement"},
		{
			name: "white space at line ends", file: "a  \nb\t\nc\n", old: "a\nb\n", new: "x\n", want: "x\nc\n",
			says: "1 replacement (lines 1–2). No exact match: replaced the only place that differs just in white space at line ends",
		},
		{
			name: "white space at line ends, CRLF", file: "a  \r\nb\r\nc\r\n", old: "a\nb", new: "x\ny", want: "x\r\ny\r\nc\r\n",
			says: "at line ends",
		},
		{
			name: "indentation", file: "func f() {\n\tif x {\n\t\treturn\n\t}\n}\n",
			old: "  if x {\n    return\n  }", new: "  if y {\n    return\n    // done\n  }",
			want: "func f() {\n\tif y {\n\t\treturn\n\t\t// done\n\t}\n}\n",
			says: "differs just in white space, and changed the indentation of new_string to the file's.",
		},
		{
			name: "no indentation at all", file: "def f():\n    a = 1\n    b = 2\n",
			old: "a  = 1\nb = 2\n", new: "if a:\n  b = 3\n", want: "def f():\n    if a:\n      b = 3\n",
			says: "changed the indentation of new_string to the file's",
		},
		{
			name: "flat old text of nested Python", file: "class A:\n    def f(self):\n        if x:\n            a()\n        b()\n",
			old: "def f(self):\nif x:\na()\nb()", new: "def f(self):\nif x:\naa()\nb()",
			want: "class A:\n    def f(self):\n        if x:\n            aa()\n        b()\n", says: "(lines 2–5). No exact match",
		},
		{
			name: "indentation with another step", file: "def f():\n    if x:\n        a()\n", old: "def f():\n  if  x:\n    a()", new: "def f():\n  if x:\n    for y in z:\n      a()",
			want: "def f():\n    if x:\n        for y in z:\n            a()\n", says: "changed the indentation",
		},
		{
			name: "spaces for tabs, deeper", file: "\tif x {\n\t\ta()\n\t}\n", old: "    if x {\n        a()\n    }", new: "    if x {\n        if y {\n            a()\n        }\n    }",
			want: "\tif x {\n\t\tif y {\n\t\t\ta()\n\t\t}\n\t}\n", says: "changed the indentation",
		},
		{
			name: "tabs for spaces, less deep", file: "    if x:\n        a()\n", old: "\t\tif x:\n\t\t\ta()", new: "\t\tif x:\n\t\t\tb()\n\tend",
			want: "    if x:\n        b()\nend\n", says: "changed the indentation",
		},
		{name: "each line keeps its ending", file: "a\r\nb\nc\r\nd\n", old: "a\nb\nc", new: "A\nb\nC\nnew", want: "A\r\nb\nC\r\nnew\r\nd\n", says: "(lines 1–3)."},
		{name: "endings of lines that are joined", file: "a\r\nb\r\nc\n", old: "a\n", new: "x", want: "xb\r\nc\n", says: "(line 1)."},
		{name: "all in a mixed file", file: "a\r\na\nb\na", old: "a", new: "x\ny", all: true, want: "x\r\ny\r\nx\ny\nb\nx\ny", says: "3 replacements"},
		{name: "lone CRs", file: "a\rb\rc\r", old: "b\nc", new: "x\ny", want: "a\rx\ry\r", says: "(lines 2–3)."},
		{
			name: "typographic punctuation", file: "say(“it’s – so…”)\u00a0;\nend\n", old: `say("it's - so...") ;`, new: "say()",
			want: "say()\nend\n", says: "quotes, dashes",
		},
		{name: "last line without line feed", file: "a\nb  c", old: "b c", new: "d", want: "a\nd", says: "white space"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			where := env.NewMemory("", map[string]string{"f": tt.file})
			result, got := run(t, tools.EditFile(), where, args{"file_path": "f", "old_string": tt.old, "new_string": tt.new, "replace_all": tt.all})
			if result.Code != "" || !strings.Contains(got, tt.says) {
				t.Errorf("%s %q, want one with %q", result.Code, got, tt.says)
			}
			if got := content(t, where, "f"); got != tt.want {
				t.Errorf("the file holds\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

func TestEditFileRefusals(t *testing.T) {
	lines := "package main\n\nfunc compute(a, b int) int {\n\treturn a + b\n}\n"
	tests := []struct {
		name string
		file string
		in   args
		code core.ErrorCode
		want []string
	}{
		{"same", lines, args{"old_string": "a", "new_string": "a"}, core.CodeValidation, []string{"are the same"}},
		{"same but for line endings", "a\nb\n", args{"old_string": "a\r\nb", "new_string": "a\nb"}, core.CodeValidation, []string{"line endings"}},
		{"empty", lines, args{"old_string": "", "new_string": "a"}, core.CodeValidation, []string{"write_file"}},
		{"not unique", "a\nb\na\n", args{"old_string": "a", "new_string": "x"}, core.CodeValidation, []string{"occurs 2 times (lines 1, 3)", "replace_all"}},
		{"overlapping", "aaa\n", args{"old_string": "aa", "new_string": "x"}, core.CodeValidation, []string{"occurs 2 times"}},
		{
			"many places", strings.Repeat("a\n", 12),
			args{"old_string": "a", "new_string": "x"},
			core.CodeValidation,
			[]string{"12 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)"},
		},
		{
			"tolerant match not unique", "a  b\nc\na   b\n",
			args{"old_string": "a b", "new_string": "x", "replace_all": true},
			core.CodeValidation,
			[]string{"2 places differ just in", "(lines 1, 3)"},
		},
		{
			"near lines", lines,
			args{"old_string": "func compute(a int, b int) int {", "new_string": "x"},
			core.CodeValidation,
			[]string{"was not found", "3 | func compute(a, b int) int {\n4 | \treturn a + b"},
		},
		{"nothing like it", lines, args{"old_string": "zzzzzzzzzz qqqqqq", "new_string": "x"}, core.CodeValidation, []string{"nor anything similar"}},
		{"line numbers", lines, args{"old_string": "3 | func compute(a, b int) int {", "new_string": "x"}, core.CodeValidation, []string{"leave out the numbers"}},
		{"blank lines match nothing loosely", "a\n \nb\n", args{"old_string": "\t\n\t\n", "new_string": "x"}, core.CodeValidation, []string{"not found"}},
		{
			"ambiguous indentation", "if x:\n    a()\nb()\n",
			args{"old_string": "if  x:\na()\nb()", "new_string": "if x:\na()\nc()\nb()"},
			core.CodeValidation,
			[]string{"would be a guess", "Lines 1 to 3"},
		},
		{"placeholder", lines, args{"old_string": "return a + b", "new_string": "c()\n\t// ... rest of the function unchanged"}, core.CodeValidation, []string{"stands for text that was left out"}},
		{"binary", "a\x00b", args{"old_string": "a", "new_string": "x"}, core.CodeIO, []string{"not a text file"}},
		{"too large", strings.Repeat("x", 10<<20+1), args{"old_string": "a", "new_string": "x"}, core.CodeIO, []string{"more than 10.0 MiB", "shell"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			where := env.NewMemory("", map[string]string{"f": tt.file})
			tt.in["file_path"] = "f"
			checkHas(t, tools.EditFile(), where, tt.in, tt.code, tt.want...)
			if got := content(t, where, "f"); got != tt.file {
				t.Error("the file was changed")
			}
		})
	}
	where := env.NewMemory("", map[string]string{"dir/": ""})
	checkHas(t, tools.EditFile(), where, args{"file_path": "dir", "old_string": "a", "new_string": "b"}, core.CodeIO, "is a directory")
	checkHas(t, tools.EditFile(), where, args{"file_path": "no", "old_string": "a", "new_string": "b"}, core.CodeNotFound, "write_file")
	checkHas(t, tools.EditFile(), where, args{"file_path": "context:1", "old_string": "a", "new_string": "b"}, core.CodeValidation, "stored output")
}

// TestEditFileOffside: where indentation has a meaning, what replaces an indented
// line is indented as a whole.
func TestEditFileOffside(t *testing.T) {
	for _, tt := range []struct{ name, new, want, says string }{
		{"flat", "if y:\n    a()", "def f():\n    if y:\n        a()\n", "further lines of new_string were indented"},
		{"indented already", "a()\n    b()", "def f():\n    a()\n    b()\n", "(line 2)."},
		{"a definition behind it", "a()\n\ndef g():\n    pass", "def f():\n    a()\n\ndef g():\n    pass\n", "(line 2)."},
	} {
		where := env.NewMemory("", map[string]string{"f.py": "def f():\n    a()\n"})
		_, text := run(t, tools.EditFile(), where, args{"file_path": "f.py", "old_string": "a()", "new_string": tt.new})
		if got := content(t, where, "f.py"); got != tt.want || !strings.HasSuffix(strings.TrimSuffix(text, " like the line that they follow."), tt.says) {
			t.Errorf("%s: %q, answered %q", tt.name, got, text)
		}
	}
}

// TestOmissions: a line that stands for text that was left out is refused by
// every tool that writes, and only such a line.
func TestOmissions(t *testing.T) {
	for line, refused := range map[string]bool{
		"// ... rest of the code unchanged ...": true, "# ... existing code ...": true, "… rest unchanged": true, "    // (rest of the methods ...)": true,
		"/* ... remaining methods ... */": true, "<!-- ... rest of the file ... -->": true, "# rest of the function remains unchanged": true, "// ...rest of file": true,
		"... (rest of the code remains the same)": true, "{/* ... existing code ... */}": true, "// ... keep existing code": true, "... unchanged ...": true,
		"The rest is history...": false, "f(...rest)": false, "const {a, ...rest} = b": false, "def f(*args): ...": false, "...": false, "// see the rest of the code": false,
		"// the state is unchanged": false, "fmt.Println(\"loading ...\")": false, "...existing,": false, "// wait for the other methods ...": false,
	} {
		for _, c := range []struct {
			tool core.Tool
			in   args
		}{
			{tools.EditFile(), args{"file_path": "f", "old_string": "a", "new_string": "b\n" + line}},
			{tools.WriteFile(), args{"file_path": "new", "content": "b\n" + line + "\n"}},
			{tools.ApplyPatch(), patchOf("*** Update File: f\n@@\n-a\n+c\n+" + line + "\n")},
		} {
			result, text := run(t, c.tool, env.NewMemory("/w", map[string]string{"f": "a\n"}), c.in)
			if (result.Code != "") != refused || refused && !strings.Contains(text, "left out") {
				t.Errorf("%s %q: (%s) %s", c.tool.Definition().Name, line, result.Code, text)
			}
		}
	}
}

func TestEditFileDiff(t *testing.T) {
	where := env.NewMemory("", map[string]string{"dir/f.txt": "a\nb\nc\n"})
	result, _ := run(t, tools.EditFile(), where, args{"file_path": "dir/f.txt", "old_string": "b", "new_string": "x"})
	var diff string
	if err := json.Unmarshal(result.Meta["diff"], &diff); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--- a/dir/f.txt\n+++ b/dir/f.txt\n", "\n a\n-b\n+x\n c\n"} {
		if !strings.Contains(diff, want) {
			t.Errorf("%q is not in the diff:\n%s", want, diff)
		}
	}
}

// FuzzEditFile: a refused edit changes nothing; an exact and unique one does
// what strings.Replace does; the byte order mark stays, and an LF file gets no
// CR.
func FuzzEditFile(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "x", false)
	f.Add("a  \r\nb\r\n", "a\nb", "x\n", false)
	f.Add("\uFEFF\ta\n", "  a", "b", true)
	f.Add("x\n\n\n", "\n\n", "\r\n", true)
	f.Add("“q”\n", `"q"`, "", false)
	f.Add("b", "b", "\xe3\xe6", false)
	f.Add("a\nb\x00\x7f\n", "b", "\xff", false)
	f.Add("a\nb\x00", "b", "\xff", false) // two letters as UTF-16
	f.Fuzz(func(t *testing.T, file, from, to string, all bool) {
		where := env.NewMemory("", map[string]string{"f": file})
		raw, err := json.Marshal(args{"file_path": "f", "old_string": from, "new_string": to, "replace_all": all})
		if err != nil {
			t.Fatal(err)
		}
		var in struct {
			Old string `json:"old_string"`
			New string `json:"new_string"`
		}
		if err := json.Unmarshal(raw, &in); err != nil { // as JSON has them: valid UTF-8
			t.Fatal(err)
		}
		result, err := tools.EditFile().Run(t.Context(), &core.Call{Args: raw, Env: where})
		if err != nil {
			t.Fatal(err)
		}
		got := content(t, where, "f")
		if result.Code != "" {
			if got != file {
				t.Fatalf("a refused edit (%s) wrote %q over %q", result.Code, got, file)
			}
			return
		}
		if strings.HasPrefix(file, "\uFEFF") && !strings.HasPrefix(got, "\uFEFF") {
			t.Errorf("the byte order mark of %q is missing in %q", file, got)
		}
		if !strings.Contains(file, "\r") && !strings.Contains(strings.ReplaceAll(in.New, "\r\n", "\n"), "\r") && strings.Contains(got, "\r") {
			t.Errorf("%q got a CR: %q", file, got)
		}
		// With a zero byte, a short text may as well be UTF-16; and what is not UTF-8 gets
		// new characters in its own encoding.
		plain := !strings.ContainsAny(file+in.Old+in.New, "\r\uFEFF\x00") && (utf8.ValidString(file) || ascii(in.Old+in.New))
		if plain && strings.Count(file, in.Old) == 1 && !all {
			if want := strings.Replace(file, in.Old, in.New, 1); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func BenchmarkEditFile(b *testing.B) {
	where := env.NewMemory("", map[string]string{"f": numberedLines(5000)})
	tool := tools.EditFile()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		from, to := "text of line 2500\n", "text of changed line\n"
		if i%2 == 1 {
			from, to = to, from
		}
		raw := fmt.Sprintf(`{"file_path":"f","old_string":%q,"new_string":%q}`, from, to)
		if result, err := tool.Run(b.Context(), &core.Call{Args: []byte(raw), Env: where}); err != nil || result.Code != "" {
			b.Fatal(result, err)
		}
	}
}
