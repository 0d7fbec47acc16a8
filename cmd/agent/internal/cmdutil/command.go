package cmdutil

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// Args makes a wrong number of arguments a usage error that says which one is not
// expected, or that one is missing.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		more := append(slices.Clone(args), "")
		for n, unexpected := range slices.Backward(args) {
			if check(cmd, more) != nil && check(cmd, args[:n]) == nil {
				return Usagef("unexpected argument %q; usage: %s", unexpected, cmd.UseLine())
			}
		}
		return Usagef("missing argument; usage: %s", cmd.UseLine())
	}
}

// NewHelpCmd returns the command help, which fails for a command that does not exist.
func NewHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help for a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return &UsageError{err}
			}
			if len(rest) > 0 {
				return UnknownCommand(about, rest[0], "")
			}
			return about.Help()
		},
	}
}

// JSONFlag adds --json to a command.
func JSONFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "json", false, "print JSON")
}

// groupAnnotation marks the commands that Group makes.
const groupAnnotation = "agent_group"

// Group returns a command that only has subcommands.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs, Annotations: map[string]string{groupAnnotation: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return UnknownCommand(cmd, args[0], "")
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

func isGroup(cmd *cobra.Command) bool {
	_, ok := cmd.Annotations[groupAnnotation]
	return ok
}

// CheckHelp is the usage error for help on a command that does not exist, such
// as "agent mcp nonsense --help"; cobra would show the group's help. It returns
// the command that args name.
func CheckHelp(root *cobra.Command, args []string) (*cobra.Command, error) {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return root, nil // the command line fails with the same error
	}
	if !isGroup(cmd) {
		return cmd, nil
	}
	for _, word := range rest {
		if !strings.HasPrefix(word, "-") {
			return cmd, UnknownCommand(cmd, word, "")
		}
	}
	return cmd, nil
}

// NearCommand returns the name of the subcommand that a misspelt word most
// likely means, or "".
func NearCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return jsonpos.Nearest(word, names)
}

// UnknownCommand is the usage error for a word that is not a subcommand. The
// hint is what else the word may mean; it may be empty.
func UnknownCommand(cmd *cobra.Command, word, hint string) error {
	text := fmt.Sprintf("unknown command %q", word)
	if cmd.HasParent() {
		text += fmt.Sprintf(" for %q", cmd.CommandPath())
	}
	near := NearCommand(cmd, word)
	if near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	switch {
	case hint != "" && near != "":
		text += " (" + hint + ")"
	case hint != "":
		text += "; " + hint
	}
	return Usagef("%s", text)
}

// Section is a heading below which help lists flags.
type Section string

// The sections, in the order of help. Flags without one come first.
const (
	ownSection        Section = ""
	ServiceSection    Section = "Service"
	SessionSection    Section = "Session"
	OutputSection     Section = "Output"
	ModelSection      Section = "Model"
	PermissionSection Section = "Permission"
	LimitSection      Section = "Limit"
	WorkspaceSection  Section = "Workspace"
	SettingsSection   Section = "Settings"
	DebugSection      Section = "Debugging"
)

// sectionAnnotation holds the section of a flag.
const sectionAnnotation = "agent_section"

// FlagSection puts the flags that register adds into a section of a command's
// help.
func FlagSection(f *pflag.FlagSet, section Section, register func(*pflag.FlagSet)) {
	known := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { known[flag.Name] = true })
	register(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if !known[flag.Name] {
			_ = f.SetAnnotation(flag.Name, sectionAnnotation, []string{string(section)}) // the flag exists
		}
	})
}

// SectionFlags are the flags of one section.
type SectionFlags struct {
	Section Section
	Flags   *pflag.FlagSet
}

// Sections returns the flags of each section that has some.
func Sections(flags *pflag.FlagSet) []SectionFlags {
	var all []SectionFlags
	for _, section := range []Section{
		ownSection, ServiceSection, SessionSection, OutputSection, ModelSection, PermissionSection, LimitSection, WorkspaceSection, SettingsSection, DebugSection,
	} {
		these := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.VisitAll(func(flag *pflag.Flag) {
			if a := flag.Annotations[sectionAnnotation]; len(a) == 0 && section == ownSection || len(a) > 0 && a[0] == string(section) {
				these.AddFlag(flag)
			}
		})
		if these.HasAvailableFlags() {
			all = append(all, SectionFlags{section, these})
		}
	}
	return all
}

// Usage prints the usage of a command as cobra does, with flags by section.
func Usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && !isGroup(cmd) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases:\n  %s\n", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	for _, s := range Sections(cmd.LocalFlags()) {
		heading := "Flags"
		if s.Section != ownSection {
			heading = string(s.Section) + " flags"
		}
		fmt.Fprintf(&b, "\n%s:\n%s", heading, s.Flags.FlagUsages())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse %q for more about a command.\n", cmd.CommandPath()+" [command] --help")
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}
