package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/skills"
)

// folder holds files that users write, such as custom commands.
type folder struct {
	scope  string // project or user
	root   string
	name   string // below root
	claude bool   // written for Claude Code
}

// folders returns the folders of a name: the project's, if it is trusted, before
// the user's, and each before that of Claude Code.
func (s *Setup) folders(name string) []folder {
	var all []folder
	if s.Trusted {
		all = append(all, folder{"project", filepath.Join(s.Dir, ".agent"), name, false})
		if s.Settings.Skills.Claude && s.Dir != s.UserHome {
			all = append(all, folder{"project", filepath.Join(s.Dir, ".claude"), name, true})
		}
	}
	if s.Home != "" {
		all = append(all, folder{"user", s.Home, name, false})
	}
	if s.Settings.Skills.Claude && s.UserHome != "" {
		all = append(all, folder{"user", filepath.Join(s.UserHome, ".claude"), name, true})
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
			if f.claude {
				d = bundles.FromClaude(d)
			}
			if !slices.ContainsFunc(all, func(other subagent.Definition) bool { return other.Name == d.Name }) {
				all = append(all, d)
			}
		}
	}
	return append(all, s.bundleAgents()...), failed
}

// CustomCommand is a prompt in a file, used as /NAME.
type CustomCommand struct {
	Name, Scope string
	Summary     string
	Hint        string   // for its arguments, such as "FILE"
	Arguments   []string // their names
	Body        string
}

// CustomCommands returns the commands of the project and the user. Invalid ones
// are left out and reported.
func (s *Setup) CustomCommands() (all []CustomCommand, failed []error) {
	for _, f := range s.folders("commands") {
		files := os.DirFS(f.root)
		err := fs.WalkDir(files, f.name, func(at string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(at, ".md") {
				return err
			}
			c, err := readCommand(files, f.name, at)
			if err != nil {
				failed = append(failed, fmt.Errorf("command %s: %w", filepath.Join(f.root, filepath.FromSlash(at)), err))
				return nil
			}
			c.Scope = f.scope
			if !slices.ContainsFunc(all, func(o CustomCommand) bool { return o.Name == c.Name && o.Scope == c.Scope }) {
				all = append(all, c)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("commands in %s: %w", f.root, err))
		}
	}
	return append(all, s.bundleCommands()...), failed
}

// readCommand reads a file below a folder.
func readCommand(files fs.FS, dir, at string) (CustomCommand, error) {
	c, err := skills.ReadCommand(files, dir, at)
	return customCommand(c), err
}

func customCommand(c skills.Command) CustomCommand {
	return CustomCommand{
		Name: c.Name, Summary: display.OneLine(c.Summary, 100), Hint: display.OneLine(c.Hint, 60), Arguments: c.Arguments, Body: c.Body,
	}
}

// Prompt inserts arguments into the text, see [skills.Values]. If the text uses
// none, the arguments are appended. Dir is the working directory.
func (c CustomCommand) Prompt(args, dir string) string {
	args = strings.TrimSpace(args)
	text, used := skills.Values{Args: args, Names: c.Arguments, Session: core.SessionInfo{Dir: dir}}.Fill(c.Body)
	if !used && args != "" {
		text += "\n\n" + args
	}
	if len(skills.Embedded(text)) > 0 {
		text += "\n\n[The commands in !`…` were not run: run them with the tool shell, where their output belongs.]"
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
			return c.Prompt(args, s.Dir)
		}
	}
	return prompt
}

// UnknownName says that the /NAME which a prompt begins with is no command, no
// skill, or one that is not used; it is empty if there is nothing to say. The
// prompt may still be meant as it is: it may begin with a path.
func (s *Setup) UnknownName(prompt string) string {
	lib := s.SkillOptions().Library
	name, _, ok := cutCommand(prompt)
	if !ok || lib == nil || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != ':' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return ""
	}
	if _, err := os.Lstat("/" + name); err == nil {
		return ""
	}
	c := lib.Catalog()
	switch skill, ok := c.Find(name); {
	case ok && (skill.State == skills.StateOn || skill.State == skills.StateShadowed):
		return ""
	case ok:
		return display.OneLine(fmt.Sprintf("the skill /%s is not used: %s", name, skill.Why), 500)
	}
	var names []string
	for _, skill := range c.Active() {
		names = append(names, skill.Name)
	}
	commands, _ := s.CustomCommands() // invalid ones are reported by interactive sessions
	for _, c := range commands {
		names = append(names, c.Name)
	}
	text := fmt.Sprintf("there is no skill or command /%s", name)
	if near := jsonpos.Nearest(name, names); near != "" {
		return text + "; did you mean /" + near + "?"
	}
	return text + "; the prompt is used as it is"
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
