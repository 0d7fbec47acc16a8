package root

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

const docsIntro = `# The command line

<!-- Generated from the commands themselves: run ` + "`go test ./cmd/agent/internal/cmd/root -run TestDocs -update`" + `. -->

Names of commands and flags, exit codes and the output on stdout are a contract with scripts. If stdout has data, messages go to stderr. Every command has ` + "`-h`, `--help`" + `. Settings are in [configuration.md](configuration.md), the events of
` + "`--output-format stream-json` in [events.md](events.md)" + `.

## Exit codes

| Code | Meaning |
| --- | --- |
`

// exitCodes documents the exit codes of package cmdutil.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{cmdutil.ExitDone, "done"},
	{cmdutil.ExitError, "any other error; a named thing that does not exist; for `tools call`, a result that is an error; for `doctor`, a check that failed"},
	{cmdutil.ExitUsage, "wrong usage: an unknown command or flag, an invalid value of one, also of a setting (`--set`), no prompt"},
	{cmdutil.ExitConfig, "invalid settings in a file or a variable: an unknown key, an invalid value, a missing file; a missing API key"},
	{cmdutil.ExitProvider, "the provider failed: an invalid key, an unknown model, no connection, an invalid answer"},
	{cmdutil.ExitLimit, "a limit was reached: rounds, turns, tokens, cost, answer length"},
	{cmdutil.ExitDenied, "done, but a tool call was denied"},
	{cmdutil.ExitBlocked, "a task is blocked: it needs you"},
	{cmdutil.ExitExhausted, "a task used up its token budget"},
	{cmdutil.ExitCriteria, "a task used up its beads, and its criteria are not met"},
	{cmdutil.ExitSIGINT, "interrupted (SIGINT): the first Ctrl-C interrupts the running command, the second aborts; the session can be resumed"},
	{cmdutil.ExitSIGTERM, "terminated (SIGTERM, SIGHUP)"},
}

// TestDocs compares docs/cli.md with the commands.
func TestDocs(t *testing.T) {
	want := commandDocs()
	path := docs("cli.md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("%s is not what the commands say; run: go test ./cmd/agent/internal/cmd/root -run TestDocs -update", path)
	}
}

// commandDocs describes the whole command tree in Markdown.
func commandDocs() string {
	var b strings.Builder
	b.WriteString(docsIntro)
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}
	root := newCmd(&cmdutil.IO{}, "")
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		all = append(all, cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	b.WriteString("\n## Commands\n\n| Command | |\n| --- | --- |\n")
	for _, cmd := range all {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "-"), cell(cmd.Short))
	}
	common := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&setup.Flags{}).Register(common, setup.SessionFlags)
	b.WriteString("\n## Shared flags\n\nEach command has those that apply to it. A flag overrides the setting of its kind; without it the setting applies.\n")
	for _, section := range cmdutil.Sections(common) {
		fmt.Fprintf(&b, "\n### %s flags\n", section.Section)
		flagTable(&b, section.Flags, nil)
	}
	for _, cmd := range all {
		commandSection(&b, cmd, common)
	}
	b.WriteString("\nNext: [configuration](configuration.md)\n")
	return b.String()
}

func commandSection(b *strings.Builder, cmd *cobra.Command, common *pflag.FlagSet) {
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	if cmd.Long != "" {
		fmt.Fprintf(b, "%s\n", cmd.Long)
	} else {
		fmt.Fprintf(b, "%s.\n", cmd.Short)
	}
	if cmd.HasSubCommands() && cmd.HasParent() {
		return // the table of all commands has them
	}
	fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `%s`\n", strings.Join(cmd.Aliases, "`, `"))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	flagTable(b, cmd.Flags(), common)
	var shared []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if common.Lookup(f.Name) != nil {
			shared = append(shared, "`--"+f.Name+"`")
		}
	})
	switch n := 0; {
	case len(shared) == 0:
	default:
		common.VisitAll(func(*pflag.Flag) { n++ })
		if len(shared) == n {
			b.WriteString("\nAnd all [shared flags](#shared-flags).\n")
		} else {
			fmt.Fprintf(b, "\nAnd of the [shared flags](#shared-flags): %s.\n", strings.Join(shared, ", "))
		}
	}
}

// flagTable lists the flags that are not among others, if there are any.
func flagTable(b *strings.Builder, flags, others *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || others != nil && others.Lookup(f.Name) != nil {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + "`, `" + name
		}
		def := ""
		if !slices.Contains([]string{"", "0", "false", "[]"}, f.DefValue) {
			def = "`" + f.DefValue + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, def, cell(usage)))
	})
	if len(rows) > 0 {
		b.WriteString("\n| Flag | Default | Meaning |\n| --- | --- | --- |\n" + strings.Join(rows, ""))
	}
}

// cell makes text fit for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`).Replace(text)
}
