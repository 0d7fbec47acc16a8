package root

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
)

// TestDocsExamples parses the command lines and settings on all pages of the
// documentation: their commands, flags and keys exist, and values are valid.
func TestDocsExamples(t *testing.T) {
	loaded, err := config.Load(config.LoadOptions{Home: t.TempDir(), Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range examples(string(data)) {
			kind, problems := e.check(t, loaded)
			found[kind]++
			for _, problem := range problems {
				t.Errorf("%s:%d: %v", page, e.line, problem)
			}
		}
	}
	if found["command"] < 200 || found["settings"] < 8 || found["key"] < 100 { // else they are not recognised
		t.Errorf("found %v", found)
	}
}

// check returns what an example shows, "" for something else, and what is wrong with it.
func (e example) check(t *testing.T, loaded *config.Loaded) (kind string, problems []error) {
	t.Helper()
	var problem error
	is := false
	switch e.language {
	case "sh", "inline":
		calls, err := agentCalls(e)
		if err != nil {
			return "command", []error{err}
		}
		for _, args := range calls {
			if err := parses(args); err != nil {
				problems = append(problems, fmt.Errorf("agent %s: %w", strings.Join(args, " "), err))
			}
		}
		return "command", problems
	case "key":
		kind = "key"
		problem, is = keyProblem(loaded, e.text)
	case "json", "jsonc":
		kind = "settings"
		problem, is = settingsProblem(t, e.text)
	}
	if !is {
		return "", nil
	}
	if problem != nil {
		problems = []error{problem}
	}
	return kind, problems
}

// pages are all pages that users read.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{docs("../README.md")}
	err := filepath.WalkDir(docs("."), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && filepath.Base(filepath.Dir(path)) != "decisions" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// example is a block of code on a page, or a command or a setting in a line.
type example struct {
	language string // inline for a command in a line, key for a setting
	text     string
	line     int
}

var (
	inlineCommand = regexp.MustCompile("`(agent [^`]*)`")
	inlineKey     = regexp.MustCompile("`([a-z]+(?:\\.[a-z][a-zA-Z]*)+)`")
)

func examples(page string) (all []example) {
	var block *example
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && block == nil:
			block = &example{language: fence, line: i + 1}
		case isFence:
			all, block = append(all, *block), nil
		case block != nil:
			block.text += line + "\n"
		default:
			for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
				all = append(all, example{"inline", m[1], i + 1})
			}
			for _, m := range inlineKey.FindAllStringSubmatch(line, -1) {
				all = append(all, example{"key", m[1], i + 1})
			}
		}
	}
	return all
}

var (
	optional = regexp.MustCompile(`\[[^\]]*\]`)
	number   = regexp.MustCompile(`\bN\b`)
)

// agentCalls returns the arguments of each call of the agent.
func agentCalls(e example) (calls [][]string, err error) {
	text := strings.ReplaceAll(e.text, "…", "x")
	if e.language == "inline" {
		text = number.ReplaceAllString(optional.ReplaceAllString(text, ""), "1")
	}
	file, err := syntax.NewParser(syntax.KeepComments(false)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, e.text)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		var words []string
		for _, w := range call.Args {
			words = append(words, plainWord(w))
		}
		if i := slices.Index(words, "agent"); i == 0 || i > 0 && slices.Contains([]string{"sudo", "exec", "timeout", "nohup", "strace"}, words[0]) {
			calls = append(calls, words[i+1:])
		}
		return true
	})
	return calls, nil
}

// plainWord returns a word as the shell would, with an x for what it would expand.
func plainWord(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(plainWord(&syntax.Word{Parts: p.Parts}))
		default:
			b.WriteByte('x')
		}
	}
	return b.String()
}

// parses parses a command line as the agent does, and does nothing.
func parses(args []string) error {
	root := newCmd(&cmdutil.IO{}, "")
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if cmd.HasSubCommands() && cmd.HasParent() && cmd.Flags().NArg() > 0 {
		return cobra.NoArgs(cmd, cmd.Flags().Args())
	}
	return nil
}

// keyProblem reports whether a dotted name is meant as a setting, and what is wrong
// with it. Names of telemetry begin with agent, too.
func keyProblem(loaded *config.Loaded, name string) (problem error, is bool) {
	group, _, _ := strings.Cut(name, ".")
	switch {
	case group == "agent", filepath.Ext(name) == ".json", !slices.ContainsFunc(config.Keys(), func(k string) bool { return strings.HasPrefix(k, group+".") }):
		return nil, false
	}
	if slices.ContainsFunc(config.Keys(), func(k string) bool { return strings.HasPrefix(k, name+".") }) {
		return nil, true // a group
	}
	_, err := loaded.Lookup(name)
	return err, true
}

var jsonComment = regexp.MustCompile(`(?m)(^|\s)//.*$`)

// settingsProblem reports whether a block is the content of a settings file, and what
// is wrong with it.
func settingsProblem(t *testing.T, text string) (problem error, is bool) {
	t.Helper()
	var top map[string]json.RawMessage
	if json.Unmarshal([]byte(jsonComment.ReplaceAllString(text, "")), &top) != nil || len(top) == 0 {
		return nil, false
	}
	for key := range top {
		if !slices.ContainsFunc(config.Keys(), func(k string) bool { return k == key || strings.HasPrefix(k, key+".") }) {
			return nil, false // of something else
		}
	}
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(config.LoadOptions{Home: filepath.Dir(file), Cwd: t.TempDir(), SettingsFile: file})
	return err, true
}
