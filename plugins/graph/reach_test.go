package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/plugins/graph"
)

const shapeSource = `
-- go.mod --
module example.com/m
-- shape/shape.go --
package shape

type Shape interface{ Area() int }

type Square struct{}

func (Square) Area() int { return square() }

func square() int { return 4 }

type Disc struct{ base }

type base struct{}

func (base) Area() int { return disc() }

func disc() int { return 3 }

type Line struct{}

func (Line) Area() int { return line() }

func line() int { return 0 }

type Dot struct{}

func (Dot) Area() int { return dot() }

func dot() int { return 0 }

var unused Shape = Dot{}

func Total(list ...Shape) (n int) {
	for _, s := range list {
		n += s.Area()
	}
	return n
}

var Known []Shape

func Register(s Shape) bool { Known = append(Known, s); return true }
-- lines/lines.go --
package lines

import "example.com/m/shape"

var _ = shape.Register(shape.Line{})
-- all/all.go --
package all

import (
	_ "example.com/m/lines"
	"example.com/m/shape"
)

func Total() int { return shape.Total(shape.Known...) }
-- all/all_test.go --
package all

import "testing"

func TestAll(t *testing.T) { Total() }
-- shape/shape_test.go --
package shape

import "testing"

var sample = []Shape{Square{}}

func TestSquare(t *testing.T) { Total(sample...) }

func TestDisc(t *testing.T) { Total(newDisc()) }

func newDisc() Shape { return new(Disc) }

func TestNone(t *testing.T) { Total() }
`

// TestTypesOfTests checks that a test that calls an interface is selected for the types
// that it can have a value of, and for no others.
func TestTypesOfTests(t *testing.T) {
	g := open(t, write(t, shapeSource), graph.Options{}).Graph()
	for name, want := range map[string]string{"square": "TestSquare", "disc": "TestDisc", "line": "TestAll", "dot": "", "Total": "TestAll TestDisc TestNone TestSquare"} {
		var got []string
		for _, test := range g.Impact("go:shape/shape.go#" + name).Tests {
			got = append(got, test.Name())
		}
		slices.Sort(got)
		if tests := strings.Join(got, " "); tests != want {
			t.Errorf("tests of %s: %q, want %q", name, tests, want)
		}
	}
	if r := g.Impact("go:shape/shape.go#dot"); len(r.Functions) == 0 {
		t.Error("functions that may call dot are not listed")
	}
}
