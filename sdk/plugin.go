package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Plugin describes a plugin. Its life cycle:
//
//  1. When the plugin is added, the host starts it to ask what it offers, and caches
//     the answer. It must not change as long as the plugin's files do not, unless
//     the plugin is Dynamic.
//  2. The host starts the process for the first call. All sessions and subagents of
//     an agent share it; calls run concurrently, each with its own [Context].
//  3. The host ends the process when it has been idle for some minutes or the agent
//     exits. After that, or after a crash, the next call starts it again.
//
// So keep no state in memory that must outlive the process.
type Plugin struct {
	// Name and Version are those in plugin.json. The name is lower-case letters,
	// digits and -, starting with a letter.
	Name    string
	Version string
	Summary string // one line, for users
	// Manifest is what the plugin's process needs. It must not exceed the one in
	// plugin.json, which the user approves and the host enforces.
	Manifest Manifest
	// Extensions are what the plugin offers, together with those given to Serve.
	Extensions []Extension
	// Dynamic, if not nil, runs in the background and can change what the plugin
	// offers besides Extensions: each call of offer replaces what the last one
	// offered. ctx ends with the plugin. The plugin.json must say "dynamic": true.
	Dynamic func(ctx context.Context, offer func(...Extension) error)
}

// Manifest is what a plugin's process may do; the zero value allows only
// computing. Paths may start with $WORKSPACE, $HOME or $PLUGIN (the plugin's own
// directory):
//
//	sdk.Manifest{Read: []string{"$WORKSPACE"}, Network: []string{"api.example.com"}, Secrets: []string{"WEATHER_KEY"}}
type Manifest struct {
	Read    []string // paths
	Write   []string // paths
	Network []string // hosts
	Exec    bool     // starting programs
	Env     []string // names of environment variables
	Secrets []string // the same; their values are hidden in all output
}

// Extension is something that a plugin offers. [Tool], [ContextSource], [Command] and
// [Hook] return extensions; other packages cannot implement it, so that every
// extension can be sent to the host.
type Extension interface{ register(*offer) error }

// offer is everything that a plugin offers at one time.
type offer struct {
	tools    []*tool
	sources  []*source
	commands []*command
	hooks    []*hook
}

const (
	lower   = "abcdefghijklmnopqrstuvwxyz"
	decimal = "0123456789"
)

// isPluginName reports whether a text may be the name of a plugin.
func isPluginName(name string) bool {
	return len(name) <= 40 && name != "" && strings.Contains(lower, name[:1]) && strings.Trim(name, lower+decimal+"-") == ""
}

// isPlainName reports whether a text may be the name of an extension.
func isPlainName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, lower+strings.ToUpper(lower)+decimal+"_-") == ""
}

// newOffer validates and collects a plugin's extensions.
func newOffer(extensions []Extension) (*offer, error) {
	o := &offer{}
	var errs []error
	for i, e := range extensions {
		if e == nil {
			errs = append(errs, fmt.Errorf("extension %d is nil", i+1))
			continue
		}
		if err := e.register(o); err != nil {
			errs = append(errs, err)
		}
	}
	return o, errors.Join(errs...)
}

// describe returns the description for the host.
func (o *offer) describe(p *Plugin) *toolproto.Description {
	d := &toolproto.Description{
		Name: p.Name, Version: p.Version, Summary: p.Summary, Dynamic: p.Dynamic != nil,
		Manifest: &toolproto.Manifest{
			Read: p.Manifest.Read, Write: p.Manifest.Write, Network: p.Manifest.Network,
			Exec: p.Manifest.Exec, Env: p.Manifest.Env, Secrets: p.Manifest.Secrets,
		},
	}
	for _, t := range o.tools {
		d.Tools = append(d.Tools, t.spec)
	}
	for _, s := range o.sources {
		d.Contexts = append(d.Contexts, &toolproto.ContextSource{Name: s.name, Description: s.description})
	}
	for _, c := range o.commands {
		d.Commands = append(d.Commands, &toolproto.Command{Name: c.name, Args: c.args, Description: c.description})
	}
	for _, h := range o.hooks {
		d.Hooks = append(d.Hooks, h.spec)
	}
	return d
}

// find returns the extension with a name.
func find[T interface{ title() string }](list []T, name string) (found T, ok bool) {
	i := slices.IndexFunc(list, func(t T) bool { return t.title() == name })
	if i < 0 {
		return found, false
	}
	return list[i], true
}

// source is a context source.
type source struct {
	name, description string
	fill              func(*Context, ContextRequest) (string, error)
}

// ContextRequest is the request to a context source.
type ContextRequest struct {
	Input     string // of the user
	MaxTokens int    // longer text is truncated; a token is about four characters
	// Files are paths that tools were given in the last run, and Errors what failed
	// in it, the newest last.
	Files  []string
	Errors []string
	// Sections are tokens for parts of the text by name, if the host divides them.
	Sections map[string]int
}

// ContextSource returns an extension that adds text to the user's inputs, such as
// the ticket that the current branch is about. It is asked for every input, so fill
// should be fast, and return an empty string if it has nothing relevant. The
// plugin.json must grant it a budget ("context": {"maxTokens": …}).
func ContextSource(name, description string, fill func(*Context, ContextRequest) (string, error)) Extension {
	return &source{name, description, fill}
}

func (s *source) title() string { return s.name }

func (s *source) register(o *offer) error {
	if err := checkExtension("context source", s.name, s.description, s.fill == nil, o.sources); err != nil {
		return err
	}
	o.sources = append(o.sources, s)
	return nil
}

// command is a slash command.
type command struct {
	name, args, description string
	run                     func(*Context, string) (Reply, error)
}

// Reply is the result of a command: either a Prompt, which is sent to the model as
// the user's input, or a Text, which is shown to the user.
type Reply struct{ Text, Prompt string }

// Command returns an extension that offers a slash command, which the user enters
// as /name ARGS. The text args describes its arguments for help: "CITY [DAYS]".
// Unlike a tool, a command is run by the user, not by the model.
func Command(name, args, description string, run func(ctx *Context, args string) (Reply, error)) Extension {
	return &command{name, args, description, run}
}

func (c *command) title() string { return c.name }

func (c *command) register(o *offer) error {
	if err := checkExtension("command", c.name, c.description, c.run == nil, o.commands); err != nil {
		return err
	}
	o.commands = append(o.commands, c)
	return nil
}

// checkExtension checks what all extensions have in common.
func checkExtension[T interface{ title() string }](kind, name, description string, noFunc bool, taken []T) error {
	switch _, twice := find(taken, name); {
	case !isPlainName(name):
		return fmt.Errorf("%s %q: use only letters, digits, _ and - in the name, at most 64", kind, name)
	case description == "":
		return fmt.Errorf("%s %q has no description", kind, name)
	case noFunc:
		return fmt.Errorf("%s %q has no function", kind, name)
	case twice:
		return fmt.Errorf("duplicate %s %q", kind, name)
	}
	return nil
}
