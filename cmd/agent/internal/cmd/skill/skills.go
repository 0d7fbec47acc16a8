package skill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/skills"
)

func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("skills", "List, try, install and write skills",
		newSkillsList(s), newSkillsShow(s), newSkillsMatch(s), newSkillsWhy(s), newSkillsLint(s), newSkillsNew(s),
		newSkillsEnable(s, true), newSkillsEnable(s, false),
		newSkillsAdd(s), newSkillsUpdate(s), newSkillsRemove(s), newSkillsVerify(s),
	)
}

// skillFlags are the flags of all commands about skills.
type skillFlags struct {
	*cmdutil.IO
	setup.Flags
	asJSON bool
}

func (o *skillFlags) register(f *pflag.FlagSet) {
	o.Register(f, setup.DirFlag|setup.SettingsFlags)
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
}

// catalog reads the skills. What is wrong with one is told of on stderr.
func (o *skillFlags) catalog() (*setup.Setup, *skills.Library, error) {
	set, err := o.Load(o.IO)
	if err != nil {
		return nil, nil, err
	}
	lib := set.Library()
	c := lib.Catalog()
	for _, p := range c.Problems {
		fmt.Fprintf(o.Err, "agent: %s\n", display.OneLine(p.Error(), 500))
	}
	return set, lib, nil
}

// skillInfo is a skill as lists show it.
type skillInfo struct {
	Name         string              `json:"name"`
	Scope        skills.Scope        `json:"scope"`
	State        skills.State        `json:"state"`
	Why          string              `json:"why,omitempty"`
	Brief        string              `json:"brief"`
	Description  string              `json:"description"`
	Version      string              `json:"version,omitempty"`
	License      string              `json:"license,omitempty"`
	File         string              `json:"file"`
	Installed    bool                `json:"installed"`
	Triggers     skills.Triggers     `json:"triggers"`
	AllowedTools []string            `json:"allowedTools,omitempty"`
	Toolsets     []string            `json:"toolsets,omitempty"`
	Tokens       int                 `json:"tokens"` // of its text, estimated
	Diagnostics  []skills.Diagnostic `json:"diagnostics"`
}

func skillInfoOf(s *skills.Skill) skillInfo {
	return skillInfo{
		Name: s.Name, Scope: s.Scope, State: s.State, Why: s.Why, Brief: s.Brief, Description: s.Description, Version: s.Version, License: s.License,
		File: s.File, Installed: s.Installed, Triggers: s.Triggers, AllowedTools: s.AllowedTools, Toolsets: s.Toolsets,
		Tokens: len(s.Body) / 4, Diagnostics: append([]skills.Diagnostic{}, s.Diagnostics...),
	}
}

