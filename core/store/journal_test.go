package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

func sample() []event.Event {
	return []event.Event{
		newEvent(1, event.SessionStart{Cwd: "/work", Model: "m"}),
		userEvent(2, "Grüße\n😀 <b>"),
		newEvent(5, event.Message{Content: model.Parts{
			model.Reasoning{Text: "hm", Signature: "c2ln"},
			model.ToolCall{ID: "c1", Name: "shell", Args: `{"command":"ls"}`},
			model.Opaque{Provider: "p", Raw: json.RawMessage(`{"x":1}`)},
		}, Stop: model.StopToolCalls}),
		newEvent(6, event.Idle{State: "idle", Stop: "done"}),
	}
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "sessions")
	j := create(t, dir, store.Options{})
	appendAll(t, j, sample()...)
	if err := j.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), sample()[0]); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	if got := replay(t, j, 0); len(got) != 4 {
		t.Errorf("Replay after Close yields %d records", len(got))
	}

	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	got := replay(t, j, 0)
	want := sample()
	for i := range want {
		want[i].ID = fmt.Sprint("s-", want[i].Seq)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if j.Repaired() != nil {
		t.Errorf("an intact file was repaired: %+v", j.Repaired())
	}
	for after, n := range map[event.Seq]int{1: 3, 2: 2, 4: 2, 5: 1, 6: 0, 99: 0} {
		if got := replay(t, j, after); len(got) != n || n > 0 && got[0].Seq <= after {
			t.Errorf("Replay after %d yields %+v", after, got)
		}
	}
}

func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	dir := filepath.Join(t.TempDir(), "sessions")
	j := create(t, dir, store.Options{})
	for path, want := range map[string]fs.FileMode{dir: 0o700, j.Path(): 0o600, filepath.Join(dir, "s.lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := store.Open(dir, "none", store.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing session: %v", err)
	}
	create(t, dir, store.Options{}).Close()
	if _, err := store.Create(dir, "s", store.Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second Create: %v", err)
	}
	for _, id := range []string{
		"", ".", "..", "../x", "a/b", `a\b`, "/etc/x", "a.b", "-x", "_x", "a b", "ä", "x\x00", "con", "NUL", "com1", "Lpt9",
		strings.Repeat("a", 129),
	} {
		if _, err := store.Open(dir, id, store.Options{}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Open(%q): %v", id, err)
		}
		if _, err := store.Create(dir, id, store.Options{}); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Create(%q): %v", id, err)
		}
	}
	for _, id := range []string{"a", "0198-ab_C", "common", "com", strings.Repeat("a", 128)} {
		if err := store.CheckID(id); err != nil {
			t.Error(err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files remain: %v", entries)
	}
}

// A process that is killed at any byte loses only the record being written.
func TestEveryPrefixOpens(t *testing.T) {
	j := create(t, t.TempDir(), store.Options{})
	appendAll(t, j, userEvent(1, "ä\n"), newEvent(2, event.Idle{}))
	whole, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	const lanes = 8 // in parallel: each step waits for the disk
	for lane := range lanes {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			for n := lane; n <= len(whole); n += lanes {
				openPrefix(t, whole, n)
			}
		})
	}
}

func openPrefix(t *testing.T, whole []byte, n int) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := store.Open(dir, "s", store.Options{})
	if err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	defer j.Close()
	want := bytes.Count(whole[:n], []byte("\n"))
	if n < len(whole) && whole[n] == '\n' { // only the line end is missing
		want++
	}
	if got := replay(t, j, 0); len(got) != want {
		t.Fatalf("%d bytes: %d records, want %d", n, len(got), want)
	}
	appendAll(t, j, userEvent(50, "after"))
	if got := replay(t, j, 0); len(got) != want+1 || got[want].Seq != 50 {
		t.Fatalf("%d bytes: appending to the repaired file gives %d records", n, len(got))
	}
	torn, err := os.ReadFile(path + ".torn")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if r := j.Repaired(); r == nil && len(torn) > 0 || r != nil && (r.Bytes != int64(len(torn)) || r.Saved != path+".torn") {
		t.Fatalf("%d bytes: repair %+v, but %d bytes were saved", n, r, len(torn))
	}
	if !bytes.HasSuffix(whole[:n], torn) {
		t.Fatalf("%d bytes: the torn bytes are not those at the end", n)
	}
}

func TestRepairOfOddEnds(t *testing.T) {
	var good bytes.Buffer
	for _, e := range sample() {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		good.Write(append(line, '\n'))
	}
	for name, tail := range map[string]string{
		"zeros":                strings.Repeat("\x00", 5000),
		"zeros and a line end": strings.Repeat("\x00", 5000) + "\n",
		"half a record, ended": `{"v":1,"seq":7` + "\n",
		"a long half":          `{"v":1,"text":"` + strings.Repeat("x", 200_000),
		"empty line":           "\n",
		"number":               "12",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "s.jsonl")
			if err := os.WriteFile(path, []byte(good.String()+tail), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := store.Open(dir, "s", store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if got := replay(t, j, 0); len(got) != 4 {
				t.Errorf("%d records", len(got))
			}
			if torn, _ := os.ReadFile(path + ".torn"); string(torn) != tail {
				t.Errorf("%d bytes saved, want %d", len(torn), len(tail))
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, good.Bytes()) {
				t.Error("the complete records were changed")
			}
		})
	}
}

