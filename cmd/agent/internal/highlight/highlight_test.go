package highlight

import (
	"strings"
	"testing"
	"time"
)

// marked returns a text in which what is not Other has the letter of its kind.
func marked(lines [][]Span) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteString("⏎")
		}
		for _, s := range l {
			if s.Kind == Other {
				b.WriteString(s.Text)
				continue
			}
			b.WriteString(string("?cktfsna+-h"[s.Kind]) + "{" + s.Text + "}")
		}
	}
	return b.String()
}

func plain(lines [][]Span) string {
	var all []string
	for _, l := range lines {
		line := ""
		for _, s := range l {
			line += s.Text
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

func TestLines(t *testing.T) {
	t.Parallel()
	h := Highlighter{limit: time.Minute}
	for _, tt := range []struct{ language, code, want string }{
		{"go", "func F(a int) string { return \"a\" + `b\nc` + 1.5 } // d", "k{func} f{F}(a t{int}) t{string} { k{return} s{\"a\"} + s{`b}⏎s{c`} + n{1.5} } c{// d}"},
		{"Go", "/* a\n\nb */\nx\n", "c{/* a}⏎⏎c{b */}⏎x"},
		{"py", "def f(x):\n\t\"\"\"a\n\tb\"\"\"\n\treturn None # c", "k{def} f{f}(x):⏎\ts{\"\"\"a}⏎s{\tb\"\"\"}⏎\tk{return} k{None} c{# c}"},
		{"JS", "const a = () => 'b' // c", "k{const} a = () => s{'b'} c{// c}"},
		{"html", "<a href=\"b\">c</a><script>let d = 1</script>", "<a{a} a{href}=s{\"b\"}>c</a{a}><a{script}>k{let} d = n{1}</a{script}>"},
		{"json", `{"a": [1, true]}`, `{a{"a"}: [n{1}, k{true}]}`},
		{"yaml", "a: b # c", "a{a}: b c{# c}"},
		{"sh", "if true; then echo \"$a\"; fi", "k{if} true; k{then} f{echo} s{\"}a{$a}s{\"}; k{fi}"},
		{"diff", "-a\n+b\n", "-{-a}⏎+{+b}"},
		{"markdown", "# A\n\n**b** `c`\n", "h{# A}⏎⏎**b** s{`c`}"},
		{"no such language", "a", ""},
		{"", "a", ""},
		{"go", "", ""},
		{"go", strings.Repeat("x", maxLine+1), ""},
		{"go", strings.Repeat("x\n", maxBytes), ""},
	} {
		if got := marked(h.Lines(tt.language, tt.code)); got != tt.want {
			t.Errorf("%s %.60q:\n%s\nwant\n%s", tt.language, tt.code, got, tt.want)
		}
	}
}

func TestLanguageOfFile(t *testing.T) {
	t.Parallel()
	h := Highlighter{limit: time.Minute}
	for file, want := range map[string]string{
		"a/b.go": "go", "x.tsx": "typescript", "Dockerfile": "docker", "Makefile": "makefile", "a.unknown": "", "": "", "README.md": "markdown", "/a/.bashrc": "bash", "a.h": "c", "a.hpp": "c++",
	} {
		if got := h.Language(file); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
}

// sample is a bit of everything.
const sample = "#!/bin/sh\n<?php /* a */ ?><a b='c'>{{ .D }}</a>\n<script>var e = `f ${g} h`;</script>\n\"i \\\" j\" 'k' 1 0x2 3.4e5 // l\n\t(m: [n, {o = p}]) -> \"\"\"q\nr\"\"\"\n@s def t end é 日本 \x01\n"

func TestEveryLanguageIsUsable(t *testing.T) {
	t.Parallel()
	h := Highlighter{limit: time.Minute}
	for _, l := range h.index() {
		for _, used := range l.Uses {
			if h.find(used) == "" {
				t.Errorf("%s uses %s, which is not in the archive", l.File, used)
			}
		}
		if got := plain(h.Lines(l.File, sample)); got+"\n" != sample {
			t.Errorf("%s: %q", l.File, got)
		}
		for _, name := range l.Names {
			if !h.Known(name) {
				t.Errorf("%s: the name %q is unknown", l.File, name)
			}
		}
	}
}

// FuzzLines: what is highlighted is the code, nothing is added or lost.
func FuzzLines(f *testing.F) {
	for i := range 70 {
		f.Add(i, sample)
	}
	h := Highlighter{limit: time.Minute}
	known := h.index()
	f.Fuzz(func(t *testing.T, language int, code string) {
		l := known[max(0, language)%len(known)].File
		lines := h.Lines(l, code)
		if lines != nil && plain(lines) != strings.TrimSuffix(code, "\n") {
			t.Errorf("%s: %q became %q", l, code, plain(lines))
		}
	})
}

func BenchmarkLines(b *testing.B) {
	code := strings.Repeat("// F is a function\nfunc F(a int) string {\n\treturn \"a\" + fmt.Sprint(f(1.5), a, \"some text\")\n}\n\n", 5)
	for _, language := range []string{"go", "python"} {
		h := Highlighter{limit: time.Minute}
		b.Run(language, func(b *testing.B) {
			b.SetBytes(int64(len(code)))
			for b.Loop() {
				h.Lines(language, code)
			}
		})
		b.Run(language+"-first", func(b *testing.B) {
			for b.Loop() {
				h := Highlighter{limit: time.Minute}
				h.Lines(language, "x")
			}
		})
	}
}
