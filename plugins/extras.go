package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// contextTime bounds the time for adding context, while the user waits.
const contextTime = 5 * time.Second

// ContextSources returns the context sources of the plugins with a context
// budget, one per plugin.
func (h *Host) ContextSources() []core.ContextSource {
	list := slices.Clone(h.files)
	for _, p := range h.Plugins() {
		if p.Spec().Context != nil {
			list = append(list, &contextSource{p})
		}
	}
	return list
}

// contextSource is the [core.ContextSource] of a plugin.
type contextSource struct{ plugin *Plugin }

// Context implements [core.ContextSource]. Text is truncated to the budget of
// the plugin and of the request.
func (s *contextSource) Context(ctx context.Context, req core.ContextRequest) ([]core.Block, error) {
	p := s.plugin
	budget := p.Spec().Context
	if budget == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, contextTime)
	defer cancel()
	desc, err := p.describe(ctx)
	if err != nil {
		return nil, err
	}
	tokens := budget.MaxTokens
	if req.Budget > 0 {
		tokens = min(tokens, req.Budget)
	}
	var blocks []core.Block
	var errs []error
	for _, src := range desc.Contexts {
		text, err := p.context(ctx, src.Name, tokens, req)
		if err != nil {
			errs = append(errs, fmt.Errorf("context source %s: %w", src.Name, err))
			continue
		}
		if text == "" {
			continue
		}
		if runes := []rune(text); len(runes) > 4*tokens {
			text = string(runes[:4*tokens])
		}
		tokens -= (len([]rune(text)) + 3) / 4
		blocks = append(blocks, core.Block{Source: "plugin " + p.name + ": " + src.Name, Text: text})
		if tokens <= 0 {
			break
		}
	}
	return blocks, p.wrap(errors.Join(errs...))
}

// context queries one source.
func (p *Plugin) context(ctx context.Context, source string, tokens int, req core.ContextRequest) (string, error) {
	ask := &toolproto.ContextRequest{
		Source: source, Input: req.Input.Text(), MaxTokens: int64(tokens), Session: p.sessionInfo(req.Session), Files: req.Files, Errors: req.Errors,
	}
	for name, n := range req.Sections {
		if ask.Sections == nil {
			ask.Sections = map[string]int64{}
		}
		ask.Sections[name] = int64(n)
	}
	first := &toolproto.HostFrame{Frame: &toolproto.HostFrame_Context{Context: ask}}
	res, err := p.converse(ctx, first, callbacks{})
	if errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("it took longer than %s", contextTime)
	}
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(cleanText(model.Parts(res.Content).Text()))
	if res.Code != "" {
		return "", errors.New(shorten(text, 500))
	}
	return text, nil
}

// Command is a slash command of a plugin.
type Command struct {
	Plugin  string
	Name    string
	Args    string // placeholder for its arguments
	Summary string
	plugin  *Plugin
}

// Reply is the result of a command: a Prompt for the model, or else a Text for
// the user.
type Reply struct{ Text, Prompt string }

// Commands returns the commands of the plugins whose description is known. It
// does not start any.
func (h *Host) Commands() []Command {
	var list []Command
	for _, p := range h.Plugins() {
		p.mu.Lock()
		desc := p.desc
		p.mu.Unlock()
		for _, c := range desc.GetCommands() {
			list = append(list, Command{p.name, c.Name, shorten(cleanLine(c.Args), 60), shorten(cleanLine(c.Description), 100), p})
		}
	}
	return list
}

// Run runs the command.
func (c Command) Run(ctx context.Context, session core.SessionInfo, args string) (Reply, error) {
	first := &toolproto.HostFrame{Frame: &toolproto.HostFrame_Command{Command: &toolproto.CommandRequest{
		Name: c.Name, Args: args, Session: c.plugin.sessionInfo(session),
	}}}
	res, err := c.plugin.converse(ctx, first, callbacks{})
	if err != nil {
		return Reply{}, err
	}
	text := cleanText(model.Parts(res.Content).Text())
	if res.Code != "" {
		return Reply{}, &Error{c.Plugin, errors.New(shorten(text, 1000))}
	}
	var prompt bool
	if err := json.Unmarshal(res.Meta[metaPrompt], &prompt); err == nil && prompt {
		return Reply{Prompt: text}, nil
	}
	return Reply{Text: text}, nil
}
