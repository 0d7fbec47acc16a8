package graph_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/plugins/graph"
)

// TestWatch checks that a watched graph is right at once after each change, and that
// the watcher sees changes without being asked.
func TestWatch(t *testing.T) {
	dir, cache := write(t, goSource, "-- p/x.py --\ndef f(): pass\n-- .gitignore --\ngen/\n"), t.TempDir()
	x := open(t, dir, graph.Options{Cache: cache})
	ctx, cancel := context.WithCancel(t.Context())
	seen, done := make(chan string, 1000), make(chan error, 1)
	go func() {
		done <- x.Watch(ctx, func(paths []string) { seen <- strings.Join(paths, " ") })
	}()
	put(t, dir, "first.py", "def first(): pass\n")
	expect(t, seen, "first.py")
	file := func(name, text string) func() { return func() { put(t, dir, name, text) } }
	remove := func(name string) func() {
		return func() {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, change := range []func(){
		file("a/a.go", "package a\n\nfunc Do() int { return 2 }\n"),
		file("a/a.go", "package a\n\n// More of it.\nfunc Do() int { return help() }\n\nfunc help() int { return 1 }\n"),
		file("b/b_test.go", "package b\n\nimport \"testing\"\n\nfunc TestUse(t *testing.T) { _ = Use }\n"),
		file("new/deep/c.go", "package deep\n\nimport \"example.com/m/a\"\n\nvar X = a.Do()\n"),
		file("new/deep/d.go", "package deep\n\nfunc d() { _ = X }\n"),
		file("new/deep/.hidden.go", "package deep\n"),
		file("gen/g.py", "def g(): pass\n"),
		file(".gitignore", "p/\n"),
		file("p/y.py", "def y(): pass\n"),
		file(".gitignore", ""),
		file("go.mod", "module example.com/other\n"),
		file("go.mod", "module example.com/m\n"),
		remove("a/a.go"), remove("new"), remove("p"),
		file("p/x.py", "def f(): pass\n"),
		func() { // as editors save
			put(t, dir, "p/x.py~", "def g(): pass\n")
			if err := os.Rename(filepath.Join(dir, "p/x.py~"), filepath.Join(dir, "p/x.py")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		change()
		if err := x.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := listing(open(t, dir, graph.Options{}).Graph())
		if got := listing(x.Graph()); got != want {
			t.Fatalf("change %d:\n%s", i, diff(want, got))
		}
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// expect waits until a watcher tells of a file.
func expect(t *testing.T, seen <-chan string, name string) {
	t.Helper()
	end := time.After(time.Minute)
	for {
		select {
		case paths := <-seen:
			if strings.Contains(paths, name) {
				return
			}
		case <-end:
			t.Fatalf("no news of %s", name)
		}
	}
}

const bodiesSource = `
-- go.mod --
module example.com/m
-- a/a.go --
package a

import "example.com/m/b"

type Number interface{ ~int | ~float64 }

type List[T Number, _ any] struct {
	items []T
	next  *List[T, string]
}

func (l *List[T, _]) Sum() (s T) {
	for _, i := range l.items {
		s += i
	}
	return add(s, l.rest())
}

func (l *List[T, X]) rest() T { var zero X; _ = zero; return l.next.Sum() }

func (List[_, _]) String() string { return b.New(1).Name }

func add[T Number](a, b T) T { return a + b }

const (
	first = iota + size
	second
)

const size = 2

var list, other = pair()

var Shown = list.String()

func pair() (*List[int, bool], error) { return nil, nil }

func init() { _ = second }

func init() { other = nil }

type hidden struct {
	*b.Thing
	err error
}

func (h hidden) private(int, string) error { return h.err }

func (hidden) twice() error { return (hidden).private(hidden{}, first, Shown) }

func use() string { var h hidden; h.Rename(h.Name); return hidden{err: h.twice()}.Name }
-- a/a_test.go --
package a

import "testing"

type fake struct{ hidden }

func (f *fake) check() { f.private(0, use()) }

func TestIn(t *testing.T) { (&fake{}).check() }
-- a/out_test.go --
package a_test

import (
	"testing"

	. "example.com/m/a"
)

type Own List[int, bool]

func (o Own) do(t *testing.T) { t.Log(Shown) }

func TestOut(t *testing.T) { Own{}.do(t) }
-- b/b.go --
package b

type Thing struct{ Name string }

func New(int) *Thing { return nil }

func (t *Thing) Rename(name string) { t.Name = name }
`

// TestBodies checks that a Go file whose functions changed, and nothing else, gives the
// same edges as when its whole package is read.
func TestBodies(t *testing.T) {
	dir := write(t, bodiesSource)
	x := open(t, dir, graph.Options{})
	for range 2 { // the first time, packages of tests are read
		for _, name := range []string{"a/a.go", "a/a_test.go", "a/out_test.go", "b/b.go"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, name, strings.ReplaceAll(string(data), "return ", "_ = 1\n\treturn ")+"\n")
			if err := x.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := listing(open(t, dir, graph.Options{}).Graph())
			if got := listing(x.Graph()); got != want {
				t.Fatalf("%s:\n%s", name, diff(want, got))
			}
		}
	}
}
