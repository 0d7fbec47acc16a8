package trust

import (
	"encoding/json"
	"maps"
	"os"
	"testing"
	"time"
)

// FuzzParse reads any file as the store: what is accepted keeps all it says when
// a directory is added, and nothing else is trusted.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"directories":{"/a":{"time":"2026-01-01T00:00:00Z","files":{".agent/settings.json":"00"}}},"servers":{"/a":{"s":"00"}}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"directories":null}`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		home, dir := t.TempDir(), t.TempDir()
		s := Open(home)
		before, err := s.parse(data)
		if err != nil {
			return
		}
		if err := os.WriteFile(s.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Trust(t.Context(), dir, time.Unix(1, 0)); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		after, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		delete(after.Directories, dir)
		delete(before.Directories, dir)
		if len(after.Directories) != len(before.Directories) || !maps.EqualFunc(after.Directories, before.Directories, func(a, b entry) bool { return a.Time.Equal(b.Time) && maps.Equal(a.Files, b.Files) }) {
			a, _ := json.Marshal(after)
			t.Errorf("%s became %s", data, a)
		}
	})
}
