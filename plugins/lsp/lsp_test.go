package lsp

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPositions(t *testing.T) {
	t.Parallel()
	text := "a😀é\r\nb\rc\n"
	starts := lineStarts(text)
	for at := range len(text) + 1 {
		if at < len(text) && (text[at]&0xC0 == 0x80 || text[at] == '\n' && at > 0 && text[at-1] == '\r') {
			continue // within a character, or a line end
		}
		for _, encoding := range []string{utf8Units, utf16Units, utf32Units} {
			p := positionOf(text, starts, at, encoding)
			if back, err := offset(text, starts, p, encoding); err != nil || back != at && text[min(at, len(text)-1)] != '\n' {
				t.Errorf("%s: %d → %v → %d, %v", encoding, at, p, back, err)
			}
		}
	}
	for encoding, want := range map[string]int{utf8Units: 5, utf16Units: 3, utf32Units: 2} {
		if p := positionOf(text, starts, 5, encoding); p.Character != want {
			t.Errorf("%s: é is at %d, want %d", encoding, p.Character, want)
		}
	}
	for p, want := range map[position]int{{0, 99}: 7, {0, 2}: 1, {1, 0}: 9, {2, 1}: 12, {3, 0}: 13, {4, 0}: 13} {
		if got, err := offset(text, starts, p, utf16Units); err != nil || got != want {
			t.Errorf("%v is at %d, %v; want %d", p, got, err, want)
		}
	}
	for _, p := range []position{{5, 0}, {-1, 0}, {0, -1}, {4, 1}} {
		if _, err := offset(text, starts, p, utf16Units); err == nil {
			t.Errorf("%v is in the text", p)
		}
	}
}

func FuzzPositions(f *testing.F) {
	f.Add("a😀é\r\nb\rc\n", 2, 3)
	f.Add("a\xf0\x9f\x98a😀é\x80é\r\nb\r", 0, 74) // invalid bytes
	f.Fuzz(func(t *testing.T, text string, line, character int) {
		starts := lineStarts(text)
		for _, encoding := range []string{utf8Units, utf16Units, utf32Units} {
			at, err := offset(text, starts, position{line, character}, encoding)
			if err != nil {
				continue
			}
			if at < 0 || at > len(text) {
				t.Fatalf("%d:%d is at %d of %d", line, character, at, len(text))
			}
			if back, _ := offset(text, starts, positionOf(text, starts, at, encoding), encoding); back != at {
				t.Errorf("%d:%d is at %d, whose position is at %d", line, character, at, back)
			}
		}
	})
}

func TestURIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a b.txt", "ü#?%41.txt", "[id].ts", "plain"} {
		path := filepath.Join(dir, name)
		if got := pathOf(uriOf(path)); got != path {
			t.Errorf("%s became %s", path, got)
		}
	}
	for _, uri := range []string{"untitled:1", "jdt://x/y", "", "%"} {
		if got := pathOf(uri); got != "" {
			t.Errorf("%q is the file %s", uri, got)
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"utf8", "utf16"} {
		p := newPlace(t, mode)
		a := p.write("a.txt", "\uFEFF😀 name one\r\nsee name\r\n")
		b := p.write("sub/b.txt", "é name\n")
		p.await("s", File{Path: a}, File{Path: b})
		got, err := p.query(Query{Action: References, File: File{Path: a}, Symbol: "pkg.name()", Line: 2})
		if want := []Location{{a, 1, 3}, {a, 2, 5}, {b, 1, 3}}; err != nil || !slices.Equal(got.Locations, want) {
			t.Errorf("%s: references %v, %v; want %v", mode, got.Locations, err, want)
		}
		got, err = p.query(Query{Action: Rename, File: File{Path: a}, Symbol: "name", Line: 1, NewName: "nom"})
		if err != nil || len(got.Edits) != 2 {
			t.Fatalf("%s: rename %v, %v", mode, got.Edits, err)
		}
		for i, want := range []string{"\uFEFF😀 nom one\r\nsee nom\r\n", "é nom\n"} {
			before, err := os.ReadFile(got.Edits[i].Path)
			if err != nil {
				t.Fatal(err)
			}
			after, err := got.Edits[i].Apply(before)
			if err != nil || string(after) != want {
				t.Errorf("%s: %q, %v; want %q", mode, after, err, want)
			}
			if _, err := got.Edits[i].Apply(append(before, ' ')); err == nil {
				t.Error("a changed file was renamed in")
			}
		}
	}
}

