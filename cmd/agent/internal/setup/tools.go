package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/registry"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// ToolInfo is the JSON of a tool.
type ToolInfo struct {
	Name        string          `json:"name"`
	Source      string          `json:"source"`
	ReadOnly    bool            `json:"readOnly"`
	Scopes      []core.Scope    `json:"scopes"`
	Tokens      int             `json:"tokens"`             // of its definition in each request, estimated
	Deferred    bool            `json:"deferred,omitempty"` // left out of requests until the model searches for it
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// ToolInfoOf describes a tool.
func ToolInfoOf(e core.Entry) ToolInfo {
	d := e.Tool.Definition()
	return ToolInfo{
		Name: e.ModelName, Source: e.Source, ReadOnly: d.ReadOnly, Scopes: append([]core.Scope{}, d.Scopes...), Description: d.Description,
		Schema: d.Schema, Tokens: registry.Tokens(e), Deferred: e.Deferred,
	}
}

// WithTools opens an agent by settings and flags, which saves nothing, and calls f
// with it and all its tools.
func WithTools(ctx context.Context, s *cmdutil.IO, flags *Flags, f func(*Setup, *agent.Agent, *core.Snapshot) error) error {
	set, err := flags.Load(s)
	if err != nil {
		return err
	}
	opts := set.AgentOptions(flags.Logger(s))
	opts.Home = "" // save nothing
	a, err := set.Environment.OpenAgent(ctx, opts)
	if err != nil {
		return err
	}
	defer a.Close()
	ReportPlugins(s, a)
	snapshot, err := a.Tools().Snapshot(ctx)
	if err != nil {
		fmt.Fprintf(s.Err, "agent: some tools are missing: %v\n", err)
	}
	return f(set, a, snapshot)
}

// NoTool is the error for a tool that does not exist.
func NoTool(name string, snapshot *core.Snapshot) error {
	return fmt.Errorf("no tool %q: expected one of %s", name, strings.Join(snapshot.Names(), ", "))
}
