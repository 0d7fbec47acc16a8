package preview_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/preview"
)

// TestRun: what a run writes, moves and removes is reported, seen by the run
// itself, and not done.
func TestRun(t *testing.T) {
	t.Parallel()
	e := env.NewMemory("/w", map[string]string{"a.txt": "one\n", "b.txt": "two\n", "c.txt": "three\n"})
	call := &core.Call{ID: "1", Env: e}
	changes, err := preview.Run(t.Context(), call, func(ctx context.Context, call *core.Call) (core.Result, error) {
		files := call.Env.Files()
		for _, err := range []error{
			files.Write(ctx, "a.txt", strings.NewReader("ONE\n"), 0),
			files.Write(ctx, "new/d.txt", strings.NewReader("four\n"), 0),
			files.Rename(ctx, "b.txt", "moved.txt"),
			files.Write(ctx, "c.txt", strings.NewReader("three\n"), 0),
		} {
			if err != nil {
				return core.Result{}, err
			}
		}
		if data, err := core.ReadFile(ctx, files, "/w/a.txt", 100); err != nil || string(data) != "ONE\n" {
			t.Errorf("the run reads %q, %v", data, err)
		}
		if _, err := files.Stat(ctx, "b.txt"); err == nil {
			t.Error("the run still sees the file that it moved")
		}
		if _, err := call.Env.Start(ctx, core.Command{Argv: []string{"true"}}); err == nil {
			t.Error("a preview started a command")
		}
		return core.TextResult("done"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.At+" "+state(c.Before)+"→"+state(c.After))
	}
	want := "/w/a.txt one→ONE|/w/new/d.txt -→four|/w/moved.txt -→two|/w/b.txt two→-"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("changes %s, want %s", s, want)
	}
	if d := changes[0].Diff(); !strings.Contains(d, "-one\n+ONE\n") {
		t.Errorf("the diff is %s", d)
	}
	if data, _ := core.ReadFile(t.Context(), e.Files(), "a.txt", 100); !bytes.Equal(data, []byte("one\n")) {
		t.Errorf("the preview wrote: %q", data)
	}
	fail := func(e core.Environment) error { return e.Files().Remove(t.Context(), "a.txt") }
	run := func(ctx context.Context, call *core.Call) (core.Result, error) {
		_ = fail(call.Env)
		return core.Fail(core.CodeValidation, "no such text"), nil
	}
	var why *preview.Failure
	if changes, err := preview.Run(t.Context(), call, run); len(changes) > 0 || !errors.As(err, &why) || why.Text != "no such text" {
		t.Errorf("a call that fails has %v, %v", changes, err)
	}
	fail = func(e core.Environment) error {
		_, err := e.Start(t.Context(), core.Command{Argv: []string{"true"}})
		return err
	}
	if changes, err := preview.Run(t.Context(), call, run); err != nil || len(changes) > 0 {
		t.Errorf("a call that fails only in the preview has %v, %v", changes, err)
	}
}

func state(data []byte) string {
	if data == nil {
		return "-"
	}
	return strings.TrimSpace(string(data))
}
