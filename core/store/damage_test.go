package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// longSession writes the log of a session with tools, steering, a summary and a
// second opening.
func longSession(t *testing.T, dir string) []byte {
	t.Helper()
	type note struct {
		Text string `json:"text"`
	}
	echo := core.NewTool(core.ToolDefinition{Name: "echo", ReadOnly: true}, nil, func(_ context.Context, _ *core.Call, in note) (core.Result, error) {
		return core.TextResult("echo: " + in.Text), nil
	})
	say := func(text string) model.ToolCall {
		return model.ToolCall{Name: "echo", Args: fmt.Sprintf(`{"text":%q}`, text)}
	}
	for part := range 2 {
		open := store.Open
		if part == 0 {
			open = store.Create
		}
		j, err := open(dir, "s", store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := core.New(t.Context(), core.Config{
			ID: "s", Provider: coretest.Model(
				coretest.CallTools(say("a"), say("b")), coretest.CallTools(say("c")), coretest.Say("One."),
				coretest.Say("the notes"), coretest.CallTools(say("d")), coretest.Say("Two?"), coretest.Say("Three."),
			),
			Env: env.NewMemory("/", nil), Policy: coretest.AllowAll, Journal: j, Tools: core.StaticTools(echo),
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"first", "second", "third"} {
			if _, err := s.Submit(t.Context(), core.TextInput(text)); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if err := s.Compact(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				s.Steer(core.TextInput("be quick"))
			}
		}
		if err := errors.Join(s.Close(), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// damage changes a log at random and says how.
func damage(r *rand.Rand, data []byte) (string, []byte) {
	data = slices.Clone(data)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1] // what follows the last line end is empty
	from := r.IntN(len(lines))
	to := min(len(lines), from+1+r.IntN(3))
	switch r.IntN(7) {
	case 0:
		return "truncated", data[:r.IntN(len(data))]
	case 1:
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return "shuffled", bytes.Join(lines, nil)
	case 2:
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		lines[i], lines[j] = lines[j], lines[i]
		return "two records exchanged", bytes.Join(lines, nil)
	case 3:
		at := r.IntN(len(lines) + 1)
		return "doubled", bytes.Join(slices.Concat(lines[:at], lines[from:to], lines[at:]), nil)
	case 4:
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		return "a bit flipped", data
	case 5:
		at := r.IntN(len(data))
		clear(data[at:min(len(data), at+1+r.IntN(200))])
		return "zeros", data
	}
	return "deleted", bytes.Join(slices.Concat(lines[:from], lines[to:]), nil)
}

// TestDamagedRecords damages a log in 200 ways: resuming and repairing agree on
// what is damaged, and what repairing leaves can be continued.
func TestDamagedRecords(t *testing.T) {
	campaigns := 200
	if testing.Short() {
		campaigns = 30
	}
	whole := longSession(t, t.TempDir())
	for seed := range campaigns {
		r := rand.New(rand.NewPCG(1, uint64(seed)))
		how, log := damage(r, whole)
		for range r.IntN(2) {
			if !bytes.HasSuffix(log, []byte("\n")) {
				break
			}
			var more string
			more, log = damage(r, log)
			how += ", " + more
		}
		t.Run(fmt.Sprint(seed, " ", how), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "s.jsonl")
			if err := os.WriteFile(path, log, 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := store.Check(t.Context(), dir, "s")
			if errors.Is(err, store.ErrUnknownRecord) { // perhaps of a newer version: not to be cut off
				if resumed := goOn(t, dir); !errors.Is(resumed, store.ErrUnknownRecord) {
					t.Errorf("Check says %v, resuming %v", err, resumed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if found != nil && !found.Torn {
				var corrupt *store.CorruptError
				if err := goOn(t, dir); !errors.As(err, &corrupt) && !errors.Is(err, store.ErrTooLarge) {
					t.Fatalf("Check finds %+v, resuming says %v", found, err)
				} else if corrupt != nil && corrupt.Line != found.Line {
					t.Errorf("Check finds line %d, resuming %d", found.Line, corrupt.Line)
				}
				fixed, err := store.RepairLog(t.Context(), dir, "s")
				if err != nil || fixed == nil || fixed.Lines < 1 || fixed.Err == nil {
					t.Fatalf("repaired %+v, %v", fixed, err)
				}
				saved, err := os.ReadFile(fixed.Saved)
				if err != nil || int64(len(saved)) < fixed.Bytes {
					t.Errorf("what was cut off is not kept: %d bytes, %v", len(saved), err)
				}
			}
			if err := goOn(t, dir); err != nil {
				t.Errorf("after %+v: %v", found, err)
			}
			if left, err := store.Check(t.Context(), dir, "s"); left != nil || err != nil {
				t.Errorf("the continued session has damage: %+v, %v", left, err)
			}
		})
	}
}

// goOn resumes session "s" with an input, and checks that every call in the
// conversation has one result.
func goOn(t *testing.T, dir string) error {
	t.Helper()
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		return err
	}
	defer j.Close()
	provider := coretest.Model(coretest.Say("on"))
	s, err := core.New(t.Context(), core.Config{ID: "s", Provider: provider, Env: env.NewMemory("/", nil), Policy: coretest.DenyAll, Journal: j})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Submit(t.Context(), core.TextInput("go on")); err != nil {
		return err
	}
	open := map[string]bool{}
	for i, m := range provider.Requests()[0].Messages {
		if m.Role != model.RoleTool && len(open) > 0 {
			t.Errorf("message %d follows calls without results: %v", i, open)
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case model.ToolCall:
				open[p.ID] = true
			case model.ToolResult:
				if !open[p.CallID] {
					t.Errorf("message %d has a result of no open call: %s", i, p.CallID)
				}
				delete(open, p.CallID)
			}
		}
	}
	return nil
}
