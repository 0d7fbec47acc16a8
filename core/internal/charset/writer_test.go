package charset_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/internal/charset"
)

// through writes data in pieces of n bytes and returns what came out.
func through(t testing.TB, data []byte, n int) (string, charset.Encoding) {
	t.Helper()
	var out bytes.Buffer
	w := charset.NewWriter(&out)
	for len(data) > 0 {
		piece := data[:min(n, len(data))]
		if m, err := w.Write(piece); m != len(piece) || err != nil {
			t.Fatalf("wrote %d of %d: %v", m, len(piece), err)
		}
		data = data[len(piece):]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), w.Encoding()
}

func TestWriter(t *testing.T) {
	encode := func(name, text string) string {
		b, err := codec(t, name).NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, tt := range []struct {
		name, in, want, encoding string
		pieces                   []int
	}{
		{"UTF-8", french + nihongo, french + nihongo, "UTF-8", []int{1, 3, 1000}},
		{"UTF-8 without line", "Größe: ", "Größe: ", "UTF-8", []int{1, 100}},
		{"Latin", encode("windows-1252", french), french, "Windows-1252", []int{1, 7, 1000}},
		{"a word", "caf\xe9", "café", "Windows-1252", []int{1, 4}},
		{"UTF-8 and Latin", "é\n" + encode("windows-1252", french), "é\n" + french, "Windows-1252", []int{1, 100}},
		{"Japanese", encode("shift_jis", nihongo), nihongo, "Shift_JIS", []int{70, 1000}},
		{"UTF-16", encode("UTF-16LE", "\uFEFF"+french), french, "UTF-16LE", []int{100, 101, 1000}},
		{"UTF-16 without mark", encode("UTF-16LE", german), german, "UTF-16LE", []int{10, 11, 1000}},
		{"binary", "\x7fELF\x02\x00\xff\xfe\n", "\x7fELF\x02\x00\xff\xfe\n", "UTF-8", []int{100}},
		{"binary in pieces", "\x7fELF\x02\x00\x01\n", "\x7fELF\x02\x00\x01\n", "UTF-8", []int{1, 3}},
	} {
		for _, n := range tt.pieces {
			if got, e := through(t, []byte(tt.in), n); got != tt.want || e.String() != tt.encoding {
				t.Errorf("%s in pieces of %d: %s %q, want %s %q", tt.name, n, e, got, tt.encoding, tt.want)
			}
		}
	}
}

// A prompt without a line break appears at once.
func TestWriterPrompt(t *testing.T) {
	var out strings.Builder
	w := charset.NewWriter(&out)
	if _, err := w.Write([]byte("Continue? (ja/n) é")); err != nil || out.String() != "Continue? (ja/n) é" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte(french), 3)
	f.Add([]byte("caf\xe9\nx\xff"), 1)
	f.Add([]byte("\xff\xfea\x00"), 2)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		got, e := through(t, data, max(n, 1))
		if e.UTF8() && got != string(data) {
			t.Errorf("%q became %q", data, got)
		}
	})
}
