package graph

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	x, err := Open(os.Getenv("GDIR"), Options{Cache: os.Getenv("GCACHE")})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := x.Summary()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	fmt.Printf("%+v\nheap %d MB\n", s, m.HeapAlloc>>20)
	t0 := time.Now()
	x.Refresh(context.Background())
	fmt.Println("nothing changed:", time.Since(t0))
}

func TestImp(t *testing.T) {
	x, err := Open(os.Getenv("GDIR"), Options{Cache: os.Getenv("GCACHE")})
	if err != nil {
		t.Fatal(err)
	}
	x.Refresh(context.Background())
	for _, q := range []string{"core/loop.go#Session.loop", "core/tools/grep.go", "atomicfile.Write", "agent.New", "Sesion.Run"} {
		ns, err := x.Graph().Find(q)
		if err != nil {
			fmt.Println(err)
			continue
		}
		t0 := time.Now()
		var ids []string
		for _, n := range ns {
			ids = append(ids, n.ID)
		}
		r := x.Graph().Impact(ids...)
		fmt.Println(q, time.Since(t0), len(r.Changed), "files", len(r.Files), "fns", len(r.Functions), "tests", len(r.Tests), r.Edges, r.Complete)
		if len(r.Commands) > 0 {
			fmt.Println(clip(r.Commands[0].String(), 200))
		}
	}
	t0 := time.Now()
	for _, s := range x.Graph().Why("go:cmd/agent/main.go#main", "go:core/session.go#Session.Submit") {
		fmt.Println(s.From, "->", s.To, s.Rule, s.Line, s.Confidence)
	}
	fmt.Println(time.Since(t0), x.Graph().Cycles())
}
