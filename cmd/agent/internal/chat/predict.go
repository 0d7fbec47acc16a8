package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/preview"
)

// maxPredicted limits the files that a prediction reads.
const maxPredicted = 1 << 20

// predict returns what a call probably changes in files of the workspace, for a user
// who decides on it; nothing if that cannot be told. It runs nothing.
func predict(ctx context.Context, env core.Environment, tool, args string) []preview.Change {
	p := &prediction{ctx: ctx, env: env}
	var ok bool
	if tool == "shell" {
		var in struct{ Command string }
		ok = json.Unmarshal([]byte(args), &in) == nil && p.script(in.Command)
	} else {
		ok = p.arguments(args)
	}
	if !ok {
		return nil
	}
	return slices.DeleteFunc(p.changes, func(c preview.Change) bool {
		return (c.Before == nil) == (c.After == nil) && bytes.Equal(c.Before, c.After)
	})
}

// prediction collects changes.
type prediction struct {
	ctx     context.Context
	env     core.Environment
	changes []preview.Change
}

// at returns the change of a file, which is inside the workspace.
func (p *prediction) at(name string) *preview.Change {
	to, err := p.env.Resolve(p.ctx, name)
	if err != nil || !to.Inside || name == "" {
		return nil
	}
	for i := range p.changes {
		if p.changes[i].At == to.Path {
			return &p.changes[i]
		}
	}
	c := preview.Change{Path: name, At: to.Path}
	switch data, err := core.ReadFile(p.ctx, p.env.Files(), name, maxPredicted); {
	case err == nil:
		c.Before, c.After = append([]byte{}, data...), append([]byte{}, data...)
	case !errors.Is(err, fs.ErrNotExist):
		return nil
	}
	p.changes = append(p.changes, c)
	return &p.changes[len(p.changes)-1]
}

func (p *prediction) write(name, text string, add bool) bool {
	c := p.at(name)
	if c == nil {
		return false
	}
	if !add {
		c.After = nil
	}
	c.After = append(append([]byte{}, c.After...), text...)
	return true
}

// arguments predicts a call whose arguments name a file, and its new text or a text to
// replace, under one of the usual names.
func (p *prediction) arguments(args string) bool {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &in) != nil {
		return false
	}
	path, named := argument(in, "path", "file_path", "filePath", "filepath", "file", "filename")
	if !named {
		return false
	}
	if text, ok := argument(in, "content", "contents", "file_text", "fileText", "text"); ok {
		return p.write(path, text, false)
	}
	edits := []map[string]json.RawMessage{in}
	if list, ok := in["edits"]; ok && json.Unmarshal(list, &edits) != nil {
		return false
	}
	c := p.at(path)
	if c == nil || c.Before == nil {
		return false
	}
	for _, e := range edits {
		before, ok := argument(e, "old_string", "oldText", "old_text", "old_str", "search")
		after, also := argument(e, "new_string", "newText", "new_text", "new_str", "replace")
		if !ok || !also || before == "" || bytes.Count(c.After, []byte(before)) != 1 {
			return false
		}
		c.After = bytes.Replace(c.After, []byte(before), []byte(after), 1)
	}
	return len(edits) > 0
}

// argument returns the text of the first argument that is there.
func argument(in map[string]json.RawMessage, names ...string) (text string, ok bool) {
	for _, name := range names {
		if raw, there := in[name]; there {
			return text, json.Unmarshal(raw, &text) == nil
		}
	}
	return "", false
}

// script predicts a script that only writes literal text to files, replaces literal
// text in them, or removes them.
func (p *prediction) script(script string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return false
	}
	return p.statements(file.Stmts)
}

func (p *prediction) statements(list []*syntax.Stmt) bool {
	for _, s := range list {
		if !p.statement(s) {
			return false
		}
	}
	return len(list) > 0
}