func TestReplayRefuses(t *testing.T) {
	const first = `{"v":1,"seq":1,"time":"2026-01-01T00:00:00Z","session":"s","type":"session_start","cwd":"/"}` + "\n"
	const last = `{"v":1,"seq":3,"time":"2026-01-01T00:00:00Z","session":"s","type":"idle","state":"idle","stop":"x"}` + "\n"
	tests := []struct {
		name, line, want string
		is               error
	}{
		{"no JSON", "{\"v\":1,\n", "s.jsonl:2: the record cannot be read: event: unexpected end of JSON input; the file was damaged or edited: restore it, or start a new session", store.ErrCorrupt},
		{"no event", "{}\n", `s.jsonl:2: the record cannot be read: event: "v" or "type" is missing; the file was damaged or edited: restore it, or start a new session`, store.ErrCorrupt},
		{"blank line", "\n", "s.jsonl:2: the record cannot be read: event: unexpected end of JSON input; the file was damaged or edited: restore it, or start a new session", store.ErrCorrupt},
		{"unknown required type", `{"v":1,"seq":2,"type":"teleport","required":true}` + "\n", `s.jsonl:2: the session needs a record of type "teleport" (format version 1), which is unknown to this program (format version 1); resume it with the newer version that wrote it`, store.ErrUnknownRecord},
		{"newer form of a known type", `{"v":9,"seq":2,"type":"user","required":true}` + "\n", `s.jsonl:2: the session needs a record of type "user" (format version 9), which is unknown to this program (format version 1); resume it with the newer version that wrote it`, store.ErrUnknownRecord},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), []byte(first+tt.line+last), 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := store.Open(dir, "s", store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			var yielded int
			for _, err = range j.Replay(t.Context(), 0) {
				yielded++
			}
			if err == nil || yielded != 2 || !errors.Is(err, tt.is) {
				t.Fatalf("%d steps, the last with error %v", yielded, err)
			}
			if got := strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestIgnorableUnknownRecordsRoundTrip(t *testing.T) {
	const raw = `{"v":1,"seq":2,"type":"weather","degrees":21}`
	j := create(t, t.TempDir(), store.Options{})
	appendAll(t, j, newEvent(2, event.Unknown{Kind: "weather", Raw: json.RawMessage("{\"v\":1,\n\"seq\":2,\"type\":\"weather\",\"degrees\":21}")}))
	if data, _ := os.ReadFile(j.Path()); string(data) != raw+"\n" {
		t.Errorf("file holds %s", data)
	}
	if got := replay(t, j, 0); len(got) != 1 || string(got[0].Body.(event.Unknown).Raw) != raw {
		t.Errorf("got %+v", got)
	}
	if err := j.Append(t.Context(), newEvent(3, event.Unknown{Kind: "x", Raw: json.RawMessage("{")})); err == nil {
		t.Error("broken JSON was appended")
	}
}

func TestLongRecords(t *testing.T) {
	j := create(t, t.TempDir(), store.Options{})
	long := strings.Repeat("x", 300_000)
	appendAll(t, j, userEvent(1, "a"), userEvent(2, long), userEvent(3, "b"))
	got := replay(t, j, 0)
	if len(got) != 3 || got[1].Body.(event.User).Content.Text() != long {
		t.Fatal("the long record was not replayed")
	}
}

func TestReplayWhileAppending(t *testing.T) {
	j := create(t, t.TempDir(), store.Options{})
	appendAll(t, j, userEvent(1, "a"), userEvent(2, "b"))
	// The consumer appends as well: Replay must not hold a lock while it yields.
	n := 2
	for e, err := range j.Replay(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		appendAll(t, j, userEvent(n, fmt.Sprint("after ", e.Seq)))
	}
	if n != 4 {
		t.Errorf("Replay followed its own appends: %d records", n)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 200 {
			if err := j.Append(context.Background(), userEvent(5+i, "x")); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		wg.Go(func() {
			want := event.Seq(1)
			for e, err := range j.Replay(context.Background(), 0) {
				if err != nil || e.Seq != want {
					t.Errorf("got %d, want %d (%v)", e.Seq, want, err)
					return
				}
				want++
			}
			if err := j.Sync(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestReplayStopsWhenCancelled(t *testing.T) {
	j := create(t, t.TempDir(), store.Options{})
	appendAll(t, j, sample()...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range j.Replay(ctx, 0) {
		last = err
		n++
		cancel()
	}
	if n != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d steps, then %v", n, last)
	}
}
