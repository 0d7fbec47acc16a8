package sandbox

import (
	"testing"

	"github.com/seed-009c0928/agent/core/goldentest"
)

// TestSeatbeltProfile compares the profiles for macOS with golden files. Only on
// macOS can sandbox-exec check them.
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
		goldentest.Check(t, "testdata/"+name, []byte(got))
	}
}
