package setup

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/graph"
	"github.com/seed-009c0928/agent/plugins/lsp"
	"github.com/seed-009c0928/agent/plugins/web"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// BundledPlugins returns the bundled plugins, as their own processes make them:
// each runs in a separate process of this program, with no more rights than any
// other plugin, and has its options from the environment.
func BundledPlugins() cmdutil.Bundled {
	return cmdutil.Bundled{
		"web":   func() sdk.Plugin { return web.Plugin(cmdutil.Version(), web.SearchFromEnv()) },
		"graph": func() sdk.Plugin { return graph.Plugin(cmdutil.Version(), graph.OptionsFromEnv()) },
		"lsp":   func() sdk.Plugin { return lsp.Plugin(cmdutil.Version(), lsp.OptionsFromEnv()) },
	}
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
		Secret: s.pluginSecret,
		Limits: plugins.Limits{MemoryMiB: set.MemoryMB, Processes: set.Processes, CPUSeconds: set.CPUSeconds},
	}
	o.BundledLimits = map[string]plugins.Limits{"lsp": serverLimits(o.Limits)}
	found := s.bundles()
	o.Bundles, o.BrokenBundles = found.list, found.failed
	if self, err := os.Executable(); err == nil {
		o.BundledCommand = []string{self, InternalPlugin}
	}
	if s.Trusted {
		o.Project = filepath.Join(s.Dir, ".agent", "plugins")
	}
	return o
}

// OpenPlugins opens an agent that has nothing but plugins.
func (s *Setup) OpenPlugins(ctx context.Context, o *plugins.Options) (*agent.Agent, error) {
	return agent.Open(ctx, agent.Options{Dir: s.Dir, Version: cmdutil.Version(), Plugins: o, NoBuiltins: true, Subreaper: true})
}

// graphFiles is the number of source files from which graph.enabled auto is on.
const graphFiles = 200

// bundledPlugins returns the bundled plugins that are used here, and the environment
// that their processes are started from.
func (s *Setup) bundledPlugins() ([]sdk.Plugin, []string) {
	environ := os.Environ()
	engine, _ := s.webSearch()
	list := append([]sdk.Plugin{web.Plugin(cmdutil.Version(), engine)}, s.bundled.All("web", "graph", "lsp")...) // their options are in the settings
	if engine.Engine != "" {
		environ = append(environ, engine.Environ()...)
	}
	if s.GraphOff() == "" {
		set := s.Settings.Graph
		o := graph.PluginOptions{Languages: set.Languages, Ignore: set.Ignore, Tokens: set.TokenBudget}
		list, environ = append(list, graph.Plugin(cmdutil.Version(), o)), append(environ, graph.OptionsEnv+"="+o.Encode())
	}
	if o, on := s.languageServers(); on {
		list, environ = append(list, lsp.Plugin(cmdutil.Version(), o)), append(environ, lsp.OptionsEnv+"="+o.Encode())
	}
	return list, environ
}

// GraphOff says why the bundled plugin graph is not used here, and what to do; empty
// if it is.
func (s *Setup) GraphOff() string {
	const turnOn = "`agent config set graph.enabled on` turns it on for the next session."
	switch set := s.Settings.Graph.Enabled; {
	case s.bare:
		return "The graph is a plugin, and `--bare` disables plugins."
	case !s.Settings.Plugins.Enabled:
		return "The graph is a plugin, and plugins are off: `agent config set plugins.enabled true` turns them on for the next session."
	case !s.Environment.Local():
		return "The graph only reads directories of this machine, and this session works elsewhere."
	case set == "off":
		return "The graph is off (setting `graph.enabled`). " + turnOn
	case set == "auto" && !graph.HasFiles(s.Dir, graphFiles):
		return fmt.Sprintf("The graph is off here: without a setting it is on from %d source files. %s", graphFiles, turnOn)
	}
	return ""
}

// webSearch returns the engine that searches the web, if any, and whether the
// model's provider does instead.
func (s *Setup) webSearch() (engine web.Search, byProvider bool) {
	set := s.Settings.Web
	keys := map[string]config.Secret{"brave": set.BraveKey, "tavily": set.TavilyKey, "exa": set.ExaKey, "searxng": {}}
	name := set.Search
	if name == "auto" {
		name = s.autoSearch(keys)
	}
	key, ok := keys[name]
	if !ok {
		return web.Search{}, name == "provider"
	}
	value, _ := key.Reveal(context.Background()) // web_search says that the key is missing
	return web.Search{Engine: name, URL: set.SearchURL, Key: value}, false
}

// autoSearch returns who searches the web; empty is nobody.
func (s *Setup) autoSearch(keys map[string]config.Secret) string {
	if k, err := s.Kind(); err == nil && k.searches != nil && k.searches(&s.Settings.Providers) {
		return "provider"
	}
	for _, name := range []string{"brave", "tavily", "exa"} {
		if keys[name].IsSet() {
			return name
		}
	}
	if s.Settings.Web.SearchURL != "" {
		return "searxng"
	}
	return ""
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
	Unknown  bool              `json:"toolsUnknown,omitempty"` // until its program first runs
	Commands []string          `json:"commands,omitempty"`
	Holds    []string          `json:"holds,omitempty"` // pieces besides the tools: "2 skills"
	Manifest *plugins.Manifest `json:"manifest,omitempty"`
}

// ToolNames lists the tools for users, in one line.
func (i *PluginInfo) ToolNames() string {
	if i.Unknown {
		return "known after its first start"
	}
	return strings.Join(i.Tools, ", ")
}

// PluginOn reports whether the settings enable the plugin with this name.
func (s *Setup) PluginOn(name string) bool {
	return s.Settings.Plugins.Enabled && !slices.Contains(s.Settings.Plugins.Disabled, name)
}

// PluginInfo describes a plugin without starting it.
func (s *Setup) PluginInfo(p *plugins.Plugin) PluginInfo {
	spec, desc := p.Spec(), p.Known()
	info := PluginInfo{
		Name: p.Name(), Version: spec.Version, Scope: p.Scope(), State: "on", Summary: cmp.Or(spec.Summary, desc.GetSummary()),
		Dir: p.Dir(), Tools: []string{}, Unknown: desc == nil, Manifest: &spec.Manifest,
	}
	if !s.PluginOn(p.Name()) {
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

// InstalledInfo describes a plugin without a program.
func (s *Setup) InstalledInfo(b plugins.Installed) PluginInfo {
	info := PluginInfo{
		Name: b.Name, Version: b.Version, Scope: plugins.User, State: "on", Summary: b.Summary, Dir: b.Dir, Tools: []string{}, Holds: BundleInfo(b.Bundle),
	}
	if b.Linked {
		info.Scope = plugins.Linked
	}
	if !s.PluginOn(b.Name) {
		info.State = "off"
	}
	for _, c := range b.Commands {
		info.Commands = append(info.Commands, c.Name)
	}
	return info
}
