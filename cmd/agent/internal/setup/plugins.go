package setup

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/graph"
	"github.com/seed-009c0928/agent/plugins/web"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// BundledPlugins makes the bundled plugins. Each runs in a separate process of
// this program, with no more rights than any other plugin. Making them takes a
// while: call it when they are needed.
func BundledPlugins() []sdk.Plugin {
	return []sdk.Plugin{web.Plugin(cmdutil.Version()), graph.Plugin(cmdutil.Version(), graph.OptionsFromEnv())}
}

// InternalPlugin is the name of the hidden command that serves a bundled plugin.
const InternalPlugin = "internal-plugin"

// InternalPDF is the name of the hidden command that reads a PDF document.
const InternalPDF = "internal-pdf"

// PluginOptions returns which plugins an agent has and how they run.
func (s *Setup) PluginOptions() *plugins.Options {
	set := s.Settings.Plugins
	bundled, environ := s.bundledPlugins()
	o := &plugins.Options{
		Home: s.Home, Bundled: bundled, Environ: environ, Disabled: set.Disabled, UserHome: s.UserHome, Sandbox: sandbox.Mode(s.Settings.Sandbox.Plugins),
		Idle: time.Duration(set.IdleSeconds) * time.Second, CallTimeout: time.Duration(set.CallSeconds) * time.Second,
		Limits: plugins.Limits{MemoryMiB: set.MemoryMB, Processes: set.Processes, CPUSeconds: set.CPUSeconds},
	}
	if self, err := os.Executable(); err == nil {
		o.BundledCommand = []string{self, InternalPlugin}
	}
	if s.Trusted {
		o.Project = filepath.Join(s.Dir, ".agent", "plugins")
	}
	return o
}

// graphFiles is the number of source files from which graph.enabled auto is on.
const graphFiles = 200

// bundledPlugins returns the bundled plugins that are used here, and the environment
// that their processes are started from.
func (s *Setup) bundledPlugins() ([]sdk.Plugin, []string) {
	set := s.Settings.Graph
	on := set.Enabled == "on" || set.Enabled == "auto" && graph.HasFiles(s.Dir, graphFiles)
	list := slices.DeleteFunc(s.bundled(), func(p sdk.Plugin) bool { return p.Name == "graph" })
	if !on || !s.Environment.Local() {
		return list, nil
	}
	o := graph.PluginOptions{Languages: set.Languages, Ignore: set.Ignore, Tokens: set.TokenBudget}
	return append(list, graph.Plugin(cmdutil.Version(), o)), append(os.Environ(), graph.OptionsEnv+"="+o.Encode())
}

// ReportPlugins prints to stderr why plugins cannot be used.
func ReportPlugins(s *cmdutil.IO, a *agent.Agent) {
	for _, err := range a.PluginErrors() {
		fmt.Fprintf(s.Err, "agent: %s\n", display.OneLine(err.Error(), 1000))
	}
}

// PluginPrompt runs the plugin command that a prompt begins with, /NAME or
// /PLUGIN:NAME, and returns the prompt that it makes. Any other prompt is returned
// unchanged: it may begin with a path.
func PluginPrompt(ctx context.Context, a *agent.Agent, prompt string) (string, error) {
	name, args, ok := cutCommand(prompt)
	if !ok || a.Plugins() == nil {
		return prompt, nil
	}
	list := a.Plugins().Commands()
	i := slices.IndexFunc(list, func(c plugins.Command) bool { return name == c.Name || name == c.Plugin+":"+c.Name })
	if i < 0 {
		return prompt, nil
	}
	reply, err := list[i].Run(ctx, core.SessionInfo{Dir: a.Env().Info().Dir}, args)
	switch {
	case err != nil:
		return "", err
	case reply.Prompt == "":
		return "", fmt.Errorf("/%s replies to you, not to the model: use it in an interactive session", name)
	}
	return reply.Prompt, nil
}

// PluginInfo is the JSON form of a plugin.
type PluginInfo struct {
	Name     string            `json:"name"`
	Version  string            `json:"version,omitempty"`
	Scope    plugins.Scope     `json:"scope,omitempty"`
	State    string            `json:"state"` // on, off or broken
	Problem  string            `json:"problem,omitempty"`
	Summary  string            `json:"summary,omitempty"`
	Dir      string            `json:"dir,omitempty"`
	Tools    []string          `json:"tools"`
	Commands []string          `json:"commands,omitempty"`
	Manifest *plugins.Manifest `json:"manifest,omitempty"`
}

// PluginInfo describes a plugin without starting it.
func (s *Setup) PluginInfo(p *plugins.Plugin) PluginInfo {
	spec, desc := p.Spec(), p.Known()
	info := PluginInfo{
		Name: p.Name(), Version: spec.Version, Scope: p.Scope(), State: "on", Summary: cmp.Or(spec.Summary, desc.GetSummary()),
		Dir: p.Dir(), Tools: []string{}, Manifest: &spec.Manifest,
	}
	if !s.Settings.Plugins.Enabled || slices.Contains(s.Settings.Plugins.Disabled, p.Name()) {
		info.State = "off"
	}
	for _, t := range desc.GetTools() {
		info.Tools = append(info.Tools, t.Name)
	}
	for _, c := range desc.GetCommands() {
		info.Commands = append(info.Commands, c.Name)
	}
	return info
}
