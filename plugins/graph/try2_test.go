package graph

import (
	"context"
	"fmt"
	"os"
	"testing"
)

func TestDump(t *testing.T) {
	x, err := Open(os.Getenv("GDIR"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, n := range x.Graph().Nodes() {
		fmt.Println("N", n.ID, n.Kind, n.Line, n.EndLine, "|", n.Signature, "|", n.Doc)
	}
	for _, e := range x.Graph().Edges() {
		if e.Kind != Contains {
			fmt.Println("E", e.From, "->", e.To, e.Kind, e.Confidence, e.Rule, e.Line)
		}
	}
	for _, w := range x.Graph().Warnings() {
		fmt.Println("W", w)
	}
}
