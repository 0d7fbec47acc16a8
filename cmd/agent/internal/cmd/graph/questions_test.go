package graph

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestQuestions asks about functions whose callers grep and the graph find; a comment
// and another function of the same name are no callers.
func TestQuestions(t *testing.T) {
	dir, x := indexed(t, `
-- a.py --
from b import find

def use():
    # find() is quick
    return find()
-- b.py --
def find():
    return 1
-- c.py --
from a import use

def main():
    use()
-- d.py --
class Other:
    def find(self): return self.find()
-- facts --
{"kind":"file","file":"a.py"}
{"kind":"file","file":"b.py"}
{"kind":"file","file":"c.py"}
{"kind":"file","file":"d.py"}
{"kind":"definition","file":"a.py","name":"use"}
{"kind":"definition","file":"b.py","name":"find"}
{"kind":"call","file":"a.py","name":"use","to":"b.py","toName":"find"}
{"kind":"call","file":"c.py","name":"main","to":"a.py","toName":"use"}
`)
	facts, err := readTruth(filepath.Join(dir, "facts"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAsking(x, facts)
	if err != nil {
		t.Fatal(err)
	}
	find := place{"b.py", "find"}
	if err := a.whoCalls(t.Context(), find, "who calls find()?"); err != nil {
		t.Fatal(err)
	}
	if err := a.whatBreaks(t.Context(), find, "what breaks if `find` in b.py changes?"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printWays(&out, a.results())
	const want = `who calls X, plain (1 question)
  grep             44 tokens,   1.0 calls, held 1.0000 of 1      right 0.6667 of 3
  graph_query      20 tokens,   1.0 calls, held 1.0000 of 1      right 1.0000 of 1
  context          10 tokens,   0.0 calls, held 1.0000 of 1      right 1.0000 of 1
what breaks if X changes, plain (1 question)
  grep             86 tokens,   3.0 calls, held 1.0000 of 2      right 1.0000 of 2
  grep once        21 tokens,   1.0 calls, held 0.5000 of 2      right 0.5000 of 2
  get_impact       29 tokens,   1.0 calls, held 1.0000 of 2      right 1.0000 of 2
  context          15 tokens,   0.0 calls, held 1.0000 of 2      right 1.0000 of 2
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	if _, err := ask(t.Context(), x, &truth{}, 2); err == nil || !strings.Contains(err.Error(), "knows no call") {
		t.Errorf("without facts: %v", err)
	}
}
