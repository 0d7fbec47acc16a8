package bundles

import (
	"encoding/json"

	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/skills"
)

// Format is the program or specification that a bundle was written for.
type Format string

// The formats.
const (
	Own     Format = "agent"
	Agents  Format = "agent-plugins" // Agent Plugins 1.0, https://agent-plugins.org
	Claude  Format = "claude"
	Gemini  Format = "gemini"
	Codex   Format = "codex"
	Cursor  Format = "cursor"
	Unnamed Format = "folder" // no manifest: Claude Code's layout
)

// Bundle is what a plugin's folder holds.
type Bundle struct {
	Format   Format    `json:"format"`
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	Summary  string    `json:"summary,omitempty"`
	Dir      string    `json:"-"`
	Skills   []Skill   `json:"skills,omitempty"`
	Commands []Command `json:"commands,omitempty"`
	Agents   []Agent   `json:"agents,omitempty"`
	Servers  []Server  `json:"servers,omitempty"`
	Hooks    []Hooks   `json:"hooks,omitempty"`
	// Languages are language servers.
	Languages []Language `json:"languages,omitempty"`
	Settings  []Setting  `json:"settings,omitempty"`
	// Context are the paths of files that are read into each session.
	Context []string `json:"context,omitempty"`
	// Program says that the bundle has a plugin.json with a command.
	Program bool `json:"program,omitempty"`
	// Unusable are the pieces that are left out.
	Unusable []Unusable `json:"unusable,omitempty"`
}

// Skill is a folder with a SKILL.md.
type Skill struct {
	Name    string `json:"name"` // PLUGIN:NAME
	Path    string `json:"path"` // of the folder, "." for the plugin's
	Summary string `json:"summary,omitempty"`
	Scripts bool   `json:"scripts,omitempty"` // it has files beside its text
	// Hooks describe what runs while the skill is active.
	Hooks []string `json:"hooks,omitempty"`
	hooks string   // as in its file
}

// Command is a prompt, used as /PLUGIN:NAME.
type Command struct {
	skills.Command
	Path string `json:"path"`
}

// Agent is an agent type.
type Agent struct {
	subagent.Definition
	Path string `json:"path"`
}

// Server is an MCP server.
type Server struct {
	Name   string     `json:"name"` // PLUGIN_SERVER
	Server mcp.Server `json:"server"`
	Needs  []string   `json:"needs,omitempty"` // environment variables that it gets
}

// Hooks are a file of hooks, or those in a manifest.
type Hooks struct {
	Path string          `json:"path"`
	Data json.RawMessage `json:"data"` // {"hooks": {EVENT: […]}}
	List []Hook          `json:"-"`
}

// Hook is one hook, for display.
type Hook struct {
	Event, Matcher, Kind string
	Does                 string // its command, address or text
}

// Setting is a value that the user enters.
type Setting struct {
	Key         string   `json:"key"`
	Type        string   `json:"type"` // string, number, integer, boolean, directory or file
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Secret      bool     `json:"secret,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Default     string   `json:"default,omitempty"`
	Multiple    bool     `json:"multiple,omitempty"`
	Options     []string `json:"options,omitempty"` // what the value is one of; empty = anything
	Min         *float64 `json:"min,omitempty"`
	Max         *float64 `json:"max,omitempty"`
	Env         string   `json:"env,omitempty"` // variable that processes get it in
}

// Unusable is a piece that is left out, and why.
type Unusable struct {
	Kind   string `json:"kind"` // skill, command, agent, hook, server, language, setting, context, file …
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// String returns the piece and the reason on one line.
func (u Unusable) String() string { return u.Kind + " " + u.Name + ": " + u.Reason }