func newSkillsList(s *cmdutil.IO) *cobra.Command {
	o := &skillFlags{IO: s}
	cmd := &cobra.Command{
		Use: "list", Short: "List the skills with their scope and state", Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, lib, err := o.catalog()
			if err != nil {
				return err
			}
			infos := []skillInfo{}
			for _, one := range lib.Catalog().Skills {
				infos = append(infos, skillInfoOf(one))
			}
			if o.asJSON {
				return cmdutil.WriteJSON(s.Out, infos)
			}
			return printSkills(s.Out, infos)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func printSkills(out io.Writer, infos []skillInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSCOPE\tSTATE\tTOKENS\tDESCRIPTION")
	for _, i := range infos {
		state := string(i.State)
		if n := len(slices.DeleteFunc(slices.Clone(i.Diagnostics), func(d skills.Diagnostic) bool { return d.Severity == skills.Note })); n > 0 {
			state += fmt.Sprintf(", %s", cmdutil.Plural(n, "warning"))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", i.Name, i.Scope, state, i.Tokens, display.OneLine(i.Brief, 80))
	}
	return w.Flush()
}

func newSkillsShow(s *cmdutil.IO) *cobra.Command {
	o := &skillFlags{IO: s}
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a skill: what it is for, what calls for it, what it may do, and its text", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, lib, err := o.catalog()
			if err != nil {
				return err
			}
			one, err := findSkill(lib.Catalog(), args[0])
			if err != nil {
				return err
			}
			info := skillInfoOf(one)
			info.Diagnostics = one.Lint()
			if o.asJSON {
				return cmdutil.WriteJSON(s.Out, struct {
					skillInfo
					Text string `json:"text"`
				}{info, one.Body})
			}
			return showSkill(s.Out, info, one)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func showSkill(out io.Writer, info skillInfo, one *skills.Skill) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, display.VisibleLine(value, 2000))
		}
	}
	row("Name", one.FullName())
	row("State", strings.TrimSuffix(string(one.State)+": "+one.Why, ": "))
	row("File", one.File)
	row("Description", one.Description)
	row("When", one.WhenToUse)
	row("Version", one.Version)
	row("License", one.License)
	row("Needs", one.Compatibility)
	row("Keywords", strings.Join(one.Triggers.Keywords, ", "))
	row("Verbs", strings.Join(one.Triggers.Verbs, ", "))
	row("Patterns", strings.Join(one.Triggers.Patterns, "  "))
	row("Asks for tools", strings.Join(one.AllowedTools, ", "))
	row("Toolsets", strings.Join(one.Toolsets, ", "))
	row("Tokens", fmt.Sprint(info.Tokens))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, d := range info.Diagnostics {
		fmt.Fprintln(out, display.OneLine(d.Error(), 1000))
	}
	_, err := fmt.Fprintf(out, "\n%s\n", display.Visible(one.Body))
	return err
}

// findSkill finds a skill by its name, and says what there is otherwise.
func findSkill(c *skills.Catalog, name string) (*skills.Skill, error) {
	if one, ok := c.Find(name); ok {
		return one, nil
	}
	var near []string
	for _, m := range c.Matcher().Match(strings.ReplaceAll(name, "-", " "), skills.MatchOptions{Shortlist: 3}).Shortlist {
		near = append(near, m.Skill.Name)
	}
	if len(near) > 0 {
		return nil, fmt.Errorf("there is no skill %q; near it are %s", name, strings.Join(near, ", "))
	}
	return nil, fmt.Errorf("there is no skill %q; agent skills list shows all", name)
}

// matchInfo is what an input calls for.
type matchInfo struct {
	Tier      int         `json:"tier"` // 0 nothing, 1 the breadcrumb, 2 a list, 3 full texts
	Activated []matchLine `json:"activated"`
	Shortlist []matchLine `json:"shortlist"`
	Listed    []string    `json:"listed"`
	Left      int         `json:"left"`   // skills that the list leaves out
	Tokens    int         `json:"tokens"` // that are added to the input, estimated
	Skills    []whyLine   `json:"skills,omitempty"`
}

type matchLine struct {
	Name    string        `json:"name"`
	Scope   string        `json:"scope"`
	Score   float64       `json:"score"`
	By      skills.Reason `json:"by"`
	Trigger string        `json:"trigger,omitempty"`
}

// whyLine says why a skill is disclosed, or why not.
type whyLine struct {
	Name   string `json:"name"`
	Scope  string `json:"scope"`
	Result string `json:"result"` // activated, held, ranked, nothing, or its state
	Reason string `json:"reason"`
}

