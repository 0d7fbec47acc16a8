package chat

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzHistory adds an entry to any file: it is the last one then, and no earlier
// one is lost.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("\"a\"\n\"b\\nc\"\n"), "next")
	f.Add([]byte("\"cut off"), "next")
	f.Add([]byte("\"whole, without a newline\""), "next")
	f.Add([]byte("7\n\xff\n\n\"\"\n\"a\"\n\"a\""), "a")
	f.Fuzz(func(t *testing.T, data []byte, entry string) {
		if entry == "" || !utf8.ValidString(entry) {
			return
		}
		h := history{filepath.Join(t.TempDir(), "history")}
		if err := os.WriteFile(h.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := slices.DeleteFunc(h.load(), func(e string) bool { return e == entry })
		if err := h.add(entry); err != nil {
			t.Fatal(err)
		}
		want := append(before, entry)
		if got := h.load(); !slices.Equal(got, want[max(0, len(want)-maxHistory):]) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
