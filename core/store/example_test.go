package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/store"
)

func ExampleJournal() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	j, err := store.Create(dir, "s1", store.Options{Secrets: []string{"my-password"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	err = j.Append(ctx, event.Event{V: event.Version, Seq: 1, Session: "s1", Body: event.Warning{Code: "x", Message: "my-password leaks"}})
	fmt.Println("appended:", err)
	for e, err := range j.Replay(ctx, 0) {
		fmt.Println(e.Body, err)
	}
	_, err = store.Open(dir, "s1", store.Options{})
	fmt.Println(err != nil)
	// Output:
	// appended: <nil>
	// {x [redacted] leaks} <nil>
	// true
}

func ExampleContext() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	c, err := store.NewContext(filepath.Join(dir, "context"), "s1", store.ContextOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := c.Create(ctx, core.OutputMeta{Tool: "shell", Call: "call_7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Fprintln(out, "a very long output")
	fmt.Println(out.Handle(), out.Close())

	f, err := c.Open(ctx, out.Handle())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	fmt.Printf("%q %v\n", text, err)
	// Output:
	// context:s1/call_7 <nil>
	// "a very long output\n" <nil>
}
