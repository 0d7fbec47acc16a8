package output_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/output"
)

func TestTruncateKeepsShortText(t *testing.T) {
	for _, text := range []string{"", "one line", strings.Repeat("é", 30_000)} {
		if got, cut := output.Truncate(text, output.Limit{}); cut || got != text {
			t.Errorf("Truncate(%.20q…) = %.20q…, cut %t; want it unchanged", text, got, cut)
		}
	}
}

func TestTruncateModes(t *testing.T) {
	text := strings.Repeat("a", 60) + strings.Repeat("é", 60)
	tests := []struct {
		name  string
		limit output.Limit
		want  string
	}{
		{"head and tail", output.Limit{MaxChars: 20}, strings.Repeat("a", 10) +
			"\n\n[WARNING: Tool output was truncated. 100 characters were removed from the middle. The full output is available in the event stream. " +
			"If you need to see specific parts, re-run the tool with more targeted parameters.]\n\n" + strings.Repeat("é", 10)},
		{
			"tail",
			output.Limit{MaxChars: 20, Mode: output.Tail},
			"[WARNING: Tool output was truncated. First 100 characters were removed. The full output is available in the event stream.]\n\n" + strings.Repeat("é", 20),
		},
		{"head", output.Limit{MaxChars: 20, Mode: output.Head}, strings.Repeat("a", 20) +
			"\n\n[WARNING: Tool output was truncated. Last 100 characters were removed. The full output is available in the event stream.]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, cut := output.Truncate(text, tt.limit)
			if !cut || got != tt.want {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestTruncateLinesAfterCharacters(t *testing.T) {
	lines := strings.TrimSuffix(strings.Repeat("x\n", 10), "\n")
	for _, tt := range []struct {
		limit output.Limit
		want  string
	}{
		{output.Limit{MaxLines: 4}, "x\nx\n[... 6 lines omitted ...]\nx\nx"},
		{output.Limit{MaxLines: 4, Mode: output.Head}, "x\nx\nx\nx\n[... 6 lines omitted ...]\n"},
		{output.Limit{MaxLines: 10}, lines},
	} {
		if got, _ := output.Truncate(lines, tt.limit); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.limit, got, tt.want)
		}
	}
	// Two very long lines: the character limit applies.
	long := strings.Repeat("y", 1<<20) + "\n" + strings.Repeat("z", 1<<20)
	got, cut := output.Truncate(long, output.Limit{MaxChars: 100, MaxLines: 256})
	if !cut || utf8.RuneCountInString(got) > 400 {
		t.Errorf("two lines of 1 MiB: %d characters are left, cut %t", len(got), cut)
	}
}

// memFile is an output.File in memory.
type memFile struct {
	data   bytes.Buffer
	closed bool
	err    error
}

func (f *memFile) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.data.Write(p)
}
func (f *memFile) Close() error   { f.closed = true; return nil }
func (f *memFile) Handle() string { return "context:s/1" }
func (f *memFile) Path() string   { return "/store/1" }

func TestSpoolLongOutputGoesToFile(t *testing.T) {
	file := &memFile{}
	var live strings.Builder
	s := output.NewSpool(output.Limit{MaxChars: 1000}, nil, func() (output.File, error) { return file, nil }, func(text string) { live.WriteString(text) })
	want := strings.Repeat("0123456789", 300_000)
	for i := 0; i < len(want); i += 30_000 {
		if _, err := s.Write([]byte(want[i : i+30_000])); err != nil {
			t.Fatal(err)
		}
	}
	kept, full, err := s.Finish("[exit code 0]")
	if err != nil {
		t.Fatal(err)
	}
	want += "\n[exit code 0]"
	if file.data.String() != want {
		t.Errorf("the file holds %d bytes, want %d", file.data.Len(), len(want))
	}
	if !file.closed || full == nil || full.Path != file.Path() || full.Bytes != int64(file.data.Len()) || full.Text != "" {
		t.Errorf("full output %+v, file closed %t", full, file.closed)
	}
	if live.Len() != 3_000_000 {
		t.Errorf("%d bytes came live, want all 3,000,000 that were written", live.Len())
	}
	if !strings.Contains(kept, "characters were removed from the middle") || !strings.Contains(kept, "context:s/1") || !strings.Contains(kept, "[exit code 0]") {
		t.Errorf("kept text lacks marker, handle or end: %q", kept[len(kept)-400:])
	}
}

func TestSpoolWithoutFile(t *testing.T) {
	full := errors.New("disk full")
	for name, open := range map[string]func() (output.File, error){
		"no store":    nil,
		"open fails":  func() (output.File, error) { return nil, full },
		"write fails": func() (output.File, error) { return &memFile{err: full}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := output.NewSpool(output.Limit{MaxChars: 100}, nil, open, func(string) {})
			if _, err := s.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				t.Fatalf("a tool's output must not fail without a file: %v", err)
			}
			kept, out, err := s.Finish("")
			if (open != nil) != errors.Is(err, full) {
				t.Errorf("error %v", err)
			}
			if out == nil || out.Bytes != 1<<20 || out.Path != "" || !strings.Contains(kept, "characters were removed") {
				t.Errorf("full %+v, kept %.80q", out, kept)
			}
		})
	}
}

