package output_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/output"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc", "a\tb\nc"},
		{"colours", "\x1b[1;31merror\x1b[0m: \x1b[38;5;196mx\x1b[m\x1b[K\n", "error: x\n"},
		{"true colour with colons", "\x1b[38:2::1:2:3mx\x1b[m", "x"},
		{"line endings", "a\r\nb\r\n", "a\nb\n"},
		{"link", "\x1b]8;;https://example.org\x1b\\text\x1b]8;;\x1b\\.\n", "text.\n"},
		{"title", "\x1b]0;title\aprompt$ ", "prompt$ "},
		{"clipboard and device strings", "a\x1bPq#0;1\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1b]52;c;aGk=\ae", "abcde"},
		{"C1 controls", "a\u009b31mb\u009d0;t\ac", "abc"},
		{"broken off", "a\x1b]0;never ended\nb", "a\nb"},
		{"escape at the end", "a\x1b", "a"},
		{"half a sequence at the end", "a\x1b[3", "a"},
		{"modes", "\x1b[?25lx\x1b[?25h\x1b(B\x1b=\n", "x\n"},
		{"progress", "  0%\r 50%\r100%\ndone\n", "100%\ndone\n"},
		{"shorter line", "downloading\rdone\x1b[K\n", "done\n"},
		{"overwritten as on a terminal", "abcdef\rXY\n", "XYcdef\n"},
		{"spinner", "|\b/\b-\b\\\bok\n", "ok\n"},
		{"progress without end", "10%\r20%\r30%", "30%"},
		{"carriage returns before a line feed", "a\r\r\nb", "a\nb"},
		{"overstrike", "N\bNA\bAM\bME\bE\n", "NAME\n"},
		{"cursor up", "layer 1: 10%\nlayer 2: 10%\n\x1b[2A\x1b[2Klayer 1: done\x1b[B\r\x1b[2Klayer 2: done\x1b[B\rend\n", "layer 1: done\nlayer 2: done\nend\n"},
		{"erase below", "a\nb\nc\n\x1b[2A\x1b[Jx\n", "a\nx\n"},
		{"clear", "before\n\x1b[H\x1b[2Jafter\n", "before\nafter\n"},
		{"screens", "\x1b[2J\x1b[Hone\ntwo\n\x1b[1;1Hsix\n", "six\ntwo\n"},
		{"alternate screen", "$ \x1b[?1049h\x1b[Hmenu\x1b[?1049l$ ", "$ \nmenu\n$ "},
		{"column", "abc\x1b[10Gx\x1b[2Gy\n", "ayc      x\n"},
		{"save and restore", "ab\x1b7cd\x1b8X\n", "abXd\n"},
		{"other characters", "größe\r日本\n", "日本öße\n"},
	} {
		if got := output.Plain(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		got, err := io.ReadAll(output.PlainReader(iotest.OneByteReader(strings.NewReader(tt.in))))
		if ascii := utf8.RuneCountInString(tt.in) == len(tt.in); ascii && (err != nil || string(got) != tt.want) {
			t.Errorf("%s, byte by byte: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

// Long output keeps all its lines, and what is huge stays bounded.
func TestPlainLong(t *testing.T) {
	lines := strings.Repeat("\x1b[32mok\x1b[0m  package\n", 10_000)
	if got, want := output.Plain(lines), strings.Repeat("ok  package\n", 10_000); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	progress := strings.Repeat("\rcompiling [====>   ]", 100_000) + "\rdone\x1b[K\n"
	if got := output.Plain(progress); got != "done\n" {
		t.Errorf("%.80q", got)
	}
	moves := strings.Repeat("\x1b[9999999B\x1b[9999999C", 10_000)
	if got := output.Plain(moves); len(got) > 1<<20 {
		t.Errorf("%d bytes", len(got))
	}
	hostile := strings.Repeat("\x1b[64;9999Hx\n", 50_000)
	if got := output.Plain(hostile); len(got) > 1000*50_000 {
		t.Errorf("%d bytes", len(got))
	}
	long := strings.Repeat("x", 1<<20)
	if got := output.Plain("\x1b[m" + long); got != long {
		t.Errorf("a long line: %d bytes", len(got))
	}
}

// The model gets plain text; the full output and live readers the bytes.
func TestSpoolKeepsEscapeSequences(t *testing.T) {
	const in = "\x1b[31mred\x1b[0m 10%\rdone   \x1b[K\n"
	var live strings.Builder
	s := output.NewSpool(output.Limit{}, nil, nil, func(t string) { live.WriteString(t) })
	for _, b := range []byte(in) {
		if _, err := s.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	kept, full, err := s.Finish("[exit code 0]")
	if err != nil || kept != "done   \n[exit code 0]" {
		t.Errorf("the model gets %q, %v", kept, err)
	}
	if live.String() != in || full == nil || full.Text != in+"[exit code 0]" || full.Bytes != int64(len(full.Text)) {
		t.Errorf("live %q, full %+v", live.String(), full)
	}
	file := &memFile{}
	s = output.NewSpool(output.Limit{}, nil, func() (output.File, error) { return file, nil }, func(string) {})
	progress := strings.Repeat("\r\x1b[2K10%", 10_000)
	if _, err := s.Write([]byte(progress)); err != nil {
		t.Fatal(err)
	}
	kept, full, err = s.Finish("")
	if err != nil || kept != "10%" || full.Path != file.Path() || file.data.String() != progress {
		t.Errorf("kept %q, full %+v, %d bytes in the file, %v", kept, full, file.data.Len(), err)
	}
	// What a tool returns is not output of a command.
	s = output.NewSpool(output.Limit{}, nil, nil, func(string) {})
	if kept, full, _ = s.Finish("\x1b[31m"); kept != "\x1b[31m" || full != nil {
		t.Errorf("returned text became %q, %+v", kept, full)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\x1b[2A\x1b[J")
	f.Add("a\b\b\x1b[5;5Hx\x1b[@\x1b[P\x1b[X\x1b[1J\x1b[1K\x1bM\x1bc\x1b[?1049h")
	f.Add("\u009b1\x1b]x\x1b\\\x1bP\n")
	f.Add("\x1bP00C0\x00\x04\U0009cb54") // a byte of it ends the sequence
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\uFFFD")
		got := output.Plain(text)
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("%q became %q", text, got)
		}
		if again := output.Plain(got); again != got {
			t.Errorf("%q became %q, then %q", text, got, again)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%q became invalid UTF-8", text)
		}
	})
}

func BenchmarkSpoolColoured(b *testing.B) {
	line := []byte(strings.Repeat("\x1b[32mok\x1b[0m  \tgithub.com/example/module/package\t0.012s\n", 1000))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		s := output.NewSpool(output.Limit{}, nil, nil, func(string) {})
		if _, err := s.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}
