package sdk

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Plugin says who a plugin is.
type Plugin struct {
	Name    string // lower-case letters, digits and -, beginning with a letter; as in plugin.json
	Version string // as in plugin.json
	Summary string // one line, for people
	// Manifest is what the plugin's process needs. The host holds it to what
	// plugin.json says.
	Manifest Manifest
	// Extensions are what the plugin offers, together with those given to Serve.
	Extensions []Extension
	// Dynamic, if not nil, is run beside the plugin and may change what it
	// offers on top of Extensions, as often as it likes. ctx ends with the
	// plugin. The plugin.json must say "dynamic": true.
	Dynamic func(ctx context.Context, offer func(...Extension) error)
}

// Manifest is what a plugin's process may do; the zero value is nothing but
// computing. Paths may begin with $WORKSPACE, $HOME or $PLUGIN (the plugin's
// own directory).
type Manifest struct {
	Read    []string // paths
	Write   []string // paths
	Network []string // hosts
	Exec    bool     // starts programs
	Env     []string // names of environment variables
	Secrets []string // the same, whose values are to be hidden in all output
}

// Extension is something that a plugin offers: a [Tool], a [ContextSource] or
// a [Command].
type Extension interface{ register(*offer) error }

// offer is all that a plugin offers at one time.
type offer struct {
	tools    []*tool
	sources  []*source
	commands []*command
}

var (
	pluginName = pattern(`^[a-z][a-z0-9-]{0,39}$`)
	plainName  = pattern(`^[A-Za-z0-9_-]{1,64}$`)
)

// pattern compiles an expression when it is first needed: the agent links this
// package, too, and is not to wait for it.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// newOffer checks a plugin's extensions and puts them together.
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

// describe is what the host is told.
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
	return d
}

// find returns the one of a name in a list of the offer.
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

// ContextRequest is what a context source goes by.
type ContextRequest struct {
	Input     string // what the person said
	MaxTokens int    // what is longer is cut; four characters are about a token
}

// ContextSource offers text that is added to what the person says, such as the
// ticket that a branch is about. An empty text adds nothing. The plugin.json
// must grant it a budget ("context": {"maxTokens": …}).
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

// Reply is what a command comes to: a Prompt that the model gets as if the
// person had written it, or else a Text that the person sees.
type Reply struct{ Text, Prompt string }

// Command offers a command that a person enters as /name. The text args says
// how its arguments look: "CITY [DAYS]".
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

// checkExtension checks what all extensions have.
func checkExtension[T interface{ title() string }](kind, name, description string, noFunc bool, taken []T) error {
	switch _, twice := find(taken, name); {
	case !plainName().MatchString(name):
		return fmt.Errorf("%s %q: a name is made of letters, digits, _ and -, at most 64 of them", kind, name)
	case description == "":
		return fmt.Errorf("%s %q has no description", kind, name)
	case noFunc:
		return fmt.Errorf("%s %q has no function", kind, name)
	case twice:
		return fmt.Errorf("%s %q is there twice", kind, name)
	}
	return nil
}