// matchInput says what an input calls for, by the code that decides in a
// session.
func matchInput(s *setup.Setup, ctx context.Context, lib *skills.Library, text string) (matchInfo, skills.Result, error) {
	o := s.Skills()
	usage := skills.NewUsage(o.Usage)
	info := matchInfo{Activated: []matchLine{}, Shortlist: []matchLine{}, Listed: []string{}}
	source := skills.NewSource(skills.SourceOptions{Library: lib, Max: o.Max, Usage: usage, Exists: func(_ context.Context, path string) bool {
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		_, err := os.Stat(path)
		return err == nil
	}})
	req := core.ContextRequest{Session: core.SessionInfo{Dir: s.Dir}, Input: core.TextInput(text).Content}
	result := source.Match(ctx, req)
	p, err := s.Profile(s.Settings.Providers.Default, s.Loaded.Model())
	if err != nil {
		return info, result, err
	}
	req.Budget = p.ContextWindow / 50
	blocks, err := source.Context(ctx, req)
	if err != nil {
		return info, result, err
	}
	if lib.Breadcrumb() != "" {
		info.Tier = 1
	}
	for _, b := range blocks {
		info.Tokens += len(b.Text) / 4
		switch e := b.Event.(type) {
		case event.SkillActivated:
			info.Tier = 3
		case event.SkillsListed:
			info.Tier, info.Listed, info.Left = max(info.Tier, 2), e.Names, e.Left
		}
	}
	line := func(m skills.Match) matchLine {
		return matchLine{m.Skill.Name, string(m.Skill.Scope), m.Score, m.By, m.Trigger}
	}
	for _, m := range result.Activated {
		info.Activated = append(info.Activated, line(m))
	}
	for _, m := range result.Shortlist {
		info.Shortlist = append(info.Shortlist, line(m))
	}
	return info, result, nil
}

