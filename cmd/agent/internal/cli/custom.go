package cli

import (
	"bytes"
	"context"
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
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/subagent"
)

// places are where a person's own files of a kind may be: those of the project
// come first, and only where it is trusted.
func (s *settings) places(kind string) []place {
	var all []place
	if s.trusted {
		all = append(all, place{"project", filepath.Join(s.dir, ".agent"), kind})
	}
	if s.Home != "" {
		all = append(all, place{"user", s.Home, kind})
	}
	return all
}

// place is a directory of files of a kind.
type place struct{ scope, root, kind string }

// definitions are the kinds of subagents. What is broken is told of and left
// out; a project's goes before a user's of the same name.
func (s *settings) definitions() (all []subagent.Definition, failed []error) {
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

// customCommand is a prompt that is kept in a file and entered as /name.
type customCommand struct {
	name, scope   string
	summary, hint string // what it does; how its arguments look
	body          string
}

// maxCommand bounds a file, in bytes.
const maxCommand = 64 << 10

// customCommands reads the commands of all places.
func (s *settings) customCommands() (all []customCommand, failed []error) {
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
			c.scope = p.scope
			all = append(all, c)
		}
	}
	return all, failed
}

func readCommand(files fs.FS, at string) (customCommand, error) {
	c := customCommand{name: strings.TrimSuffix(path.Base(at), ".md")}
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
	c.body, c.hint = strings.TrimSpace(string(body)), display.OneLine(head.Hint, 60)
	c.summary = display.OneLine(head.Description, 100)
	if c.summary == "" {
		first, _, _ := strings.Cut(c.body, "\n")
		c.summary = display.OneLine(first, 100)
	}
	switch {
	case c.body == "":
		return c, errors.New("it has no text")
	case strings.ContainsAny(c.name, " \t/\\:"):
		return c, fmt.Errorf("the name %q has a space, a slash or a colon in it", c.name)
	}
	return c, nil
}

// prompt puts arguments into the text: $ARGUMENTS is all of them, $1 to $9 are
// its words. Where the text names none, they follow it.
func (c customCommand) prompt(args string) string {
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
	text := strings.NewReplacer(pairs...).Replace(c.body)
	if text == c.body && args != "" {
		text += "\n\n" + args
	}
	return text
}

// expandCommand makes the prompt of a custom command of one that begins with
// its /name or /SCOPE:NAME. Any other stays as it is: it may be a path.
func (s *settings) expandCommand(prompt string) string {
	name, args, ok := cutCommand(prompt)
	if !ok {
		return prompt
	}
	commands, _ := s.customCommands() // a broken one is told of where it is used
	for _, c := range commands {
		if name == c.name || name == c.scope+":"+c.name {
			return c.prompt(args)
		}
	}
	return prompt
}

// withCustom adds the custom commands to the built-in ones.
func withCustom(builtin []tui.Command, custom []customCommand) []tui.Command {
	out := slices.Clone(builtin)
	for _, c := range custom {
		out = withCommand(out, c.scope, tui.Command{
			Name: c.name, Args: c.hint, Summary: c.summary + " (" + c.scope + ")",
			Run: func(_ context.Context, args string) (tui.Result, error) {
				return tui.Result{Prompt: c.prompt(args)}, nil
			},
		})
	}
	return out
}
