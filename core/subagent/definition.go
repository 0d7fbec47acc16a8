package subagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/frontmatter"
)

// Definition is an agent type: a Markdown file with front matter.
//
//	---
//	name: reviewer
//	description: looks for bugs in a change
//	tools: read_file, grep, glob     # or a list; default all
//	disallowedTools: shell           # of these, in the same form
//	model: claude-haiku-4-5          # default that of the parent
//	---
//	You review changes. …
type Definition struct {
	Name        string
	Description string
	Tools       []string // empty = all
	Disallowed  []string // of Tools
	Model       string
	Prompt      string // added to the system prompt
	Path        string // of the file
	Hooks       string // while it works: a JSON object of events, see package core/hooks
}

// maxDefinition is the largest size of a file, in bytes.
const maxDefinition = 64 << 10

// Load reads the definitions below a directory, by path. Invalid ones are left out
// and returned as errors; a missing directory has none.
func Load(files fs.FS, dir string) (all []Definition, failed []error) {
	err := fs.WalkDir(files, dir, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && at == dir:
			return err
		case err != nil:
			failed = append(failed, fmt.Errorf("agents: %w", err))
			return nil
		case e.IsDir() || !strings.HasSuffix(e.Name(), ".md"):
			return nil
		}
		d, err := read(files, at)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("agent %s: %w", at, err))
		case slices.ContainsFunc(all, func(other Definition) bool { return other.Name == d.Name }):
			failed = append(failed, fmt.Errorf("agent %s: the name %s is taken", at, d.Name))
		default:
			all = append(all, d)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = append(failed, fmt.Errorf("agents: %w", err))
	}
	return all, failed
}

func read(files fs.FS, at string) (Definition, error) {
	data, err := fs.ReadFile(files, at)
	if err != nil {
		return Definition{}, err
	}
	if len(data) > maxDefinition {
		return Definition{}, fmt.Errorf("longer than %d bytes", maxDefinition)
	}
	var head struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Tools       any    `yaml:"tools"`
		Disallowed  any    `yaml:"disallowedTools"`
		Model       string `yaml:"model"`
		Hooks       any    `yaml:"hooks"`
	}
	body, err := frontmatter.Parse(data, &head)
	if err != nil {
		return Definition{}, err
	}
	d := Definition{Name: head.Name, Description: strings.TrimSpace(head.Description), Model: head.Model, Prompt: strings.TrimSpace(body), Path: at}
	if d.Name == "" {
		d.Name = strings.TrimSuffix(path.Base(at), ".md")
	}
	if d.Tools, err = toolNames("tools", head.Tools); err != nil {
		return Definition{}, err
	}
	if d.Disallowed, err = toolNames("disallowedTools", head.Disallowed); err != nil {
		return Definition{}, err
	}
	if head.Hooks != nil {
		data, err := json.Marshal(head.Hooks)
		if err != nil {
			return Definition{}, fmt.Errorf("hooks: %w", err)
		}
		d.Hooks = string(data)
	}
	switch {
	case strings.ContainsFunc(d.Name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) || len(d.Name) > 40:
		return Definition{}, fmt.Errorf("invalid name %q: expected at most 40 lower-case letters, digits, - and _", d.Name)
	case d.Description == "":
		return Definition{}, errors.New("description is missing: the model chooses by it")
	case d.Prompt == "":
		return Definition{}, errors.New("the text is missing: say what the agent does and how")
	}
	return d, nil
}

// toolNames reads a list, or comma-separated names.
func toolNames(key string, v any) ([]string, error) {
	var out []string
	switch v := v.(type) {
	case nil:
	case string:
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	case []any:
		for _, one := range v {
			name, ok := one.(string)
			if !ok {
				return nil, fmt.Errorf("%s: %v is not a name", key, one)
			}
			out = append(out, name)
		}
	default:
		return nil, fmt.Errorf("%s: expected a list of names, found %T", key, v)
	}
	return out, nil
}
