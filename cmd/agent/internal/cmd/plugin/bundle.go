package plugin

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/plugins/bundles"
)

// showPieces prints all that a bundle holds: what runs, what a model reads, and what
// is left out. Pieces of former are marked as known.
func showPieces(out io.Writer, b, former *bundles.Bundle) {
	known := map[string]bool{}
	if former != nil {
		for _, l := range pieces(former) {
			known[l] = true
		}
	}
	for _, l := range pieces(b) {
		mark := " "
		if former != nil && !known[l] {
			mark = "+"
		}
		showPiece(out, mark, l)
	}
	if former != nil {
		now := pieces(b)
		for _, l := range pieces(former) {
			if !slices.Contains(now, l) {
				showPiece(out, "-", l)
			}
		}
	}
	for _, u := range slices.Concat(b.Unusable, setup.HookProblems(b)) {
		fmt.Fprintf(out, "  not used  %s\n", display.VisibleLine(u.String(), 300))
	}
}

func showPiece(out io.Writer, mark, piece string) {
	what, text, _ := strings.Cut(piece, "\t")
	fmt.Fprintf(out, "%s %-9s %s\n", mark, what, display.VisibleLine(text, 300))
}

// newPieces reports whether a bundle runs, reaches or asks for more than a former one.
func newPieces(b, former *bundles.Bundle) bool {
	if former == nil {
		return true
	}
	known := pieces(former)
	return slices.ContainsFunc(pieces(b), func(l string) bool { return !slices.Contains(known, l) })
}

// pieces describes each piece of a bundle: its kind, a tab and one line.
func pieces(b *bundles.Bundle) (lines []string) {
	add := func(what, format string, args ...any) {
		lines = append(lines, what+"\t"+fmt.Sprintf(format, args...))
	}
	for _, s := range b.Skills {
		note := ""
		if s.Scripts {
			note = " (with files)"
		}
		add("skill", "%s%s  %s", s.Name, note, s.Summary)
		for _, h := range s.Hooks {
			add("hook", "%s, with the skill %s", h, s.Name)
		}
	}
	for _, c := range b.Commands {
		add("command", "/%s  %s", c.Name, c.Summary)
	}
	for _, a := range b.Agents {
		add("agent", "%s  tools: %s", a.Name, cmp.Or(strings.Join(a.Tools, ", "), "all"))
	}
	for _, h := range b.Hooks {
		for _, one := range h.List {
			add("hook", "%s %s: %s %s", one.Event, cmp.Or(one.Matcher, "*"), one.Kind, one.Does)
		}
	}
	for _, s := range b.Servers {
		add("server", "%s", serverLine(s))
		if len(s.Needs) > 0 {
			add("reads", "the environment variables %s", strings.Join(s.Needs, ", "))
		}
	}
	for _, l := range b.Languages {
		add("language", "%s runs %s for %s, confined as other language servers", l.Name, strings.Join(append([]string{l.Command}, l.Args...), " "), strings.Join(cmdutil.SortedKeys(l.Extensions), ", "))
	}
	for _, c := range b.Context {
		add("context", "%s is read into each session", c)
	}
	for _, s := range b.Settings {
		kind := s.Type
		if s.Secret {
			kind = "secret " + kind
		}
		add("setting", "%s (%s)  %s", s.Key, kind, cmp.Or(s.Description, s.Title))
	}
	return lines
}

// serverLine says what a server runs or reaches.
func serverLine(s bundles.Server) string {
	if s.Server.Transport() == mcp.TransportStdio {
		return fmt.Sprintf("%s runs %s, confined to its folder, its data directory and reading the workspace", s.Name, s.Server.Describe())
	}
	host := s.Server.URL
	if u, err := url.Parse(s.Server.URL); err == nil {
		host = u.Host
	}
	return fmt.Sprintf("%s connects to %s", s.Name, host)
}