func newSkillsMatch(s *cmdutil.IO) *cobra.Command {
	o := &skillFlags{IO: s}
	cmd := &cobra.Command{
		Use: "match QUERY", Short: "Say which skills an input would bring up", Args: cmdutil.Args(cobra.MinimumNArgs(1)),
		Example: "  agent skills match \"Review the diff of this branch\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			set, lib, err := o.catalog()
			if err != nil {
				return err
			}
			info, _, err := matchInput(set, cmd.Context(), lib, strings.Join(args, " "))
			if err != nil {
				return err
			}
			if o.asJSON {
				return cmdutil.WriteJSON(s.Out, info)
			}
			fmt.Fprintf(s.Out, "%s, %s added to the input\n", []string{"No skill", "Only the breadcrumb", "A list of skills", "Full texts"}[info.Tier], cmdutil.Plural(info.Tokens, "token"))
			for _, m := range info.Activated {
				fmt.Fprintf(s.Out, "  + %s: %s %s\n", m.Name, m.By, display.OneLine(m.Trigger, 200))
			}
			for _, m := range info.Shortlist {
				if !slices.ContainsFunc(info.Activated, func(a matchLine) bool { return a.Name == m.Name }) {
					fmt.Fprintf(s.Out, "  - %s: %.1f by its words: %s\n", m.Name, m.Score, display.OneLine(m.Trigger, 200))
				}
			}
			return nil
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func newSkillsWhy(s *cmdutil.IO) *cobra.Command {
	o := &skillFlags{IO: s}
	cmd := &cobra.Command{
		Use: "why QUERY", Short: "Say of every skill why an input would bring it up, or why not", Args: cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, lib, err := o.catalog()
			if err != nil {
				return err
			}
			info, result, err := matchInput(set, cmd.Context(), lib, strings.Join(args, " "))
			if err != nil {
				return err
			}
			for _, one := range lib.Catalog().Skills {
				info.Skills = append(info.Skills, whySkill(one, result))
			}
			slices.SortStableFunc(info.Skills, func(a, b whyLine) int { return cmp.Compare(whyRank(a.Result), whyRank(b.Result)) })
			if o.asJSON {
				return cmdutil.WriteJSON(s.Out, info)
			}
			w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SKILL\tSCOPE\tRESULT\tREASON")
			for _, l := range info.Skills {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Name, l.Scope, l.Result, display.OneLine(l.Reason, 300))
			}
			return w.Flush()
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// whyRank sorts results: what happened first, what is off last.
func whyRank(result string) int {
	results := []string{"activated", "held", "ranked", "nothing"}
	if i := slices.Index(results, result); i >= 0 {
		return i
	}
	return len(results)
}

// whySkill says what became of a skill.
func whySkill(one *skills.Skill, r skills.Result) whyLine {
	l := whyLine{Name: one.Name, Scope: string(one.Scope), Result: "nothing", Reason: "no trigger and none of its words is in the input"}
	is := func(m skills.Match) bool { return m.Skill == one }
	at := func(list []skills.Match) (skills.Match, bool) {
		i := slices.IndexFunc(list, is)
		if i < 0 {
			return skills.Match{}, false
		}
		return list[i], true
	}
	if one.State != skills.StateOn {
		l.Result, l.Reason = string(one.State), one.Why
		return l
	}
	if m, ok := at(r.Shortlist); ok {
		l.Result, l.Reason = "ranked", fmt.Sprintf("%.1f by its words: %s", m.Score, m.Trigger)
	}
	if m, ok := at(r.HeldBack); ok {
		l.Result, l.Reason = "held", fmt.Sprintf("%s %s calls for it, but %s", m.By, m.Trigger, m.HeldBack)
	}
	if m, ok := at(r.Activated); ok {
		l.Result, l.Reason = "activated", fmt.Sprintf("%s %q", m.By, m.Trigger)
	}
	if demoted := one.Demoted(); len(demoted) > 0 && l.Result != "activated" {
		l.Reason += fmt.Sprintf("; %s only rank, as they fire on ordinary inputs, such as %q", cmdutil.Plural(len(demoted), "trigger"), demoted[0].Trigger)
	}
	return l
}

func newSkillsLint(s *cmdutil.IO) *cobra.Command {
	o := &skillFlags{IO: s}
	cmd := &cobra.Command{
		Use: "lint [PATH…]", Short: "Check skills strictly: all of the project and the person, or those in the folders named",
		Long: "lint reads skills as strictly as it can and prints FILE:LINE:COLUMN: SEVERITY: MESSAGE. Notes are advice; a warning or an error\n" +
			"is exit code 1. It warns of what a person should look at; that it finds nothing proves nothing.",
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := o.lint(args)
			if err != nil {
				return err
			}
			if o.asJSON {
				err = cmdutil.WriteJSON(s.Out, append([]skills.Diagnostic{}, found...))
			} else {
				for _, d := range found {
					fmt.Fprintln(s.Out, display.OneLine(d.Error(), 1000))
				}
			}
			if err == nil && skills.Worst(found) > skills.Note {
				return &cmdutil.StatusError{Code: cmdutil.ExitError}
			}
			return err
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// lint checks the skills in folders, or those that are found.
func (o *skillFlags) lint(paths []string) ([]skills.Diagnostic, error) {
	var found []skills.Diagnostic
	problem := func(err error) error {
		if p := (*skills.Problem)(nil); errors.As(err, &p) {
			found = append(found, p.Diagnostics...)
			return nil
		}
		return err
	}
	if len(paths) == 0 {
		set, err := o.Load(o.IO)
		if err != nil {
			return nil, err
		}
		c := set.Library().Catalog()
		for _, p := range c.Problems {
			found = append(found, p.Diagnostics...)
		}
		for _, one := range c.Skills {
			if one.Scope != skills.ScopeBundled {
				found = append(found, one.Lint()...)
			}
		}
		return found, nil
	}
	for _, at := range paths {
		if !filepath.IsAbs(at) {
			at = filepath.Join(o.Cwd, at)
		}
		one, err := skills.ReadFolder(at)
		if err != nil {
			if err := problem(err); err != nil {
				return nil, err
			}
			continue
		}
		found = append(found, one.Lint()...)
	}
	return found, nil
}

const newSkillText = `---
name: %s
description: Says what this skill does, in one sentence. Use when somebody asks for that.
triggers:
  keywords:        # phrases of two or more words call for the skill; a single word does with a verb near it
    - %s
  verbs: []
---

# %s

1. What to look at first.
2. What to do, step by step, with the commands that work here.
3. How to check that it is done.

Report: what the person wants to know at the end.
`

func newSkillsNew(s *cmdutil.IO) *cobra.Command {
	o := &skillFlags{IO: s}
	project := false
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Make a skill to start from", Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if skills.CleanName(name) != name {
				return cmdutil.Usagef("%q is no name of a skill: letters, digits and hyphens, at most %d of them, such as %q", name, skills.MaxName, cmp.Or(skills.CleanName(name), "release-notes"))
			}
			set, err := o.Load(s)
			if err != nil {
				return err
			}
			folder, err := skillsFolder(set, project)
			if err != nil {
				return err
			}
			file := filepath.Join(folder, name, "SKILL.md")
			if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
				return err
			}
			phrase := strings.ReplaceAll(name, "-", " ")
			if !strings.Contains(phrase, " ") {
				phrase = "do " + phrase + " work"
			}
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s is there already", file)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(f, newSkillText, name, phrase, strings.ToUpper(phrase[:1])+phrase[1:])
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			if o.asJSON {
				return cmdutil.WriteJSON(s.Out, map[string]string{"name": name, "file": file})
			}
			_, err = fmt.Fprintf(s.Out, "%s\nEdit it, then: agent skills lint %s, and agent skills why \"WHAT SOMEBODY MAY SAY\".\n", file, filepath.Dir(file))
			return err
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().BoolVar(&project, "project", false, "make it for this directory, not for yourself")
	return cmd
}

// skillsFolder is where a person's own skills, or the project's, are installed.
func skillsFolder(s *setup.Setup, project bool) (string, error) {
	if project {
		return filepath.Join(s.Dir, ".agent", "skills"), nil
	}
	if s.Home == "" {
		return "", errors.New("there is no home directory to keep skills in: set AGENT_HOME, or use --project")
	}
	return filepath.Join(s.Home, "skills"), nil
}

func newSkillsEnable(s *cmdutil.IO, on bool) *cobra.Command {
	o := &skillFlags{IO: s}
	use, short := "disable NAME…", "Switch skills off, in your settings"
	if on {
		use, short = "enable NAME…", "Switch skills on, in your settings"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cmdutil.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, lib, err := o.catalog()
			if err != nil {
				return err
			}
			if set.Home == "" {
				return errors.New("there is no home directory to keep settings in: set AGENT_HOME")
			}
			for _, name := range args {
				one, err := findSkill(lib.Catalog(), name)
				if err != nil {
					return err
				}
				if err := switchSkill(cmd.Context(), set.Home, one, name, on); err != nil {
					return err
				}
			}
			after, err := o.Load(s)
			if err != nil {
				return err
			}
			now := after.Library().Catalog()
			infos := []skillInfo{}
			for _, name := range args {
				if one, ok := now.Find(name); ok {
					infos = append(infos, skillInfoOf(one))
				}
			}
			if o.asJSON {
				return cmdutil.WriteJSON(s.Out, infos)
			}
			for _, i := range infos {
				fmt.Fprintf(s.Out, "%s:%s is %s%s\n", i.Scope, i.Name, i.State, strings.TrimSuffix(": "+i.Why, ": "))
			}
			return nil
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// switchSkill writes into the person's settings whether a skill is on.
func switchSkill(ctx context.Context, home string, one *skills.Skill, name string, on bool) error {
	without := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return one.Called(n) })
	}
	return config.UserFile(home).Edit(ctx, func(in *config.Settings) []config.Change {
		enable, disable := without(in.Skills.Enable), without(in.Skills.Disable)
		switch {
		case !on:
			disable = append(disable, name)
		case one.Disabled:
			enable = append(enable, name)
		}
		return []config.Change{{Key: "skills.enable", Value: jsonList(enable)}, {Key: "skills.disable", Value: jsonList(disable)}}
	})
}

func jsonList(list []string) string {
	text, _ := json.Marshal(append([]string{}, list...)) // strings always can be
	return string(text)
}
