//go:build unix

package main

import (
	"context"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/vt"
)

// TestSession records the session of the README and checks its text.
func TestSession(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to build the agent with")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	svg, err := recordSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	text := shown(t, svg)
	for _, want := range []string{
		"agent (devel) · local/scripted · ~/slug", "> The test fails.", "plan · 0 of 4 done", "✓ read_file slug.sh",
		"? Run `sh slug_test.sh`? → yes, for this session", "✗ shell sh slug_test.sh",
		"? Edit slug.sh?", "4 +printf", "y yes, once", "press a key", "? Edit slug.sh? → yes, once", "✓ edit_file slug.sh · +1 −1",
		"plan · 3 of 4 done", "✓ shell sh slug_test.sh", "The test passes.", "local/scripted · default · context 9 %",
	} {
		_, after, ok := strings.Cut(text, want)
		if !ok {
			t.Fatalf("no %q, or not in order, in\n%s", want, text)
		}
		text = after
	}
	if strings.Contains(text, os.TempDir()) {
		t.Errorf("a temporary directory is shown:\n%s", text)
	}
}

// shown returns the text of a picture, which must be well-formed.
func shown(t *testing.T, svg []byte) string {
	t.Helper()
	var b strings.Builder
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if token == nil {
			if err.Error() != "EOF" {
				t.Fatalf("%v\n%s", err, svg)
			}
			return b.String()
		}
		if text, ok := token.(xml.CharData); ok {
			b.Write(text)
		}
	}
}

func TestStyled(t *testing.T) {
	term := vt.New(20, 2)
	term.Write("a \x1b[1;31mb\x1b[0m\x1b[2mc<\x1b[0m   ")
	got := string(picture("x", []line{styled(term.Lines()[0])}))
	if s := styleOf("1;38;2;1;31;2;48;2;16;255;0"); s != (run{fill: "#011f02", back: "#10ff00", bold: true}) {
		t.Errorf("styleOf = %+v", s)
	}
	want := `fill="#e8eaed">a <tspan fill="#f28b82" font-weight="bold">b</tspan><tspan fill="#9aa0a6">c&lt;</tspan></text>`
	if !strings.Contains(got, want) {
		t.Errorf("%s\nhas no %s", got, want)
	}
}
