package profile

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/seed-009c0928/agent/core"
)

//go:embed prompts
var prompts embed.FS

// The names of the profiles.
const (
	NameDefault   = "default"
	NameOpenAI    = "openai"
	NameAnthropic = "anthropic"
	NameGemini    = "gemini"
)

// Options adapt a profile to a user and a model.
type Options struct {
	// Append is the user's own text. It is the last part of the prompt, so that
	// it takes precedence.
	Append string
	// Facts returns what is known about a model; it may be nil.
	Facts func(provider, model string) Facts
	// Bare leaves out the project's documents and the state of its repository.
	Bare bool
}

// Facts are what a prompt says about a model.
type Facts struct {
	Name          string // display name
	Cutoff        string // knowledge cutoff
	ContextWindow int    // tokens
	WindowNote    string // see core.Profile
}

// spec defines a profile.
type spec struct {
	documents []string // read in addition to AGENTS.md
	timeout   time.Duration
	families  []string // prefixes of model names
	providers []string // whose models use the profile, whatever their names
}

func specOf(name string) (spec, bool) {
	switch name {
	case NameDefault:
		return spec{}, true
	case NameOpenAI:
		return spec{
			documents: []string{".codex/instructions.md"},
			providers: []string{"openai"}, families: []string{"gpt-", "codex", "o1", "o3", "o4"},
		}, true
	case NameAnthropic:
		return spec{
			documents: []string{"CLAUDE.md"}, timeout: 120 * time.Second,
			providers: []string{"anthropic"}, families: []string{"claude"},
		}, true
	case NameGemini:
		return spec{
			documents: []string{"GEMINI.md"},
			providers: []string{"gemini"}, families: []string{"gemini"},
		}, true
	}
	return spec{}, false
}

// Names returns the names of all profiles.
func Names() []string { return []string{NameDefault, NameOpenAI, NameAnthropic, NameGemini} }

// For returns the name of the profile for a model, chosen by the model's name or
// else by the provider's.
func For(provider, model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	byProvider := NameDefault
	for _, name := range Names() {
		s, _ := specOf(name)
		if slices.ContainsFunc(s.families, func(part string) bool { return strings.HasPrefix(model, part) }) && !strings.HasPrefix(model, "gpt-oss") {
			return name
		}
		if slices.Contains(s.providers, provider) {
			byProvider = name
		}
	}
	return byProvider
}

// HasTool reports whether sessions with a profile have a tool. Those with a
// profile that is not one of [Names] have all tools.
func HasTool(profile string, tool core.ToolDefinition) bool {
	return len(tool.Profiles) == 0 || slices.Contains(tool.Profiles, profile) || !slices.Contains(Names(), profile)
}

// Default returns the profile for models without a profile of their own.
func Default(opts Options) core.Profile {
	p, _ := New(NameDefault, "", "", opts) // it is one of Names
	return p
}

// New returns a profile for a model. Its prompt has four layers: instructions
// for the model family, the environment, the state of the repository, and the
// project's documents; the session adds the user's own text. Tools are described
// by their definitions. The error lists the profiles.
func New(name, provider, model string, opts Options) (core.Profile, error) {
	s, ok := specOf(name)
	if !ok {
		return core.Profile{}, fmt.Errorf("unknown profile %q: use %s", name, strings.Join(Names(), ", "))
	}
	p := core.Profile{
		Name: name, CommandTimeout: s.timeout, Append: opts.Append,
		Prompt: func(ctx context.Context, req core.PromptRequest) (string, error) {
			return s.prompt(ctx, name, req, opts)
		},
	}
	if opts.Facts != nil {
		facts := opts.Facts(provider, model)
		p.ContextWindow, p.WindowNote = facts.ContextWindow, facts.WindowNote
	}
	return p, nil
}

// prompt joins the layers; later ones take precedence.
func (s spec) prompt(ctx context.Context, name string, req core.PromptRequest, opts Options) (string, error) {
	base, err := baseOf(name)
	if err != nil {
		return "", err
	}
	var facts Facts
	if opts.Facts != nil {
		facts = opts.Facts(req.Provider, req.Model)
	}
	repo := &repository{}
	var documents string
	if !opts.Bare && req.Environment != nil {
		repo = findRepository(ctx, req.Environment)
		documents = readDocuments(ctx, req.Environment, repo.root, append([]string{"AGENTS.md"}, s.documents...)) // while git runs
		repo.git.Wait()
	}
	layers := []string{base, environment(req, repo, facts), repo.snapshot(), documents}
	for i, layer := range layers {
		layers[i] = strings.TrimSpace(layer)
	}
	layers = slices.DeleteFunc(layers, func(layer string) bool { return layer == "" })
	text := strings.Join(layers, "\n\n") + "\n"
	return unique.Make(text).Value(), nil // a thousand sessions of a workspace hold it once
}

// baseOf returns the instructions of a profile: the common ones, with the
// profile's own introduction and its part on files.
func baseOf(name string) (string, error) {
	common, err := prompts.ReadFile("prompts/base.md")
	if err != nil {
		return "", err
	}
	own, err := prompts.ReadFile("prompts/" + name + ".md")
	if err != nil {
		return "", err
	}
	// A checkout may convert the line breaks to CRLF.
	intro, files, _ := strings.Cut(strings.ReplaceAll(string(own), "\r\n", "\n"), "---\n")
	text := strings.ReplaceAll(string(common), "\r\n", "\n")
	return intro + "\n" + strings.Replace(text, "{{files}}", strings.TrimSpace(files), 1), nil
}
