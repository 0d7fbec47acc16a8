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

// Args makes a wrong number of arguments a usage error.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// JSONFlag adds --json to a command.
func JSONFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "json", false, "print JSON")
}

// groupAnnotation marks the commands that Group makes.
const groupAnnotation = "agent_group"

// Group returns a command that only holds others.
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

// CheckHelp is the usage error for help on a command that does not exist, such
// as "agent mcp nonsense --help"; cobra would show the group's help. It returns
// the command that args name.
func CheckHelp(root *cobra.Command, args []string) (*cobra.Command, error) {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return root, nil // the command line fails with the same error
	}
	if _, group := cmd.Annotations[groupAnnotation]; !group {
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

// sectionAnnotation holds the heading of a flag in help.
const sectionAnnotation = "agent_section"

// FlagSection registers flags that help lists under a heading of their own.
func FlagSection(f *pflag.FlagSet, heading string, register func(*pflag.FlagSet)) {
	known := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { known[flag.Name] = true })
	register(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if !known[flag.Name] {
			_ = f.SetAnnotation(flag.Name, sectionAnnotation, []string{heading}) // the flag exists
		}
	})
}

// Section is the flags of a command below one heading of its help.
type Section struct {
	Heading string // "" for the command's own flags
	Flags   *pflag.FlagSet
}

// Sections returns a command's flags by heading, its own flags first, the others
// in the order in which they were registered.
func Sections(flags *pflag.FlagSet) []Section {
	sections := []Section{{Flags: newFlagSet()}}
	flags.SortFlags = false // VisitAll in the order of registration
	flags.VisitAll(func(flag *pflag.Flag) {
		heading := ""
		if a := flag.Annotations[sectionAnnotation]; len(a) > 0 {
			heading = a[0]
		}
		i := slices.IndexFunc(sections, func(s Section) bool { return s.Heading == heading })
		if i < 0 {
			i = len(sections)
			sections = append(sections, Section{heading, newFlagSet()})
		}
		sections[i].Flags.AddFlag(flag)
	})
	return slices.DeleteFunc(sections, func(s Section) bool { return !s.Flags.HasAvailableFlags() })
}

func newFlagSet() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	return f
}

// Usage prints how a command is used: as cobra does, with flags by section.
func Usage(cmd *cobra.Command) error {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && cmd.Annotations[groupAnnotation] == "" {
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
		if s.Heading != "" {
			heading = s.Heading + " flags"
		}
		fmt.Fprintf(&b, "\n%s:\n%s", heading, s.Flags.FlagUsages())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse %q for more about a command.\n", cmd.CommandPath()+" [command] --help")
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}
