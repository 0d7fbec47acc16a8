package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-009c0928/agent/core/pdftext"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/registry"
)

// addTools offers all tools but those of plugins and MCP servers.
func (a *Agent) addTools(ctx context.Context) error {
	opts := a.opts
	a.tools = registry.New(registry.Options{Allowed: opts.Allowed, Disallowed: opts.Disallowed})
	a.tables.all = a.tools
	if !opts.NoBuiltins {
		a.builtins = tools.Builtin(tools.Options{Unguarded: opts.UnguardedWrites, PDF: a.pdf()})
		if err := a.tools.AddBuiltin(ctx, a.builtins); err != nil {
			return err
		}
	}
	if !opts.NoBuiltins && !opts.NoSubagents {
		a.subagents = subagent.New(a, subagent.Options{Definitions: opts.Agents, MaxDepth: a.maxDepth(), Notify: a.notify, Lost: a.recordLost})
		if err := a.tools.AddBuiltin(ctx, a.subagents); err != nil {
			return err
		}
	}
	if err := a.addSkills(ctx); err != nil {
		return err
	}
	hostTools := opts.Tools
	if opts.WebSearch {
		hostTools = append(slices.Clone(hostTools), a.webSearch())
	}
	if err := a.tools.AddHost(hostTools...); err != nil {
		return err
	}
	for _, set := range opts.Toolsets {
		if err := a.tools.Add(ctx, set); err != nil {
			return fmt.Errorf("toolset %s: %w", set.Name(), err)
		}
	}
	return nil
}

// pdf returns what reads PDF documents, nil if nothing does.
func (a *Agent) pdf() tools.PDFReader {
	if len(a.opts.PDFCommand) == 0 {
		return nil
	}
	r := &pdftext.Reader{Command: a.opts.PDFCommand, Supervisor: a.commands}
	if o := a.opts.Sandbox; o != nil {
		r.Sandbox = o.Shell
	}
	return r.Read
}
