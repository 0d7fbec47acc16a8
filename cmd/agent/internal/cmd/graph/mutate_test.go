package graph

import (
	"bytes"
	"strings"
	"testing"
)

// TestMutate breaks the functions of a small module: a test calls one of them
// through a linkname that the graph does not see.
func TestMutate(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	dir, x := indexed(t, `
-- go.mod --
module example.com/m

go 1.26
-- a.go --
package m

func One() int { return 1 }

func Two() (int, error) { return 2 * One(), nil }

func unused() string { return "x" }

func hidden() int { return 3 }
-- a_test.go --
package m

import (
	"testing"
	_ "unsafe"
)

//go:linkname secret example.com/m.hidden
func secret() int

func TestOne(t *testing.T) {
	if One() != 1 {
		panic("one")
	}
}

func TestTwo(t *testing.T) {
	if n, err := Two(); n != 2 || err != nil {
		t.Fatal(n)
	}
}

func TestHidden(t *testing.T) {
	if secret() != 3 {
		t.Fatal()
	}
}
-- a.s --
`)
	m := &mutator{dir: dir, dirs: map[string]string{}}
	got, err := m.run(t.Context(), x.Graph(), 10)
	if err != nil {
		t.Fatal(err)
	}
	// One breaks TestOne, by a panic, and TestTwo; Two breaks TestTwo; hidden breaks
	// TestHidden, which nothing in the graph connects with it.
	if got.Tests != 3 || got.Mutants != 4 || got.Killed != 3 || got.Failed != 4 || got.Selected != 3 ||
		strings.Join(got.Missed, " ") != "a.go#hidden: ./TestHidden" {
		t.Errorf("%+v", got)
	}
}

func TestBreakFunction(t *testing.T) {
	src := []byte("package p\n\nfunc f(x int) (a int, err error) { return }\nfunc g() ([]int, error) { return nil, nil }\nfunc h() {}\n")
	for line, want := range map[int]string{3: "{ if true { return  };", 4: "{ if true { return *new([]int), *new(error) };"} {
		got, err := breakFunction(src, line)
		if err != nil || !bytes.Contains(got, []byte(want)) {
			t.Errorf("line %d: %v\n%s", line, err, got)
		}
	}
	if _, err := breakFunction(src, 5); err == nil {
		t.Error("a function without statements was broken")
	}
}
