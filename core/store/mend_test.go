package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

func TestMend(t *testing.T) {
	line := func(seq int) string {
		data, err := userEvent(seq, "text").MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	record := func(seq int, body event.Body) string {
		e := newEvent(seq, body)
		e.Call = "c"
		data, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	call := func(seq int) string {
		return record(seq, event.Message{Content: model.Parts{model.ToolCall{ID: "c", Name: "x", Args: "{}"}}, Stop: model.StopToolCalls})
	}
	result := func(seq int) string { return record(seq, event.ToolResult{Name: "x", Content: model.TextParts("y")}) }
	const newer = `{"v":99,"seq":3,"id":"x","time":"2026-01-01T00:00:00Z","session":"s","required":true,"type":"novel"}` + "\n"
	tests := []struct {
		name, log  string
		kept, cut  string
		line, gone int
		torn       bool
		unknown    bool
	}{
		{name: "intact", log: line(1) + line(2), kept: line(1) + line(2)},
		{name: "empty"},
		{name: "without the last line end", log: line(1) + strings.TrimSuffix(line(2), "\n"), kept: line(1) + line(2)},
		{name: "torn", log: line(1) + `{"v":1,"se`, kept: line(1), cut: `{"v":1,"se`, line: 2, gone: 1, torn: true},
		{name: "torn first", log: `{"v`, cut: `{"v`, line: 1, gone: 1, torn: true},
		{name: "a hole", log: line(1) + "x\n" + line(3) + line(4), kept: line(1), cut: "x\n" + line(3) + line(4), line: 2, gone: 3},
		{name: "a hole and a torn end", log: line(1) + "\n" + line(3) + `{"v`, kept: line(1), cut: "\n" + line(3) + `{"v`, line: 2, gone: 3},
		{name: "zeros", log: line(1) + strings.Repeat("\x00", 100), kept: line(1), cut: strings.Repeat("\x00", 100), line: 2, gone: 1, torn: true},
		{name: "the last line", log: line(1) + "{}\n", kept: line(1), cut: "{}\n", line: 2, gone: 1},
		{name: "doubled", log: line(1) + line(2) + line(2) + line(3), kept: line(1) + line(2), cut: line(2) + line(3), line: 3, gone: 2},
		{name: "doubled as a whole", log: line(1) + line(2) + line(1) + line(2), kept: line(1) + line(2), cut: line(1) + line(2), line: 3, gone: 2},
		{name: "shuffled", log: line(1) + line(3) + line(2) + line(4), kept: line(1) + line(3), cut: line(2) + line(4), line: 3, gone: 2},
		{name: "a result without its call", log: line(1) + result(2), kept: line(1), cut: result(2), line: 2, gone: 1},
		{name: "a call whose result was lost", log: line(1) + call(2) + line(4), kept: line(1) + call(2), cut: line(4), line: 3, gone: 1},
		{name: "an open call at the end", log: line(1) + call(2), kept: line(1) + call(2)},
		{name: "two results of a call", log: call(1) + result(2) + result(3), kept: call(1) + result(2), cut: result(3), line: 3, gone: 1},
		{name: "invalid, without the last line end", log: line(1) + "{}", kept: line(1), cut: "{}", line: 2, gone: 1},
		{name: "newer", log: line(1) + newer + "x\n", kept: line(1) + newer + "x\n", unknown: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "s.jsonl")
			if err := os.WriteFile(path, []byte(tt.log), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := store.Check(t.Context(), dir, "s")
			if errors.Is(err, store.ErrUnknownRecord) != tt.unknown || err != nil && !tt.unknown {
				t.Fatalf("Check: %v", err)
			}
			if got := read(t, path); got != tt.log {
				t.Errorf("Check changed the log to %q", got)
			}
			mended, err := store.RepairLog(t.Context(), dir, "s")
			if errors.Is(err, store.ErrUnknownRecord) != tt.unknown || err != nil && !tt.unknown {
				t.Fatalf("Mend: %v", err)
			}
			if got := read(t, path); got != tt.kept {
				t.Errorf("the log is now %q, want %q", got, tt.kept)
			}
			if tt.line == 0 {
				if found != nil || mended != nil {
					t.Errorf("found %+v, mended %+v", found, mended)
				}
				return
			}
			if mended == nil || mended.Line != tt.line || mended.Lines != tt.gone || mended.Bytes != int64(len(tt.cut)) || mended.Torn != tt.torn || mended.Err == nil {
				t.Fatalf("mended %+v", mended)
			}
			if saved := mended.Saved; saved != path+".torn" || read(t, saved) != tt.cut {
				t.Errorf("%q holds %q", saved, read(t, saved))
			}
			if found.Saved != "" || found.Line != mended.Line || found.Lines != mended.Lines || found.Bytes != mended.Bytes {
				t.Errorf("found %+v, mended %+v", found, mended)
			}
			j, err := store.Open(dir, "s", store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			replay(t, j, 0)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMendErrors(t *testing.T) {
	dir := t.TempDir()
	create(t, dir, store.Options{})
	if _, err := store.RepairLog(t.Context(), dir, "s"); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a session that is open: %v", err)
	}
	if _, err := store.RepairLog(t.Context(), dir, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no session: %v", err)
	}
	if _, err := store.Check(t.Context(), dir, "../s"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("no id: %v", err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	j := create(t, dir, store.Options{})
	appendAll(t, j, sample()...)
	var got []event.Seq
	for e, err := range store.Read(t.Context(), dir, "s", 1) { // while it is open
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if len(got) != 3 || got[0] != 2 {
		t.Errorf("got %v", got)
	}
	for id, want := range map[string]error{"none": fs.ErrNotExist, "../s": fs.ErrInvalid} {
		n := 0
		for _, err := range store.Read(t.Context(), dir, id, 0) {
			if n++; !errors.Is(err, want) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if n != 1 {
			t.Errorf("%s yields %d times", id, n)
		}
	}
}
