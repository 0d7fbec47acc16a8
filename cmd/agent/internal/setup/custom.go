package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/frontmatter"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/subagent"
)

// places are where a person's own files of a kind may be: those of the project
// come first, and only where it is trusted.
func (s *Setup) places(kind string) []place {
	var all []place
	if s.Trusted {
		all = append(all, place{"project", filepath.Join(s.Dir, ".agent"), kind})
	}
	if s.Home != "" {
		all = append(all, place{"user", s.Home, kind})
	}
	return all
}

// place is a directory of files of a kind.
type place struct{ scope, root, kind string }

// Definitions are the kinds of subagents. What is broken is told of and left
// out; a project's goes before a user's of the same name.
func (s *Setup) Definitions() (all []subagent.Definition, failed []error) {
	for _, p := range s.places("agents") {
		list, errs := subagent.Load(os.DirFS(p.root), p.kind)
		for _, err := range errs {
			failed = append(failed, fmt.Errorf("%s: %w", p.root, err))
		}
		for _, d := range list {
			if !slices.ContainsFunc(all, func(other subagent.Definition) bool { return other.Name == d.Name }) {
				all = append(all, d)
			}
		}
	}
	return all, failed
}

// CustomCommand is a prompt that is kept in a file and entered as /name.
type CustomCommand struct {
	Name, Scope   string
	Summary, Hint string // what it does; how its arguments look
	Body          string
}

// maxCommand bounds a file, in bytes.
const maxCommand = 64 << 10

// CustomCommands reads the commands of all places.
func (s *Setup) CustomCommands() (all []CustomCommand, failed []error) {
	for _, p := range s.places("commands") {
		files := os.DirFS(p.root)
		entries, err := fs.ReadDir(files, p.kind)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("commands of %s: %w", p.root, err))
		}
		for _, e := range entries {
			if e.IsDir() || !strings.HasSuffix(e.Name(), ".md") {
				continue
			}
			c, err := readCommand(files, path.Join(p.kind, e.Name()))
			if err != nil {
				failed = append(failed, fmt.Errorf("command %s: %w", filepath.Join(p.root, p.kind, e.Name()), err))
				continue
			}
			c.Scope = p.scope
			all = append(all, c)
		}
	}
	return all, failed
}

func readCommand(files fs.FS, at string) (CustomCommand, error) {
	c := CustomCommand{Name: strings.TrimSuffix(path.Base(at), ".md")}
	data, err := fs.ReadFile(files, at)
	if err != nil {
		return c, err
	}
	if len(data) > maxCommand {
		return c, fmt.Errorf("it is longer than %d bytes", maxCommand)
	}
	var head struct {
		Description string `yaml:"description"`
		Hint        string `yaml:"argument-hint"`
	}
	body, err := frontmatter.Parse(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))), &head)
	if err != nil {
		return c, fmt.Errorf("front matter: %w", err)
	}
	c.Body, c.Hint = strings.TrimSpace(string(body)), display.OneLine(head.Hint, 60)
	c.Summary = display.OneLine(head.Description, 100)
	if c.Summary == "" {
		first, _, _ := strings.Cut(c.Body, "\n")
		c.Summary = display.OneLine(first, 100)
	}
	switch {
	case c.Body == "":
		return c, errors.New("it has no text")
	case strings.ContainsAny(c.Name, " \t/\\:"):
		return c, fmt.Errorf("the name %q has a space, a slash or a colon in it", c.Name)
	}
	return c, nil
}

// Prompt puts arguments into the text: $ARGUMENTS is all of them, $1 to $9 are
// its words. Where the text names none, they follow it.
func (c CustomCommand) Prompt(args string) string {
	args = strings.TrimSpace(args)
	words := strings.Fields(args)
	pairs := []string{"$ARGUMENTS", args}
	for i := 1; i <= 9; i++ {
		word := ""
		if i <= len(words) {
			word = words[i-1]
		}
		pairs = append(pairs, fmt.Sprint("$", i), word)
	}
	text := strings.NewReplacer(pairs...).Replace(c.Body)
	if text == c.Body && args != "" {
		text += "\n\n" + args
	}
	return text
}

// ExpandCommand makes the prompt of a custom command of one that begins with
// its /name or /SCOPE:NAME. Any other stays as it is: it may be a path.
func (s *Setup) ExpandCommand(prompt string) string {
	name, args, ok := cutCommand(prompt)
	if !ok {
		return prompt
	}
	commands, _ := s.CustomCommands() // a broken one is told of where it is used
	for _, c := range commands {
		if name == c.Name || name == c.Scope+":"+c.Name {
			return c.Prompt(args)
		}
	}
	return prompt
}

// cutCommand splits a prompt that begins with a slash command into the command's
// name and its arguments.
func cutCommand(prompt string) (name, args string, ok bool) {
	rest, ok := strings.CutPrefix(prompt, "/")
	if i := strings.IndexAny(rest, " \n"); i >= 0 {
		rest, args = rest[:i], strings.TrimSpace(rest[i+1:])
	}
	return rest, args, ok
}
