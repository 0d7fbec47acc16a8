package cmdutil

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestGroup checks that a group neither pretends to be runnable nor accepts
// arguments.
func TestGroup(t *testing.T) {
	run := func(args ...string) (string, error) {
		leaf := &cobra.Command{Use: "list", Short: "List things", RunE: func(*cobra.Command, []string) error { return nil }}
		root := &cobra.Command{Use: "agent", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Group("thing", "Manage things", leaf))
		root.SetUsageFunc(Usage)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(args)
		err := root.Execute()
		return out.String(), err
	}
	help, err := run("thing")
	const want = "Manage things\n\nUsage:\n  agent thing [command]\n\nCommands:\n  list        List things\n"
	if err != nil || !strings.HasPrefix(help, want) || strings.Contains(help, "agent thing [flags]") {
		t.Errorf("error %v, help:\n%s", err, help)
	}
	if help, err := run("thing", "list", "--help"); err != nil || !strings.Contains(help, "\n  agent thing list [flags]\n") {
		t.Errorf("error %v, help:\n%s", err, help)
	}
	_, err = run("thing", "lits")
	if ExitCode(err) != ExitUsage || err.Error() != `unknown command "lits" for "agent thing"; did you mean "list"?` {
		t.Errorf("error %v", err)
	}
}
