package permissions

import (
	"fmt"
	"strings"
)

// RuleArguments returns the page about the arguments that prefix rules do not
// extend to.
func RuleArguments() string {
	var b strings.Builder
	b.WriteString("# Arguments that a rule must name\n\n" +
		"Generated from `permissions/extend.go`. A rule with a final `*`, such as `shell(find *)`, does not extend to these arguments, since they run programs,\n" +
		"load code or write files; such a call is judged as if the rule did not exist. A rule that names the argument does: `shell(find . -delete *)`.\n" +
		"Words only known at run time that may be such an argument are not matched either; `./$x` cannot be one.\n\n" +
		"Programs that run another one (`env`, `timeout`, `xargs`, `nice`, …) are matched only if the rule names that program, and then by its line below:\n" +
		"`shell(timeout 60 go test *)`. The scripts of `sed` and `awk` are parsed. Interpreters run any script file; after a rule that names the script, all its arguments match.\n" +
		"`-` means every argument. `shell(*)` matches everything.\n\n| Program | Arguments |\n| --- | --- |\n")
	code := func(s string) string {
		return "`" + strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == 32 }), "`, `") + "`"
	}
	for _, a := range armedArguments {
		fmt.Fprintf(&b, "| %s | %s |\n", code(strings.ReplaceAll(a.programs, "/", "\u00a0")), code(a.arguments))
	}
	return strings.ReplaceAll(b.String(), "\u00a0", " ")
}
