package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/seed-009c0928/agent/core/frontmatter"
)

// Command is a prompt in a file, used as /NAME.
type Command struct {
	Name      string   `json:"name"`
	Summary   string   `json:"summary,omitempty"`
	Hint      string   `json:"hint,omitempty"`      // for its arguments, such as "FILE"
	Arguments []string `json:"arguments,omitempty"` // their names
	Body      string   `json:"-"`
}

// maxCommand limits the size of a command's file, in bytes.
const maxCommand = 64 << 10

// ReadCommand reads the command in a Markdown file below a folder: that of
// git/fix.md is git:fix.
func ReadCommand(files fs.FS, dir, at string) (Command, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(at, dir+"/"), ".md")
	data, err := readFile(files, at, maxCommand+1)
	if err != nil {
		return Command{Name: strings.ReplaceAll(name, "/", ":")}, err
	}
	return ParseCommand(name, data)
}

// ParseCommand reads the text of a command with a name such as git/fix.
func ParseCommand(name string, data []byte) (Command, error) {
	c := Command{Name: strings.ReplaceAll(name, "/", ":")}
	if len(data) > maxCommand {
		return c, fmt.Errorf("it has more than the limit of %d bytes", maxCommand)
	}
	var head struct {
		Description string `yaml:"description"`
		Hint        any    `yaml:"argument-hint"` // YAML reads [FILE] as a list
		Arguments   any    `yaml:"arguments"`
	}
	body, err := frontmatter.Parse(data, &head)
	if err != nil {
		return c, err
	}
	c.Body, c.Arguments = strings.TrimSpace(body), commandNames(head.Arguments)
	if head.Hint != nil {
		c.Hint = fmt.Sprint(head.Hint)
	}
	if c.Summary = head.Description; c.Summary == "" {
		c.Summary, _, _ = strings.Cut(c.Body, "\n")
	}
	switch {
	case c.Body == "":
		return c, errors.New("it is empty: expected a prompt")
	case strings.ContainsAny(name, " \t\\:"):
		return c, fmt.Errorf("invalid name %q: it must not contain spaces, slashes or colons", c.Name)
	}
	return c, nil
}

// commandNames reads a list, or names separated by spaces or commas.
func commandNames(v any) (list []string) {
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	for _, one := range all {
		if text, ok := one.(string); ok {
			list = append(list, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })...)
		}
	}
	return list
}
