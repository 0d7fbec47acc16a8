package root

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

const docsNote = "<!-- Generated from the commands themselves: run `go test ./cmd/agent/internal/cmd/root -run TestDocs -update`. -->\n\n"

const docsIntro = "# The command line\n\n" + docsNote + `Names of commands and flags, exit codes and the output on stdout are a contract with scripts. If stdout has data, messages go to stderr. Every command has ` + "`-h`, `--help`" + `. Settings are in [configuration.md](configuration.md), the events of
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
	{cmdutil.ExitParked, "a call or a question waits for an answer (`--on-ask park`): `agent answer` continues the session"},
	{cmdutil.ExitBlocked, "a task is blocked: it needs you"},
	{cmdutil.ExitExhausted, "a task used up its token budget"},
	{cmdutil.ExitCriteria, "a task used up its beads, and its criteria are not met"},
	{cmdutil.ExitSIGINT, "interrupted (SIGINT): the first Ctrl-C interrupts the running command, the second aborts; the session can be resumed"},
	{cmdutil.ExitSIGTERM, "terminated (SIGTERM, SIGHUP)"},
}

// TestDocs compares docs/cli.md and the pages in docs/cli with the commands.
func TestDocs(t *testing.T) {
	const help = "go test ./cmd/agent/internal/cmd/root -run TestDocs -update"
	want := commandDocs()
	old, err := filepath.Glob(docs("cli/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if _, ok := want["cli/"+filepath.Base(path)]; ok {
			continue
		}
		if !*update {
			t.Errorf("%s is of no command; run: %s", path, help)
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range want {
		path := docs(name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v; run: %s", err, help)
		} else if strings.ReplaceAll(string(got), "\r\n", "\n") != text {
			t.Errorf("%s is not what the commands say; run: %s", path, help)
		}
	}
}

// commandDocs describes the whole command tree in Markdown: cli.md, and for each
// command below agent a page, which has its subcommands. It returns them by file.
func commandDocs() map[string]string {
	root := newCmd(&cmdutil.IO{}, "")
	common := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&setup.Flags{}).Register(common, setup.SessionFlags)

	var index strings.Builder
	index.WriteString(docsIntro)
	for _, e := range exitCodes {
		fmt.Fprintf(&index, "| %d | %s |\n", e.code, e.meaning)
	}
	index.WriteString("\n## Commands\n\n| Command | |\n| --- | --- |\n| [`agent`](#agent) | " + cell(root.Short) + " |\n")
	pages := map[string]string{}
	for _, cmd := range root.Commands() {
		if cmd.Hidden {
			continue
		}
		page := "cli/" + cmd.Name() + ".md"
		pages[page] = commandPage(cmd, common)
		fmt.Fprintf(&index, "| [`%s`](%s) | %s |\n", cmd.CommandPath(), page, cell(cmd.Short))
	}
	commandSection(&index, "##", root, common, "")
	index.WriteString("\n## Shared flags\n\nEach command has those that apply to it. A flag overrides the setting of its kind; without it the setting applies.\n")
	for _, section := range cmdutil.Sections(common) {
		fmt.Fprintf(&index, "\n### %s flags\n", section.Section)
		flagTable(&index, section.Flags, nil)
	}
	index.WriteString("\nNext: [configuration](configuration.md)\n")
	pages["cli.md"] = index.String()
	return pages
}

// commandPage describes a command and its subcommands.
func commandPage(cmd *cobra.Command, common *pflag.FlagSet) string {
	var b strings.Builder
	commandSection(&b, "#", cmd, common, "../cli.md")
	var subs []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				subs = append(subs, sub)
				walk(sub)
			}
		}
	}
	walk(cmd)
	if len(subs) > 0 {
		b.WriteString("\n| Command | |\n| --- | --- |\n")
	}
	for _, sub := range subs {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", sub.CommandPath(), strings.ReplaceAll(sub.CommandPath(), " ", "-"), cell(sub.Short))
	}
	for _, sub := range subs {
		commandSection(&b, "##", sub, common, "../cli.md")
	}
	b.WriteString("\nBack: [the command line](../cli.md)\n")
	return b.String()
}

// commandSection describes one command. The shared flags are on the page index.
func commandSection(b *strings.Builder, level string, cmd *cobra.Command, common *pflag.FlagSet, index string) {
	if level != "#" {
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "%s %s\n\n", level, cmd.CommandPath())
	if level == "#" {
		b.WriteString(docsNote)
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "%s\n", cmd.Long)
	} else {
		fmt.Fprintf(b, "%s.\n", cmd.Short)
	}
	if cmd.HasSubCommands() && cmd.HasParent() && !cmd.Flags().HasAvailableFlags() {
		return // a table has them
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
	all := 0
	common.VisitAll(func(*pflag.Flag) { all++ })
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if common.Lookup(f.Name) != nil {
			shared = append(shared, "`--"+f.Name+"`")
		}
	})
	switch len(shared) {
	case 0:
	case all:
		fmt.Fprintf(b, "\nAnd all [shared flags](%s#shared-flags).\n", index)
	default:
		fmt.Fprintf(b, "\nAnd of the [shared flags](%s#shared-flags): %s.\n", index, strings.Join(shared, ", "))
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
