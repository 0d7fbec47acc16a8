package skills_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/seed-009c0928/agent/skills"
)

var update = flag.Bool("update", false, "update the golden parts of testdata")

// TestOddFiles parses the files of testdata/odd. The comment of each describes
// the case, "in" contains the SKILL.md ("in.quoted" as Go strings, with * for
// repetition), and "want" the expected outcome.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/odd/*.txtar")
	if err != nil || len(names) < 60 {
		t.Fatalf("%d odd files, want at least 60 (error %v)", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			in, want := oddCase(t, a)
			m, diagnostics := skills.Parse("SKILL.md", in)
			got := outcome(m, diagnostics)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s\nIf the change is intended: go test ./skills -run '^TestOddFiles$' -update", bytes.TrimSpace(a.Comment), got, want)
			}
		})
	}
}

func oddCase(t *testing.T, a *txtar.Archive) (in []byte, want string) {
	t.Helper()
	for _, f := range a.Files {
		switch f.Name {
		case "in":
			in = f.Data
		case "in.quoted":
			in = unquote(t, string(f.Data))
		case "want":
			want = string(f.Data)
		}
	}
	return in, want
}

// unquote reads lines of Go strings, optionally followed by * and a number.
func unquote(t *testing.T, text string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		n := 1
		end := strings.LastIndexByte(line, '"') + 1
		if rest := strings.TrimSpace(line[end:]); rest != "" {
			var err error
			if n, err = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(rest, "*"))); err != nil {
				t.Fatal(err)
			}
		}
		s, err := strconv.Unquote(line[:end])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, strings.Repeat(s, n)...)
	}
	return out
}

// outcome formats the result of parsing a file.
func outcome(m *skills.Manifest, diagnostics []skills.Diagnostic) string {
	var b strings.Builder
	if m == nil {
		b.WriteString("skipped\n")
	} else {
		b.WriteString("loaded\n")
		body := m.Body
		if len(body) > 200 {
			body = fmt.Sprintf("%d bytes", len(body))
		}
		short := func(s string) string {
			if utf8.RuneCountInString(s) > 200 {
				return fmt.Sprintf("%d characters", utf8.RuneCountInString(s))
			}
			return s
		}
		show := func(name string, v any) {
			data, _ := json.Marshal(v)
			if s := string(data); s != `""` && s != "null" && s != "{}" && s != "false" {
				fmt.Fprintf(&b, "%s: %s\n", name, short(s))
			}
		}
		show("name", m.Name)
		show("description", short(m.Description))
		if m.Brief != m.Description {
			show("brief", m.Brief)
		}
		show("when", m.WhenToUse)
		show("version", m.Version)
		show("license", m.License)
		show("hint", m.ArgumentHint)
		show("triggers", m.Triggers)
		show("toolsets", m.Toolsets)
		show("scripts", m.Scripts)
		show("allowed", m.AllowedTools)
		show("paths", m.Paths)
		show("metadata", m.Metadata)
		show("disabled", m.Disabled)
		show("no model", m.NoModel)
		show("no user", m.NoUser)
		show("body", body)
		fmt.Fprintf(&b, "body line: %d\n", m.BodyLine)
	}
	for _, d := range diagnostics {
		b.WriteString(d.Error() + "\n")
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/odd/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if a.Files[0].Name == "in" {
			f.Add(a.Files[0].Data)
		}
	}
	f.Add([]byte("\xef\xbb\xbf---\r\ndescription: \"x\r\n---\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, diagnostics := skills.Parse("SKILL.md", data)
		lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
		for _, d := range diagnostics {
			if d.Line < 1 || d.Line > lines+1 || d.Column < 1 || d.Message == "" {
				t.Errorf("diagnostic %+v has an invalid position: the file has %d lines", d, lines)
			}
		}
		if (m == nil) != (skills.Worst(diagnostics) == skills.Error) {
			t.Fatalf("manifest %v with diagnostics %v", m, diagnostics)
		}
		if m == nil {
			return
		}
		if m.Description == "" || utf8.RuneCountInString(m.Description) > 1024 || skills.CleanName(m.Name) != m.Name {
			t.Errorf("name %q, description %q", m.Name, m.Description)
		}
		for _, s := range []string{m.Name, m.Description, m.Brief, m.Body} {
			if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\u202e") {
				t.Errorf("%q is not clean text", s)
			}
		}
	})
}

// TestHooks: hooks are kept as JSON, and a skill that may have a guard which cannot be
// read is refused.
func TestHooks(t *testing.T) {
	head := "---\nname: x\ndescription: does x\n"
	m, diagnostics := skills.Parse("SKILL.md", []byte(head+"hooks:\n  PreToolUse:\n    - &guard\n      matcher: Bash\n      hooks: [{type: command, command: ./check.sh, timeout: 5, once: true}]\n  PostToolUse: [*guard]\n---\nDo x.\n"))
	if len(diagnostics) != 0 || m.Hooks != `{"PostToolUse":[{"hooks":[{"command":"./check.sh","once":true,"timeout":5,"type":"command"}],"matcher":"Bash"}],"PreToolUse":[{"hooks":[{"command":"./check.sh","once":true,"timeout":5,"type":"command"}],"matcher":"Bash"}]}` {
		t.Errorf("hooks = %s, %v", m.Hooks, diagnostics)
	}
	if lines := m.HookLines(); len(lines) != 2 || lines[1] != "PreToolUse Bash: ./check.sh" {
		t.Errorf("lines = %q", lines)
	}
	for _, hooks := range []string{"[PreToolUse]", "{PreToolUse: {hooks: []}}", "{PreToolUse: [{hooks: [./check.sh]}]}", "{PreToolUse: [{matcher: [a], hooks: []}]}", "all"} {
		if m, diagnostics := skills.Parse("SKILL.md", []byte(head+"hooks: "+hooks+"\n---\nDo x.\n")); m != nil || skills.Worst(diagnostics) != skills.Error {
			t.Errorf("hooks: %s: %v, %v", hooks, m, diagnostics)
		}
	}
}