func TestRefusedQueries(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "move")
	a := p.write("a.txt", "name one\nname two\n")
	latin := p.write("latin.txt", "na\xefve")
	p.write("b.md", "name")
	outside := filepath.Join(t.TempDir(), "c.txt")
	for want, q := range map[string]Query{
		"give the line":                       {Action: Rename, File: File{Path: a}, Symbol: "name", NewName: "x"},
		"would rename files":                  {Action: Rename, File: File{Path: a}, Symbol: "one", NewName: "x"},
		`missing "new_name"`:                  {Action: Rename, File: File{Path: a}, Symbol: "one"},
		`missing "symbol"`:                    {Action: References, File: File{Path: a}},
		"nothing is not in the file":          {Action: References, File: File{Path: a}, Symbol: "nothing"},
		"one is not on line 2, but on line 1": {Action: References, File: File{Path: a}, Symbol: "one", Line: 2},
		"not UTF-8":                           {Action: References, File: File{Path: latin}, Symbol: "na"},
		"outside the workspace":               {Action: References, File: File{Path: outside}, Symbol: "x"},
		"no language server on this machine":  {Action: References, File: File{Path: filepath.Join(p.dir, "b.md")}, Symbol: "name"},
		"no such file":                        {Action: References, File: File{Path: filepath.Join(p.dir, "gone.txt")}, Symbol: "name"},
	} {
		if a, err := p.query(q); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "cannot find the file specified", "no such file"), want) {
			t.Errorf("%+v: %+v, %v; want %q", q, a, err, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]int{"link": 1, "null": 0, "elsewhere": 0} {
		p := newPlace(t, mode)
		a := p.write("a.txt", "name")
		got, err := p.query(Query{Action: Definition, File: File{Path: a}, Symbol: "name"})
		if len(got.Locations) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %+v, %v", mode, got, err)
		}
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"versions", "versionless"} {
		p := newPlace(t, mode)
		a := p.write("a.txt", "fine\n😀 BAD\n")
		if got, want := p.await("s", File{Path: a}), "a.txt:2:3: error: bad line (fake)"; got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		if got := p.await("s"); got != "" {
			t.Errorf("%s: reported again: %q", mode, got)
		}
		p.write("a.txt", "fine\n")
		if got, want := p.await("s", File{Path: a}), "a.txt: no problems left"; got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		unsaved := "BAD"
		if got, want := p.await("s", File{Path: a, Text: &unsaved}), "a.txt:1:1: error: bad line (fake)"; got != want {
			t.Errorf("%s: unsaved text: %q, want %q", mode, got, want)
		}
		if got, err := p.query(Query{Action: Diagnostics, File: File{Path: a}}); err != nil || got.Text != "" {
			t.Errorf("%s: on disk: %q, %v", mode, got.Text, err)
		}
		if err := os.Remove(a); err != nil {
			t.Fatal(err)
		}
		if got := p.await("s", File{Path: a}); got != "" {
			t.Errorf("%s: problems of a removed file: %q", mode, got)
		}
		if got := p.await("s", File{Path: filepath.Join(p.dir, "x.md")}, File{Path: filepath.Join(p.dir, "..", "x.txt")}); got != "" {
			t.Errorf("%s: problems of files without a server: %q", mode, got)
		}
	}
}

