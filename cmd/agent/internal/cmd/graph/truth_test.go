package graph

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/seed-009c0928/agent/plugins/graph"
)

// TestTruth compares a small workspace with facts of which some differ.
func TestTruth(t *testing.T) {
	dir, x := indexed(t, `
-- a.py --
from b import f, K

def g(x):
    f()
    K()
    x.odd()
-- b.py --
def f(): pass

class K:
    def __init__(self): pass
    def odd(self): pass
-- facts --
{"kind":"file","file":"a.py"}
{"kind":"file","file":"b.py"}
{"kind":"definition","file":"a.py","name":"g"}
{"kind":"definition","file":"b.py","name":"K"}
{"kind":"definition","file":"b.py","name":"K.__init__"}
{"kind":"definition","file":"b.py","name":"K.odd"}
{"kind":"definition","file":"b.py","name":"missing"}
{"kind":"import","file":"a.py","to":"b.py"}
{"kind":"caller","file":"a.py","name":"g","unknown":["odd"]}
{"kind":"call","file":"a.py","name":"g","to":"b.py","toName":"K"}
{"kind":"call","file":"a.py","name":"g","to":"b.py","toName":"missing","how":"method"}
`)
	facts, err := readTruth(filepath.Join(dir, "facts"))
	if err != nil {
		t.Fatal(err)
	}
	c := compare(x.Graph(), facts)
	got, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"definitions":{"right":4,"wrong":1},"definitionsFound":{"found":4,"missed":1},"imports":{"right":1,"wrong":0},"importsFound":{"found":1,"missed":0},` +
		`"calls":{"high":{"right":1,"wrong":1},"low":{"right":0,"wrong":0,"undecided":1}},"callsFound":{"method":{"found":0,"missed":1},"static":{"found":1,"missed":0}},` +
		`"rules":{"high constructor":{"right":1,"wrong":0},"high import":{"right":0,"wrong":1},"low only method of this name":{"right":0,"wrong":0,"undecided":1}},` +
		`"wrong":["definition b.py#f","high (import) a.py#g -\u003e b.py#f line 4"],"missed":["definition b.py#missing","method a.py#g -\u003e b.py#missing"]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTruthErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "facts")
	for text, want := range map[string]string{"{}\n": `:1: kind "": expected file`, "{\"kind\":\"file\"}\nx\n": ":2: expected a JSON object"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTruth(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// indexed writes the files of a txtar archive to a directory, and indexes them.
func indexed(t *testing.T, archive string) (dir string, x *graph.Index) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x, err := graph.Open(dir, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir, x
}
