package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/skills"
)

// template is a new SKILL.md: its name, a keyword and a title are filled in.
const template = `---
name: %s
description: Says what this skill does, in one sentence. Use when asked for it.
triggers:
  keywords:        # a phrase of two or more words activates the skill; a single word needs a verb near it
    - %s
  verbs: []
---

# %s

1. What to look at first.
2. What to do, step by step, with the commands that work here.
3. How to check that it is done.

Report: what the user wants to know at the end.
`

type createOptions struct {
	options
	project bool
}

func newCreateCmd(s *cmdutil.IO) *cobra.Command {
	o := &createOptions{options: options{IO: s}}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a skill from a template",
		Args:  cmdutil.Args(cobra.ExactArgs(1)),
		RunE:  func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&o.project, "project", false, "create it in the project (.agent/skills)")
	return cmd
}

func (o *createOptions) run(name string) error {
	if clean := skills.CleanName(name); clean != name {
		return cmdutil.Usagef("invalid skill name %q: expected letters, digits and hyphens, at most %d, such as %q", name, skills.MaxName, cmp.Or(clean, "release-notes"))
	}
	set, err := o.flags.Load(o.IO)
	if err != nil {
		return err
	}
	dir, err := folder(set, o.project)
	if err != nil {
		return err
	}
	file, err := create(filepath.Join(dir, name), name)
	if err != nil {
		return err
	}
	if o.json {
		return cmdutil.WriteJSON(o.Out, map[string]string{"name": name, "file": file})
	}
	_, err = fmt.Fprintf(o.Out, "Created %s\nEdit it, then check it: agent skills lint %s, agent skills why \"PROMPT\"\n", file, filepath.Dir(file))
	return err
}

// create writes the template into a folder, with a phrase that lint accepts, and
// returns the path of the file.
func create(dir, name string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(dir, "SKILL.md")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s already exists", file)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	words := strings.ReplaceAll(name, "-", " ")
	title := strings.ToUpper(words[:1]) + words[1:]
	for _, phrase := range []string{words, "do " + words + " work", "follow the " + words + " checklist"} {
		if err := os.WriteFile(file, fmt.Appendf(nil, template, name, phrase, title), 0o644); err != nil {
			return "", err
		}
		if skill, err := skills.ReadFolder(dir); err != nil || skills.Worst(skill.Lint()) == skills.Note {
			return file, err
		}
	}
	return file, nil
}
