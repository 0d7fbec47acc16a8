package bundle_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/seed-009c0928/agent/core/bundle"
)

// BenchmarkList lists a bundle of 1,200 files: as the first one of a process
// does, and again.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	store := bundle.Open(dir, bundle.Options{})
	stage, err := store.Stage(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer stage.Close()
	for i := range 1200 {
		writeFile(b, filepath.Join(stage.Dir(), "node_modules", fmt.Sprintf("package-%d", i%40), fmt.Sprintf("file-%d.js", i)), []byte("1"))
	}
	tree, err := stage.Tree(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := stage.Install(b.Context(), bundle.Install{Name: "x", Tree: tree.Hash, Source: bundle.Source{Kind: "k", Location: "l"}}); err != nil {
		b.Fatal(err)
	}
	list := func(b *testing.B, open func() *bundle.Store) {
		b.ReportAllocs()
		for b.Loop() {
			if entries, err := open().List(b.Context()); err != nil || len(entries) != 1 {
				b.Fatal(entries, err)
			}
		}
	}
	b.Run("first", func(b *testing.B) { list(b, func() *bundle.Store { return bundle.Open(dir, bundle.Options{}) }) })
	b.Run("again", func(b *testing.B) { list(b, func() *bundle.Store { return store }) })
}
