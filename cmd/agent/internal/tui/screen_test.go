package tui

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
	"github.com/seed-009c0928/agent/core/event"
)

// TestScreenShowsWhatIsDrawn draws frames one over another: the terminal shows the
// same as after printing the permanent lines and the last frame.
func TestScreenShowsWhatIsDrawn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		checkFrames(t, seed, 60)
	}
}

func FuzzScreen(f *testing.F) {
	f.Add(uint64(1), uint8(20))
	f.Fuzz(func(t *testing.T, seed uint64, frames uint8) { checkFrames(t, seed, int(frames)) })
}

func checkFrames(t *testing.T, seed uint64, frames int) {
	t.Helper()
	const width, height = 20, 8
	random := rand.New(rand.NewPCG(seed, 0))
	got, want := vt.New(width, height), vt.New(width, height)
	var out bytes.Buffer
	s := &screen{out: &out, width: width, height: height}
	rows := []string{""}
	for range frames {
		var above []string
		if random.IntN(4) == 0 {
			above = append(above, rows[:random.IntN(len(rows))]...) // what was unfinished is finished
		}
		if random.IntN(6) == 0 {
			above = append(above, randomRow(random, 45))
		}
		next := append([]string(nil), rows[min(len(above), len(rows)):]...)
		if from := random.IntN(2 * height); from < len(next)-1 {
			next = slices.Delete(next, from, from+1+random.IntN(len(next)-from-1)) // what is below moves up
		}
		for n := 1 + random.IntN(height-1); len(next) < n; {
			next = append(next, randomRow(random, width))
		}
		next[random.IntN(len(next))] = randomRow(random, width)
		rows = next[:min(len(next), height-1)]
		x, y := random.IntN(width), random.IntN(len(rows))
		s.draw(above, rows, x, y)
		got.Write(out.String())
		out.Reset()
		for _, l := range above {
			want.Write(l + "\r\n")
		}
		if gx, gy := got.Cursor(); gx != x {
			t.Fatalf("seed %d: the cursor is at column %d of line %d, want column %d", seed, gx, gy, x)
		}
	}
	want.Write(strings.Join(rows, "\r\n"))
	if g, w := cellsShown(got), cellsShown(want); !reflect.DeepEqual(g, w) || len(got.Unknown) > 0 || got.Hidden {
		t.Fatalf("seed %d: the terminal shows\n%s\nwant\n%s\nunknown: %q", seed, got.All(), want.All(), got.Unknown)
	}
}

// cellsShown returns what a terminal shows, without blank cells at the end of lines.
func cellsShown(v *vt.Terminal) (out [][]vt.Cell) {
	for _, l := range v.Lines() {
		for len(l) > 0 && l[len(l)-1] == (vt.Cell{Text: " "}) {
			l = l[:len(l)-1]
		}
		out = append(out, append([]vt.Cell{}, l...))
	}
	for len(out) > 0 && len(out[len(out)-1]) == 0 {
		out = out[:len(out)-1]
	}
	return out
}

// randomRow returns a row of styled words of every width.
func randomRow(random *rand.Rand, width int) string {
	p := painter{colors: true}
	words := []string{"a", "word ", "    ", "中文", "…·", "👩‍🚀", "e\u0301", "☀", "long-word-of-text"}
	styles := []style{plain, plain, red, bold + ";" + magenta, reverse}
	var b strings.Builder
	for range random.IntN(7) {
		b.WriteString(p.paint(styles[random.IntN(len(styles))], words[random.IntN(len(words))]))
	}
	return display.Clip(b.String(), width)
}

// TestScreenWritesLittle limits what is written for a piece of an answer, a frame
// for each and a frame for many of them.
func TestScreenWritesLittle(t *testing.T) {
	t.Parallel()
	const most = 60
	code := func(i int) string {
		if i%6 == 5 {
			return "// Z\n"
		}
		return "X(1, \"Y\") "
	}
	text := func(i int) string {
		if i%100 == 99 {
			return ".\n\n"
		}
		return "word "
	}
	long := func(i int) string { return fmt.Sprintf("%04d ", i) }
	for _, tt := range []struct {
		name, begin string
		piece       func(int) string
		perFrame    int
	}{{"text", "", text, 33}, {"text, each piece drawn", "", text, 1}, {"a text higher than the screen", "", long, 33}, {"the same, each piece drawn", "", long, 1}, {"code", "~~~go\n", code, 33}} {
		var out bytes.Buffer
		p := painter{colors: true, look: newLook(testColors, "dark")}
		h := newHost(t.Context(), Options{Session: newFakeSession(), Asker: NewAsker(), Status: func() Status { return Status{Model: "a-model", Branch: "main", Tokens: 5} }})
		l := &lineScreen{driver: newDriver(h, newScene(p, 100, "/w")), screen: &screen{out: &out, width: 100, height: 40}, editor: newEditor(p, nil), at: -1}
		l.work.busy, l.work.since = true, time.Now()
		l.scene.apply(event.Event{Body: event.MessageDelta{Text: tt.begin}})
		l.draw()
		out.Reset()
		const pieces = 2000
		for i := range pieces {
			l.scene.apply(event.Event{Body: event.MessageDelta{Text: tt.piece(i)}})
			if i%tt.perFrame == 0 {
				l.draw()
			}
		}
		if n := out.Len() / pieces; n > most {
			t.Errorf("%s: %d bytes a piece, want at most %d", tt.name, n, most)
		}
	}
}

// TestScreenEcho writes one byte for a key that is typed.
func TestScreenEcho(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &screen{out: &out, width: 80, height: 24}
	s.draw(nil, []string{"status", "> typed"}, 7, 1)
	out.Reset()
	s.draw(nil, []string{"status", "> typedx"}, 8, 1)
	if got := out.String(); got != "x" {
		t.Errorf("%q was written, want only x", got)
	}
}

// testColors is the environment of a terminal with 256 colours.
func testColors(name string) string {
	return map[string]string{"TERM": "xterm-256color"}[name]
}
