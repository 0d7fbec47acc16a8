package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestGuide runs the commands in the "console" blocks of the documentation, one
// shell a page, and compares what they print with what the page says. In the
// output, "…" stands for any text in a line, and alone in a line for any lines.
// Comments of the page prepare what a reader has:
//
//	<!-- file: PATH -->   the next block is this file, which the reader saves
//	<!-- run: COMMANDS --> commands whose output is not shown
//	<!-- model: TURNS -->  what the model answers next, as YAML (see fakeTurn)
//	<!-- shown -->         the next block is not run: it needs what a test has not
//
// With -update, what differs is written to the page, with … for times and IDs.
func TestGuide(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pages show a POSIX shell")
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	commands := 0
	for _, path := range pages(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page, err := parseGuide(string(data))
		if err != nil {
			t.Fatalf("%s:%v", path, err)
		}
		if len(page.shown) == 0 {
			continue
		}
		commands += len(page.shown)
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			t.Parallel()
			page.run(t, shell, path)
		})
	}
	if commands < 20 { // else they are not recognised
		t.Errorf("found %d commands", commands)
	}
}

// guide is what a page tells a reader to do.
type guide struct {
	script strings.Builder // the whole page as a shell script
	turns  strings.Builder // the answers of the model
	shown  []shownCommand
}

// shownCommand is a command with the output that the page shows.
type shownCommand struct {
	line    int
	command string
	output  []string
}

var directive = regexp.MustCompile(`^<!-- (file|run|model|shown)(?:: ?| )`)

// parseGuide reads the blocks and comments of a page.
func parseGuide(text string) (*guide, error) {
	page := &guide{}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	kind, value := "", "" // of the last comment
	for i := 0; i < len(lines); i++ {
		if m := directive.FindStringSubmatch(lines[i]); m != nil {
			end := i + slices.IndexFunc(lines[i:], func(l string) bool { return strings.HasSuffix(l, "-->") })
			if end < i {
				return nil, fmt.Errorf("%d: the comment has no end", i+1)
			}
			kind, value = m[1], strings.TrimSuffix(strings.TrimPrefix(strings.Join(lines[i:end+1], "\n"), m[0]), "-->")
			page.comment(kind, value)
			i = end
			continue
		}
		fence, is := strings.CutPrefix(lines[i], "```")
		if !is {
			continue
		}
		length := slices.IndexFunc(lines[i+1:], func(l string) bool { return strings.HasPrefix(l, "```") })
		if length < 0 {
			return nil, fmt.Errorf("%d: the block has no end", i+1)
		}
		block := lines[i+1 : i+1+length]
		switch {
		case kind == "file":
			page.file(strings.TrimSpace(value), block)
		case fence == "console" && kind != "shown":
			page.console(i+2, block)
		}
		kind = ""
		i += length + 1
	}
	return page, nil
}

func (g *guide) comment(kind, value string) {
	switch kind {
	case "run":
		fmt.Fprintf(&g.script, "{ %s\n} </dev/null >/dev/null\n", value)
	case "model":
		g.turns.WriteString(strings.Trim(value, "\n") + "\n")
	}
}

func (g *guide) file(path string, lines []string) {
	fmt.Fprintf(&g.script, "mkdir -p %q; cat >%q <<'END OF FILE'\n%s\nEND OF FILE\n", filepath.ToSlash(filepath.Dir(path)), path, strings.Join(lines, "\n"))
}

// console adds the commands of a block: the lines with "$ ", continued by those
// with "> ".
func (g *guide) console(at int, lines []string) {
	for i, line := range lines {
		if command, is := strings.CutPrefix(line, "$ "); is {
			g.shown = append(g.shown, shownCommand{line: at + i, command: command})
			continue
		}
		last := &g.shown[len(g.shown)-1]
		if more, is := strings.CutPrefix(line, "> "); is && len(last.output) == 0 {
			last.command += "\n" + more
			continue
		}
		last.output = append(last.output, line)
	}
	for _, c := range g.shown {
		if c.line >= at { // of this block; its status is that of the command before
			fmt.Fprintf(&g.script, "printf '\\001%d\\n'\n(exit $status)\n%s\nstatus=$?\n", c.line, c.command)
		}
	}
}

// run plays the page in an empty directory of a new user.
func (g *guide) run(t *testing.T, shell, path string) {
	t.Helper()
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := filepath.Join(work, "home"), filepath.Join(work, "home", "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	fake := &fakeModel{}
	url, err := fake.start()
	if err != nil {
		t.Fatal(err)
	}
	defer fake.stop()
	err = writeSettings(home, url)
	if g.turns.Len() > 0 {
		err = errors.Join(err, fake.play(project, []byte(g.turns.String())))
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "--norc", "-s")
	cmd.Dir, cmd.Stdin = project, strings.NewReader("exec 2>&1; status=0\n{\n"+g.script.String()+"\n} </dev/null\n")
	cmd.Env = []string{"HOME=" + home, "USERPROFILE=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + work, "LC_ALL=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", path, err, out)
	}
	text := strings.NewReplacer(project, "~/project", home, "~", url, "http://localhost:11434/v1").Replace(string(out))
	g.compare(t, path, text)
}

// compare holds the output of each command against the page.
func (g *guide) compare(t *testing.T, path, text string) {
	t.Helper()
	printed := map[int]string{}
	for _, part := range strings.Split(text, "\x01")[1:] {
		number, output, _ := strings.Cut(part, "\n")
		line, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("%s: the marker %q", path, number)
		}
		printed[line] = output
	}
	for _, c := range slices.Backward(g.shown) { // an update leaves the lines above as they are
		got, ran := printed[c.line]
		if !ran {
			t.Errorf("%s:%d: did not run: %s", path, c.line, c.command)
		} else if want := strings.Join(c.output, "\n"); !sameOutput(want, got) {
			if *update {
				c.write(t, path, got)
				continue
			}
			t.Errorf("%s:%d: $ %s\nprints\n%s\nnot\n%s\nif that is right: go test ./cmd/agent/internal/cmd/root -run TestGuide -update", path, c.line, c.command, got, want)
		}
	}
}

// changing is what differs from run to run.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}|\d{4}-\d\d-\d\dT[0-9:.]+Z|\b[0-9.]+ m?s\b`)

// write puts an output on the page.
func (c shownCommand) write(t *testing.T, path, output string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	at := c.line + strings.Count(c.command, "\n")
	var shown []string
	if output = strings.TrimSpace(changing.ReplaceAllString(output, "…")); output != "" {
		shown = strings.Split(output, "\n")
	}
	if err := os.WriteFile(path, []byte(strings.Join(slices.Replace(lines, at, at+len(c.output), shown...), "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sameOutput compares an output with that on a page.
func sameOutput(want, got string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	pattern = regexp.MustCompile(`(?m)^…$`).ReplaceAllString(pattern, `(?s:.*)`)
	pattern = strings.ReplaceAll(pattern, "…", `.*`)
	trailing := regexp.MustCompile(`(?m)[ \t]+$`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(trailing.ReplaceAllString(strings.TrimSpace(got), ""))
}

// TestSameOutput shows what a page may leave out.
func TestSameOutput(t *testing.T) {
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"a\nb", "a\nb\n", true},
		{"a…c", "abc", true},
		{"a…c", "a\nc", false},
		{"a\n…\nd", "a\nb\nc\nd", true},
		{"a", "a\nb", false},
		{"1.5 s", "125 s", false},
	} {
		if sameOutput(c.want, c.got) != c.same {
			t.Errorf("%q and %q: same should be %v", c.want, c.got, c.same)
		}
	}
}
