package sandbox

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSeatbeltProfile compares the profiles for macOS with golden files. That
// sandbox-exec takes them can be seen on macOS only.
func TestSeatbeltProfile(t *testing.T) {
	l := &layout{
		writable: []string{"/Users/u/ws", "/Users/u/ws/.git/lfs"},
		pins:     []pin{{path: "/Users/u/ws/.git", dir: true}, {path: "/Users/u/ws/sub/.agent", dir: true}, {path: "/Users/u/ws/.envrc", missing: true}},
		holds:    []string{"/Users/u/ws/sub"},
		masked:   []mask{{"/Users/u/.ssh", true}, {`/Users/u/a "quoted\" name`, false}},
	}
	for name, p := range map[string]*Profile{
		"confined.sb": {},
		"network.sb":  {Network: Network{Full: true}},
		"serve.sb":    {Network: Network{Serve: true}},
		"hosts.sb":    {Network: Network{Hosts: []string{"example.org"}}},
	} {
		got := seatbeltProfile(p, l, "/private/var/folders/tmp")
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s", file, got)
		}
	}
}