func TestSpoolClosesAfterFinish(t *testing.T) {
	s := output.NewSpool(output.Limit{}, nil, nil, func(string) {})
	if kept, full, err := s.Finish("done"); kept != "done" || full != nil || err != nil {
		t.Fatalf("Finish = %q, %v, %v", kept, full, err)
	}
	if _, err := s.Write([]byte("late")); err == nil {
		t.Error("a write after Finish succeeded")
	}
}

func TestSpoolHidesSecretsAcrossWrites(t *testing.T) {
	const secret = "sk-abcabcabd"
	text := "key=" + secret + "; again " + secret + secret + " sk-abc."
	for cut := 1; cut < 9; cut++ {
		var live strings.Builder
		s := output.NewSpool(output.Limit{}, []string{secret}, nil, func(t string) { live.WriteString(t) })
		for rest := text; rest != ""; {
			n := min(cut, len(rest))
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		kept, _, _ := s.Finish("")
		if want := strings.ReplaceAll(text, secret, "[redacted]"); kept != want || live.String() != want {
			t.Errorf("in pieces of %d: model got %q, reader %q, want %q", cut, kept, live.String(), want)
		}
	}
}

func TestSpoolMakesValidUTF8(t *testing.T) {
	in := []byte("a\xffb€\xe2\x82")
	var live strings.Builder
	s := output.NewSpool(output.Limit{}, nil, nil, func(t string) { live.WriteString(t) })
	for _, b := range in {
		if _, err := s.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	kept, _, _ := s.Finish("")
	if want := "a\uFFFDb€\uFFFD"; kept != want || live.String() != want {
		t.Errorf("model got %q, reader %q, want %q", kept, live.String(), want)
	}
}

// FuzzSpool compares the spool, which gets the text in pieces and drops its
// middle, with Truncate.
func FuzzSpool(f *testing.F) {
	f.Add("héllo\nworld", uint16(3), uint8(0), uint16(40), uint64(1))
	f.Add("10%\r20%\x1b[K\r\n\x1b[31mred\x1b[0m\x1b[1A", uint16(100), uint8(0), uint16(3), uint64(3))
	f.Add("\xff\xfe", uint16(1), uint8(1), uint16(60000), uint64(2))
	f.Fuzz(func(t *testing.T, text string, maxChars uint16, mode uint8, times uint16, seed uint64) {
		whole := strings.Repeat(text, int(times))
		if len(whole) > 4<<20 {
			return
		}
		limit := output.Limit{MaxChars: int(maxChars)%2000 + 1, Mode: output.Mode(mode % 3)}
		rng := rand.New(rand.NewPCG(seed, seed))
		s := output.NewSpool(limit, nil, nil, func(string) {})
		for rest := []byte(whole); len(rest) > 0; {
			n := min(rng.IntN(70_000)+1, len(rest))
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		kept, _, err := s.Finish("")
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(kept) {
			t.Fatalf("kept text is not valid UTF-8: %q", kept)
		}
		if !utf8.ValidString(whole) {
			return // pieces of an invalid sequence may be marked one by one
		}
		if len(whole) > 8<<10 && output.Plain(whole) != whole {
			return // what is overwritten depends on what was passed on by then
		}
		if want, _ := output.Truncate(output.Plain(whole), limit); kept != want {
			t.Fatalf("spool kept %d bytes, Truncate %d:\n%.200q\n%.200q", len(kept), len(want), kept, want)
		}
	})
}

func BenchmarkSpool10MBOneLine(b *testing.B) {
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 2048)
	b.ReportAllocs()
	b.SetBytes(10 << 20)
	for b.Loop() {
		s := output.NewSpool(output.Limit{}, []string{"sk-0123456789abcdeg"}, func() (output.File, error) { return &memFile{}, nil }, func(string) {})
		for range (10 << 20) / len(chunk) {
			_, _ = s.Write(chunk)
		}
		if _, _, err := s.Finish(""); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleTruncate() {
	text, cut := output.Truncate("1\n2\n3\n4\n5\n6", output.Limit{MaxLines: 2})
	fmt.Println(cut)
	fmt.Println(text)
	// Output:
	// true
	// 1
	// [... 4 lines omitted ...]
	// 6
}

// TestSpoolInMemory: a full output up to a limit stays readable, and the marker
// is true beyond it.
func TestSpoolInMemory(t *testing.T) {
	for _, size := range []int{1 << 20, 1<<20 + 1, 5 << 20} {
		s := output.NewSpool(output.Limit{MaxChars: 1000}, nil, nil, func(string) {})
		kept, full, err := s.Finish(strings.Repeat("x", size))
		if err != nil || full == nil || full.Bytes != int64(size) {
			t.Fatalf("%d bytes: %+v, %v", size, full, err)
		}
		readable := size <= 1<<20
		if (len(full.Text) == size) != readable || !readable && full.Text != "" {
			t.Errorf("%d bytes: the event has %d", size, len(full.Text))
		}
		if strings.Contains(kept, "is available in the event stream") != readable || strings.Contains(kept, "too long to be kept") == readable {
			t.Errorf("%d bytes: the model gets %q", size, kept)
		}
	}
}
