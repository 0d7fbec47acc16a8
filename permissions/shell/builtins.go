package shell

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// isKnownName reports whether a function of that name would hide a command
// that is judged here.
func isKnownName(name string) bool {
	_, known := programs[name]
	return known || builtin(name) != nil
}

// builtin returns what judges a command of the shell itself; nil if the name is
// not one.
func builtin(name string) func(*invocation) {
	switch name {
	case "cd":
		return changeDir
	case "eval", "source", ".", "trap":
		return evaluates
	}
	return nil
}

func (in *invocation) wrapper() bool { return false }

func evaluates(in *invocation) {
	in.unclearText(in.cmd.Text, in.cmd.Offset, "runs what is only known when the script runs")
	in.unknown("runs a text as commands")
}

// changeDir judges cd. If it fails, the shell stays where it is.
func changeDir(in *invocation) {
	ok := *in.st
	ok.dirs = in.entered()
	if ok.dirs == nil {
		in.unknown("changes to a directory that is only known when the script runs")
	}
	*in.result = outcome{ok: ok, failed: *in.st}
}

// entered returns the directories that cd may lead to, nil if that is not known.
func (in *invocation) entered() []string {
	args := in.args
	if len(args) > 0 && args[0].exact() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 && in.o.Home != "" {
		return []string{in.o.Home}
	}
	if len(args) != 1 || !args[0].exact() || strings.HasPrefix(args[0].text, "-") || args[0].text == "" {
		return nil
	}
	target := args[0].text
	// Where a link is left by .., shells differ in where that leads.
	if up := strings.LastIndex(target, ".."); up >= 0 && strings.Trim(target[:up], "./") != "" {
		return nil
	}
	if strings.HasPrefix(target, "/") {
		return []string{path.Clean(target)}
	}
	var dirs []string
	for _, dir := range in.st.dirs {
		dirs = joinDirs(append([]string{}, dirs...), []string{path.Join(dir, target)})
	}
	for _, dir := range dirs {
		in.out.Redirects = append(in.out.Redirects, Access{Kind: List, Path: dir, Text: in.cmd.Text, Offset: in.cmd.Offset})
	}
	return dirs
}

func (w *walker) testClause(_ *state, x syntax.TestExpr) {
	w.unclear(x, "is a test that is not judged here")
}
