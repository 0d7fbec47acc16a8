package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// hookPoints are the points of a session at which hooks of plugins run.
var hookPoints = []string{
	string(sdk.SessionStart), string(sdk.SessionEnd), string(sdk.UserPromptSubmit), string(sdk.BeforeModel), string(sdk.PreToolUse),
	string(sdk.PermissionRequest), string(sdk.PermissionDenied), string(sdk.PostToolUse), string(sdk.PostToolUseFailure), string(sdk.SubagentStart),
	string(sdk.SubagentStop), string(sdk.PreCompact), string(sdk.PostCompact), string(sdk.Stop), string(sdk.StopFailure), string(sdk.Notification),
	string(sdk.FileChanged),
}

const (
	maxHooks      = 100
	maxHookText   = 1000 // bytes of a matcher or condition
	maxHookOutput = 1 << 20
)

// checkHooks checks the hooks of a description.
func checkHooks(s *Spec, d *toolproto.Description) error {
	if len(d.Hooks) > maxHooks {
		return fmt.Errorf("it has %d hooks: the maximum is %d", len(d.Hooks), maxHooks)
	}
	seen := map[string]bool{}
	for _, h := range d.Hooks {
		switch name := cleanLine(h.Name); {
		case !toolName().MatchString(h.Name) || seen[h.Name]:
			return fmt.Errorf("hook %q: expected a unique name of letters, digits, _ and -", name)
		case !slices.Contains(s.Manifest.Hooks, h.Event):
			return fmt.Errorf(`hook %q runs at %q, which the manifest in %s does not list in "hooks"`, name, cleanLine(h.Event), SpecFile)
		case len(h.Matcher) > maxHookText || len(h.Condition) > maxHookText:
			return fmt.Errorf("hook %q: its matcher or condition is longer than %d bytes", name, maxHookText)
		case h.TimeoutMs < 0 || h.TimeoutMs > maxTimeout.Milliseconds():
			return fmt.Errorf("hook %q: its timeout is %d ms: the maximum is %s", name, h.TimeoutMs, maxTimeout)
		}
		seen[h.Name] = true
	}
	return nil
}

// Hook is a hook that a plugin serves.
type Hook struct {
	Plugin, Name string
	Event        string
	Matcher      string
	Condition    string        // a permission rule; empty matches all
	Timeout      time.Duration // 0 = the default
	Once         bool
	AllowOnError bool
	plugin       *Plugin
	err          error // why its plugin cannot say which hooks it has
}

// HookPoints returns the points at which plugins have hooks, by their manifests.
func (h *Host) HookPoints() []string {
	var list []string
	for _, lost := range h.lost {
		list = append(list, lost.Event)
	}
	for _, p := range h.Plugins() {
		for _, point := range p.Spec().Manifest.Hooks {
			if !slices.Contains(list, point) {
				list = append(list, point)
			}
		}
	}
	return list
}

// lose notes the hooks that the user approved of a plugin that cannot be used.
func (h *Host) lose(f found, err error) {
	for _, point := range f.hooks {
		h.lost = append(h.lost, Hook{Plugin: f.name, Name: "hooks", Event: point, err: err})
	}
}

// Hooks returns the hooks that plugins have at a point, as they are now. A plugin
// whose hooks are not known is started. If it cannot be, there is a hook that fails in
// their place, so that a guard is not lost; likewise for one that cannot be used.
func (h *Host) Hooks(ctx context.Context, point string) []Hook {
	var list []Hook
	for _, lost := range h.lost {
		if lost.Event == point {
			list = append(list, lost)
		}
	}
	for _, p := range h.Plugins() {
		if !slices.Contains(p.Spec().Manifest.Hooks, point) {
			continue
		}
		desc, err := p.describe(ctx)
		if err != nil {
			list = append(list, Hook{Plugin: p.name, Name: "hooks", Event: point, err: err})
			continue
		}
		for _, d := range desc.Hooks {
			if d.Event == point {
				list = append(list, Hook{
					Plugin: p.name, Name: d.Name, Event: d.Event, Matcher: d.Matcher, Condition: d.Condition, plugin: p,
					Timeout: time.Duration(d.TimeoutMs) * time.Millisecond, Once: d.Once, AllowOnError: d.OnErrorAllow,
				})
			}
		}
	}
	return list
}

// Run runs the hook with the JSON of an event, and returns its JSON, which may be
// empty.
func (h Hook) Run(ctx context.Context, session core.SessionInfo, input json.RawMessage) (json.RawMessage, error) {
	if h.err != nil {
		return nil, h.err
	}
	first := &toolproto.HostFrame{Frame: &toolproto.HostFrame_Hook{Hook: &toolproto.HookRequest{
		Name: h.Name, Event: h.Event, Input: input, Session: h.plugin.sessionInfo(session),
	}}}
	res, err := h.plugin.converse(ctx, first, callbacks{})
	if err != nil {
		return nil, err
	}
	text := model.Parts(res.Content).Text()
	switch {
	case res.Code != "":
		return nil, errors.New(shorten(cleanText(text), 1000))
	case len(text) > maxHookOutput || len(res.Structured) > maxHookOutput:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxHookOutput)
	case len(res.Structured) == 0:
		return json.RawMessage(text), nil
	}
	return res.Structured, nil
}
