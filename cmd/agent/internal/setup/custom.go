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

// folder holds files that users write, such as custom commands.
type folder struct {
	scope string // project or user
	root  string
	name  string // below root
}

// folders returns the folders of a name: the project's, if it is trusted, before
// the user's.
func (s *Setup) folders(name string) []folder {
	var all []folder
	if s.Trusted {
		all = append(all, folder{"project", filepath.Join(s.Dir, ".agent"), name})
	}
	if s.Home != "" {
		all = append(all, folder{"user", s.Home, name})
	}
	return all
}

// Definitions returns the agent types of the project and the user; of two with
// one name, the project's. Invalid ones are left out and reported.
func (s *Setup) Definitions() (all []subagent.Definition, failed []error) {
	for _, f := range s.folders("agents") {
		list, errs := subagent.Load(os.DirFS(f.root), f.name)
		for _, err := range errs {
			failed = append(failed, fmt.Errorf("%s: %w", f.root, err))
		}
		for _, d := range list {
			if !slices.ContainsFunc(all, func(other subagent.Definition) bool { return other.Name == d.Name }) {
				all = append(all, d)
			}
		}
	}
	return all, failed
}

// CustomCommand is a prompt in a file, used as /NAME.
type CustomCommand struct {
	Name, Scope string
	Summary     string
	Hint        string // for its arguments, such as "FILE"
	Body        string
}

// maxCommand limits the size of a file, in bytes.
const maxCommand = 64 << 10

// CustomCommands returns the commands of the project and the user. Invalid ones
// are left out and reported.
func (s *Setup) CustomCommands() (all []CustomCommand, failed []error) {
	for _, f := range s.folders("commands") {
		files := os.DirFS(f.root)
		entries, err := fs.ReadDir(files, f.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("commands in %s: %w", f.root, err))
		}
		for _, e := range entries {
			if e.IsDir() || !strings.HasSuffix(e.Name(), ".md") {
				continue
			}
			c, err := readCommand(files, path.Join(f.name, e.Name()))
			if err != nil {
				failed = append(failed, fmt.Errorf("command %s: %w", filepath.Join(f.root, f.name, e.Name()), err))
				continue
			}
			c.Scope = f.scope
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
		return c, fmt.Errorf("it has %d bytes, more than the limit of %d", len(data), maxCommand)
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
		return c, errors.New("it is empty: expected a prompt")
	case strings.ContainsAny(c.Name, " \t/\\:"):
		return c, fmt.Errorf("invalid name %q: it must not contain spaces, slashes or colons", c.Name)
	}
	return c, nil
}

// Prompt inserts arguments into the text: $ARGUMENTS is all of them, $1 to $9 are
// the words. If the text uses none of these, the arguments are appended.
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

// ExpandCommand returns the prompt of the custom command that a prompt begins
// with, /NAME or /SCOPE:NAME. Any other prompt is returned unchanged: it may begin
// with a path.
func (s *Setup) ExpandCommand(prompt string) string {
	name, args, ok := cutCommand(prompt)
	if !ok {
		return prompt
	}
	commands, _ := s.CustomCommands() // invalid ones are reported by interactive sessions
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
