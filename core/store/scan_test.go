package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

func TestInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := store.Create(dir, "one", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !store.InUse(dir, "one") {
		t.Error("an open session is not in use")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"one": "", "killed": " 4194305999          \n", "damaged": "???"} {
		if content != "" {
			if err := os.WriteFile(filepath.Join(dir, name+".lock"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if store.InUse(dir, name) {
			t.Errorf("%s: in use", name)
		}
	}
	if store.InUse(dir, "../one") || store.InUse(dir, "none") {
		t.Error("a session that does not exist is in use")
	}
}

// TestScan checks that only wanted records are decoded, also those in another form.
func TestScan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lines := `{"v":1,"seq":1,"session":"one","type":"session_start","cwd":"/w"}
{"v":1,"seq":2,"session":"one","type":"message","content":17}
{"type":"idle","v":1,"seq":3,"session":"one","state":"idle","stop":"done"}
{"type":"user","v":1,"seq":4,"session":"one","content":[]}
{"v":1,"seq":5,"session":"one","type":"idle","state":"idle","stop":"error"}
{"v":1,"seq":6,"session":"one","type":"idle","state":7}
`
	if err := os.WriteFile(filepath.Join(dir, "one.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []event.Seq
	var last error
	for e, err := range store.Scan(t.Context(), dir, "one", func(kind string) bool { return kind == "idle" }) {
		if last = err; err == nil {
			got = append(got, e.Seq)
		}
	}
	corrupt := (*store.CorruptError)(nil)
	if !slices.Equal(got, []event.Seq{3, 5}) || !errors.As(last, &corrupt) || corrupt.Line != 6 {
		t.Errorf("got %v, %v", got, last)
	}
	for _, id := range []string{"none", "../one"} {
		for _, err := range store.Scan(t.Context(), dir, id, func(string) bool { return true }) {
			last = err
		}
		if !errors.Is(last, fs.ErrNotExist) && !errors.Is(last, fs.ErrInvalid) {
			t.Errorf("%s: %v", id, last)
		}
	}
}
