package bundle_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-009c0928/agent/core/bundle"
)

func Example() {
	ctx := context.Background()
	work, err := os.MkdirTemp("", "bundle")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(work)
	download := filepath.Join(work, "download")
	if err := os.Mkdir(download, 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(download, "SKILL.md"), []byte("# Say hello\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	store := bundle.Open(filepath.Join(work, "skills"), bundle.Options{})
	stage, err := store.Stage(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer stage.Close()
	if err := stage.AddFolder(ctx, download); err != nil {
		log.Fatal(err)
	}
	tree, err := stage.Tree(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range tree.Files {
		fmt.Println(f.Path, f.Size, f.SHA256[:8])
	}
	// The user reviews and approves them.
	_, err = stage.Install(ctx, bundle.Install{
		Name: "hello", Tree: tree.Hash,
		Source:  bundle.Source{Kind: "folder", Location: download},
		Consent: &bundle.Consent{Tree: tree.Hash},
	})
	if err != nil {
		log.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(store.Path("hello"), "SKILL.md"), []byte("# Say goodbye\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	_, changes, err := store.Verify(ctx, "hello")
	fmt.Println(len(changes), changes[0].Kind, changes[0].Path, err)
	// Output:
	// SKILL.md 12 67b1290d
	// 1 modified SKILL.md <nil>
}
