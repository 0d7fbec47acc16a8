package cmdutil_test

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

func TestLists(t *testing.T) {
	var names, rules []string
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cmdutil.ListVar(f, &names, "names", "`NAMES`")
	cmdutil.RepeatVar(f, &rules, "rule", "`RULE`")
	if err := f.Parse([]string{"--names", `a,"b,c"`, "--rule", "x,y", "--names=d", "--names=", "--rule", ""}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b,c", "d"}; !slices.Equal(names, want) {
		t.Errorf("names: %q, want %q", names, want)
	}
	if want := []string{"x,y", ""}; !slices.Equal(rules, want) {
		t.Errorf("rules: %q, want %q", rules, want)
	}
	if err := f.Parse([]string{"--names", `a"b`}); err == nil {
		t.Error("a quote in a value is accepted")
	}
	if def := pflag.NewFlagSet("", pflag.ContinueOnError); true {
		cmdutil.ListVar(def, new([]string), "names", "")
		if got := def.Lookup("names").DefValue; got != "" {
			t.Errorf("default: %q", got)
		}
	}
}
