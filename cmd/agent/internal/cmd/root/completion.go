package root

import (
	"context"
	"io"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/sdk/agent"
)

type completionOptions struct{ *cmdutil.IO }

func newCompletionCmd(s *cmdutil.IO) *cobra.Command {
	o := &completionOptions{s}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long: "Print a completion script. For the current shell:  source <(agent completion bash)\n" +
			"For all shells, save it to:\n\n" +
			"  bash        ~/.local/share/bash-completion/completions/agent\n" +
			"  zsh         _agent, in a directory of $fpath\n" +
			"  fish        ~/.config/fish/completions/agent.fish\n" +
			"  powershell  agent completion powershell | Out-String | Invoke-Expression, in $PROFILE",
		Args:      cmdutil.Args(cobra.ExactArgs(1)),
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"},
		RunE:      func(cmd *cobra.Command, args []string) error { return o.run(cmd.Root(), args[0]) },
	}
}

func (o *completionOptions) run(root *cobra.Command, shell string) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(o.Out, true)
	case "zsh":
		return root.GenZshCompletion(o.Out)
	case "fish":
		return root.GenFishCompletion(o.Out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(o.Out)
	}
	return cmdutil.Usagef("unknown shell %q: use bash, zsh, fish or powershell", shell)
}

// completes reports whether a shell is asking for completions.
func completes(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// addCompletions adds completions of arguments and flag values.
func addCompletions(root *cobra.Command, s *cmdutil.IO) {
	sessions := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return sessionIDs(s), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	flags := map[string]cobra.CompletionFunc{
		"resume": sessions, "allowed-tools": fixed(toolNames()), "disallowed-tools": fixed(toolNames()), "tool": fixed(toolNames()),
		"provider": providerNames(s), "model": modelNames(s), "effort": fixed(config.Choices("agent.effort")),
		"permission-mode": fixed(config.Choices("permissions.mode")), "mode": fixed(config.Choices("permissions.mode")),
		"output-format": fixed([]string{string(run.FormatText), string(run.FormatJSON), string(run.FormatStream)}),
		"format":        fixed([]string{"markdown", "json"}),
		"cd":            directories, "add-dir": directories, "cwd": directories,
	}
	arguments := map[string]cobra.CompletionFunc{
		"agent tools show": first(fixed(toolNames())), "agent tools call": first(fixed(toolNames())),
		"agent config get": first(fixed(config.Keys())), "agent config unset": first(fixed(config.Keys())), "agent config set": configArguments,
		"agent sessions show": first(sessions), "agent sessions export": first(sessions), "agent sessions fork": first(sessions),
		"agent sessions repair": first(sessions), "agent sessions delete": sessions,
		"agent permissions log": first(sessions),
		"agent providers test":  first(providerNames(s)), "agent providers setup": first(providerNames(s)),
		"agent trust": directories,
	}
	for cmd := range commandTree(root) {
		if f, ok := arguments[cmd.CommandPath()]; ok && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = f
		}
		for name, f := range flags {
			if cmd.Flags().Lookup(name) != nil {
				// It fails if the command already completes the flag.
				_ = cmd.RegisterFlagCompletionFunc(name, f)
			}
		}
	}
}

// commandTree yields a command and all below it.
func commandTree(cmd *cobra.Command) iter.Seq[*cobra.Command] {
	return func(yield func(*cobra.Command) bool) {
		queue := []*cobra.Command{cmd}
		for len(queue) > 0 && yield(queue[0]) {
			queue = append(queue[1:], queue[0].Commands()...)
		}
	}
}

// first completes only the first argument.
func first(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// configArguments completes a key and, for a key with fixed values, a value.
func configArguments(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return config.Keys(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		return config.Choices(args[0]), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// loaded returns the settings for a completion, nil if they cannot be read.
func loaded(s *cmdutil.IO) *setup.Setup {
	quiet := *s
	quiet.Err = io.Discard
	set, err := (&setup.Flags{}).Load(&quiet)
	if err != nil {
		return nil
	}
	return set
}

func providerNames(s *cmdutil.IO) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		set := loaded(s)
		if set == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return set.Settings.Providers.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}

func modelNames(s *cmdutil.IO) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		set := loaded(s)
		if set == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return set.KnownModels(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// toolNames returns the names of the built-in tools.
func toolNames() []string {
	var names []string
	all, err := tools.Builtin(tools.Options{}).Tools(context.Background())
	if err != nil {
		return nil
	}
	for _, t := range all {
		names = append(names, t.Definition().Name)
	}
	return names
}

// sessionIDs returns the sessions of this directory, then the others, each with
// its first prompt.
func sessionIDs(s *cmdutil.IO) []cobra.Completion {
	home, err := s.AgentHome()
	if err != nil {
		return nil
	}
	list, _ := store.List(agent.SessionsDir(home)) // unreadable ones are left out
	here := s.WorkDir("")
	slices.SortStableFunc(list, func(a, b store.Summary) int {
		switch {
		case a.Cwd == here && b.Cwd != here:
			return -1
		case a.Cwd != here && b.Cwd == here:
			return 1
		}
		return 0
	})
	var ids []cobra.Completion
	for _, l := range list {
		ids = append(ids, cobra.CompletionWithDesc(l.Short, display.OneLine(l.Text, 60)))
	}
	return ids
}

func fixed(words []string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}
