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

// ToolInfo is a tool as lists show it.
type ToolInfo struct {
	Name        string          `json:"name"`
	Source      string          `json:"source"`
	ReadOnly    bool            `json:"readOnly"`
	Scopes      []core.Scope    `json:"scopes"`
	Tokens      int             `json:"tokens"`             // that its definition takes in each request, estimated
	Deferred    bool            `json:"deferred,omitempty"` // it is in no request until the model searches for it
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

func ToolInfoOf(e core.Entry) ToolInfo {
	d := e.Tool.Definition()
	return ToolInfo{
		Name: e.ModelName, Source: e.Source, ReadOnly: d.ReadOnly, Scopes: append([]core.Scope{}, d.Scopes...), Description: d.Description,
		Schema: d.Schema, Tokens: registry.Tokens(e), Deferred: e.Deferred,
	}
}

// WithTools opens an agent from settings and flags and hands over its tools.
func WithTools(ctx context.Context, s *cmdutil.IO, sh *Flags, f func(*Setup, *agent.Agent, *core.Snapshot) error) error {
	set, err := sh.Load(s)
	if err != nil {
		return err
	}
	opts := set.AgentOptions(nil)
	opts.Home = "" // nothing is kept
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

func NoTool(name string, snapshot *core.Snapshot) error {
	return cmdutil.Usagef("there is no tool %q; the tools are %s", name, strings.Join(snapshot.Names(), ", "))
}