func (p *prediction) statement(s *syntax.Stmt) bool {
	if s.Background || s.Negated || s.Coprocess {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.AndStmt && len(s.Redirs) == 0 && p.statement(c.X) && p.statement(c.Y)
	case *syntax.CallExpr:
		var argv []string
		for _, w := range c.Args {
			text, ok := literal(w)
			if !ok {
				return false
			}
			argv = append(argv, text)
		}
		return len(c.Assigns) == 0 && len(argv) > 0 && p.command(argv, s.Redirs)
	}
	return false
}

func (p *prediction) command(argv []string, redirs []*syntax.Redirect) bool {
	input, to, add := "", "", false
	for _, r := range redirs {
		word := r.Word
		switch r.Op {
		case syntax.RdrOut, syntax.AppOut:
			if r.N != nil || to != "" {
				return false
			}
			var ok bool
			if to, ok = literal(word); !ok {
				return false
			}
			add = r.Op == syntax.AppOut
		case syntax.Hdoc:
			var ok bool
			if input, ok = document(r); !ok {
				return false
			}
		default:
			return false
		}
	}
	name, args := argv[0], argv[1:]
	switch {
	case name == "cat" && len(args) == 0 && to != "":
		return p.write(to, input, add)
	case name == "echo" && to != "" && (len(args) == 0 || !strings.HasPrefix(args[0], "-")) && !strings.Contains(strings.Join(args, ""), `\`):
		return p.write(to, strings.Join(args, " ")+"\n", add)
	case name == "tee" && to == "" && len(args) == 1:
		return p.write(args[0], input, false)
	case name == "rm" && len(redirs) == 0:
		return p.remove(args)
	case name == "sed" && len(redirs) == 0 && len(args) > 2 && args[0] == "-i":
		return p.sed(args[1], args[2:])
	}
	return name == "mkdir"
}

func (p *prediction) remove(names []string) bool {
	for _, name := range names {
		if name == "-f" {
			continue
		}
		c := p.at(name)
		if strings.HasPrefix(name, "-") || c == nil || c.Before == nil {
			return false
		}
		c.After = nil
	}
	return true
}

// sed predicts s/BEFORE/AFTER/g with literal texts.
func (p *prediction) sed(script string, names []string) bool {
	if len(script) < 4 || script[0] != 's' {
		return false
	}
	parts := strings.Split(script[2:], script[1:2])
	if len(parts) != 3 || parts[2] != "" && parts[2] != "g" || strings.ContainsAny(parts[0], `\.*[]^$`) || strings.ContainsAny(parts[1], `\&`) || parts[0] == "" {
		return false
	}
	for _, name := range names {
		c := p.at(name)
		if c == nil || c.Before == nil {
			return false
		}
		lines := strings.SplitAfter(string(c.After), "\n")
		for i, line := range lines {
			n := 1
			if parts[2] == "g" {
				n = -1
			}
			lines[i] = strings.Replace(line, parts[0], parts[1], n)
		}
		c.After = []byte(strings.Join(lines, ""))
	}
	return true
}

// document returns the text of a here-document, unless the shell expands something in
// it.
func document(r *syntax.Redirect) (string, bool) {
	quoted := false
	for _, part := range r.Word.Parts {
		if _, plain := part.(*syntax.Lit); !plain {
			quoted = true
		}
	}
	if r.Hdoc == nil {
		return "", true
	}
	return texts(r.Hdoc.Parts, quoted)
}

// texts joins parts that the shell takes as they are. Raw ones may have backslashes.
func texts(parts []syntax.WordPart, raw bool) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || !raw && strings.Contains(lit.Value, "\\") {
			return "", false
		}
		b.WriteString(lit.Value)
	}
	return b.String(), true
}

// literal returns the text of a word in which the shell expands nothing.
func literal(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		text, ok := "", false
		switch part := part.(type) {
		case *syntax.Lit:
			text, ok = part.Value, !strings.ContainsAny(part.Value, "*?[]~\\{}")
		case *syntax.SglQuoted:
			text, ok = part.Value, !part.Dollar
		case *syntax.DblQuoted:
			text, ok = texts(part.Parts, false)
		}
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}