// TestLateReport: what a server has not said in time comes with a later check.
func TestLateReport(t *testing.T) {
	t.Parallel()
	release := filepath.Join(t.TempDir(), "go")
	p := newPlace(t, "slow "+release)
	a := p.write("a.txt", "BAD")
	r := p.all.check(t.Context(), "s", p.dir, Check{Files: []File{{Path: a}}, WaitMS: 1})
	if !r.Pending || r.Text != "" {
		t.Fatalf("before the server is there: %+v", r)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.await("s"); !strings.Contains(got, "bad line") {
		t.Errorf("later: %q", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"crash":       "fake: it ended (exit code 3): panic: out of cheese",
		"garbage":     `fake: it was ended: expected the header of a message, not "Welcome! This is no language server.\n"`,
		"silent":      "fake: it did not start within 300ms",
		"hang":        "fake did not answer in time and was ended; the next call starts it again",
		"crash later": "fake: it ended (exit code 1)",
	} {
		p := newPlace(t, mode)
		if mode == "silent" {
			p.all.startTime = 300 * time.Millisecond
		}
		a := p.write("a.txt", "name")
		limit := time.Minute
		if mode == "hang" {
			limit = time.Second
		}
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := p.all.query(ctx, p.dir, Query{Action: Definition, File: File{Path: a}, Symbol: "name"})
			return err
		}
		if err := ask(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", mode, err, want)
		}
		if r := p.all.check(t.Context(), "s", p.dir, Check{Files: []File{{Path: a}}, WaitMS: 1}); r.Text != "" {
			t.Errorf("%s: a report: %+v", mode, r)
		}
	}
}

// TestBackOff: a server that crashes is started again, and at last only after a pause.
func TestBackOff(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "crash")
	a := p.write("a.txt", "name")
	for range 3 {
		_, err := p.query(Query{Action: Definition, File: File{Path: a}, Symbol: "name"})
		if err == nil {
			t.Fatal("no error")
		}
		if strings.Contains(err.Error(), "is not started again for 1s") && strings.Contains(err.Error(), "out of cheese") {
			return
		}
	}
	t.Error("it is started again and again")
}

// TestRestart: after a crash, the next question starts the server again.
func TestRestart(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "crash later")
	a := p.write("a.txt", "name BAD")
	p.await("s", File{Path: a})
	if _, err := p.query(Query{Action: Definition, File: File{Path: a}, Symbol: "name"}); err == nil {
		t.Error("no crash")
	}
	if got, err := p.query(Query{Action: Diagnostics, File: File{Path: a}}); err != nil || !strings.Contains(got.Text, "bad line") {
		t.Errorf("after the crash: %+v, %v", got, err)
	}
}

func TestHugeOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "huge")
	a := p.write("a.txt", "BAD")
	if got := p.await("s", File{Path: a}); len(got) > 4000 || !strings.Contains(got, "more") {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}

// TestWatch: servers learn of files that others change.
func TestWatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "watch")
	a, b := p.write("a.txt", "name"), p.write("b.txt", "name")
	p.await("s", File{Path: a})
	c := p.all.slots[0].client
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	p.write("node_modules/x.txt", "")
	p.write("a.txt", "name, changed")
	p.write("new.txt", "")
	c.syncing.Lock()
	c.files.last = time.Time{}
	c.syncing.Unlock()
	got, err := p.query(Query{Action: References, File: File{Path: a}, Symbol: "changed"})
	if err != nil || len(got.Locations) != 1 {
		t.Errorf("the open file is as it was: %+v, %v", got, err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		data, _ := os.ReadFile(filepath.Join(p.dir, ".watched"))
		if text := string(data); strings.Contains(text, `b.txt","type":3`) && strings.Contains(text, `a.txt","type":2`) && strings.Contains(text, `new.txt","type":1`) && !strings.Contains(text, "node_modules") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server was told %s", data)
		}
	}
}

// TestProjects: a server has the outermost project of a file; projects in several
// directories have several processes, unless one can have them all.
func TestProjects(t *testing.T) {
	t.Parallel()
	for _, folders := range []bool{false, true} {
		p := newPlace(t, "utf16")
		p.spec.Folders = folders
		other, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		p.all.options.Roots = append(p.all.options.Roots, other)
		p.write("one/project", "")
		p.write("one/sub/project", "")
		p.write("two/project", "")
		for _, name := range []string{"one/a.txt", "one/sub/a.txt", "two/a.txt"} {
			p.await("s", File{Path: p.write(name, "BAD")})
		}
		far := filepath.Join(other, "a.txt")
		if err := os.WriteFile(far, []byte("BAD"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := p.await("s", File{Path: far}); !strings.Contains(got, filepath.ToSlash(far)+":1:1: error") {
			t.Errorf("another root: %q", got)
		}
		var got []string
		for _, at := range p.all.slots {
			for i, f := range at.folders {
				got = append(got, strings.Repeat("+", i)+filepath.Base(f))
			}
		}
		want := []string{"one", "two", filepath.Base(other)}
		if folders {
			want[1] = "+two"
		}
		if !slices.Equal(got, want) {
			t.Errorf("projects %q, want %q", got, want)
		}
	}
}
