package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/agent-sqlite"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/sdk/agent"
)

func TestJournal(t *testing.T) {
	coretest.TestJournal(t, func(t *testing.T) coretest.OpenJournal {
		db, err := sqlite.Open(filepath.Join(t.TempDir(), "sessions.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return func() (core.Journal, error) { return db.Journal(context.Background(), "s") }
	})
}

// A session in a database, resumed by its ID.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sqlite")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
	if err != nil {
		panic(err)
	}
	defer db.Close()
	a, err := agent.Open(ctx, agent.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	for _, answer := range []string{"Good day!", "As I said."} {
		journal, err := db.Journal(ctx, "session-1")
		if err != nil {
			panic(err)
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{
			Provider: coretest.Model(coretest.Say(answer)), ID: "session-1", Journal: journal,
			OpenSubagent: func(ctx context.Context, id string) (core.Journal, core.ContextStore, error) {
				j, err := db.Journal(ctx, id)
				return j, nil, err
			},
		})
		if err != nil {
			panic(err)
		}
		out, err := s.Submit(ctx, core.TextInput("Hello!"))
		fmt.Println(len(s.Messages()), out.Text, err)
		if err := s.Close(); err != nil {
			panic(err)
		}
	}
	// Output:
	// 2 Good day! <nil>
	// 4 As I said. <nil>
}
