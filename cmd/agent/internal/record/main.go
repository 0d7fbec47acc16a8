// Command record runs `agent demo` and writes what it prints as a picture, the
// one in the README:
//
//	go run ./cmd/agent/internal/record
//
// The run is real; only the temporary directory's name is shortened.
package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	columns    = 118 // longer lines are wrapped
	charWidth  = 7.25
	lineHeight = 17
	margin     = 14
)

func main() {
	if err := run(filepath.Join("docs", "demo.svg")); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(target string) error {
	cmd := exec.Command("go", "run", "./cmd/agent", "demo")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go run ./cmd/agent demo, in the root of the repository: %w", err)
	}
	temporary := regexp.MustCompile(`\S*agent-demo-\d+`)
	text := temporary.ReplaceAllString(strings.TrimSpace(string(out)), "/tmp/demo")
	return os.WriteFile(target, picture("$ agent demo\n"+text), 0o644)
}

// picture draws text as a terminal shows it.
func picture(text string) []byte {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, wrap(line)...)
	}
	width, height := columns*charWidth+2*margin, len(lines)*lineHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" role="img" aria-label="agent demo at work">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#16181d"/>`+"\n")
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="12" xml:space="preserve">`+"\n")
	for i, line := range lines {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">`, margin, margin+(i+1)*lineHeight-5, colour(line))
		_ = xml.EscapeText(&b, []byte(line)) // a buffer takes everything
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// colour says what kind of line it is.
func colour(line string) string {
	for mark, c := range map[string]string{
		"$": "#8ab4f8", "●": "#8ab4f8", "  ✓": "#81c995", "  ✗": "#f28b82", "  ?": "#fdd663", "    ": "#9aa0a6", "—": "#9aa0a6",
	} {
		if strings.HasPrefix(line, mark) {
			return c
		}
	}
	return "#e8eaed"
}

func wrap(line string) []string {
	var lines []string
	for runes := []rune(strings.ReplaceAll(line, "\t", "    ")); ; {
		if len(runes) <= columns {
			return append(lines, string(runes))
		}
		cut := columns
		for i := columns; i > columns/2; i-- {
			if runes[i] == ' ' {
				cut = i
				break
			}
		}
		lines = append(lines, string(runes[:cut]))
		runes = []rune(strings.TrimLeft(string(runes[cut:]), " "))
	}
}
