package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// tool is a tool of a plugin.
type tool struct {
	plugin *Plugin
	spec   *toolproto.Tool
	def    core.ToolDefinition
}

var _ core.Tool = (*tool)(nil)

func newTool(p *Plugin, spec *toolproto.Tool) *tool {
	t := &tool{plugin: p, spec: spec, def: core.ToolDefinition{
		Name: spec.Name, Description: cleanText(spec.Description), Schema: spec.InputSchema, ReadOnly: spec.ReadOnly,
		Scopes: []core.Scope{core.ScopePlugin}, Timeout: cmp.Or(time.Duration(spec.TimeoutMs)*time.Millisecond, p.host.callTimeout),
	}}
	for _, a := range spec.Access {
		t.def.Scopes = append(t.def.Scopes, core.Scope(a.Scope))
	}
	return t
}

// Definition implements [core.Tool].
func (t *tool) Definition() core.ToolDefinition { return t.def }

// Access implements [core.Tool]. It returns the access to the plugin's tool
// itself, and those that the tool's templates derive from the arguments. If a
// template does not fit the arguments, the access is unknown.
func (t *tool) Access(_ context.Context, call *core.Call) ([]core.Access, error) {
	list := []core.Access{{Scope: core.ScopePlugin, Resource: t.plugin.name + "/" + t.def.Name}}
	if t.spec.AsksModel {
		list = append(list, core.Access{Scope: core.ScopePlugin, Resource: t.plugin.name + "/model"})
	}
	if len(t.spec.Access) == 0 {
		return list, nil
	}
	var args any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, fmt.Errorf("invalid arguments: %w", err)
	}
	for _, a := range t.spec.Access {
		resources, ok := []string{a.Resource}, true
		if a.Arg != "" {
			resources, ok = resourcesAt(args, a.Arg)
		}
		for _, r := range resources {
			access := core.Access{Scope: core.Scope(a.Scope), Resource: r, Recursive: a.Recursive}
			if access.Scope == core.ScopeNetwork {
				host, known := hostOf(r)
				access.Resource, ok = host, ok && known
			}
			list = append(list, access)
		}
		if !ok {
			return append(list, core.UnknownAccess(t.plugin.name+"/"+t.def.Name+": "+a.Scope+" "+a.Arg)...), nil
		}
	}
	return list, nil
}

// resourcesAt returns the string, or list of strings, at a JSON pointer; none if
// nothing is there. For anything else, ok is false.
func resourcesAt(v any, pointer string) (texts []string, ok bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch at := v.(type) {
		case map[string]any:
			if v, ok = at[part]; !ok {
				return nil, true
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 {
				return nil, false
			}
			if i >= len(at) {
				return nil, true
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	switch v := v.(type) {
	case string:
		return []string{v}, v != ""
	case []any:
		for _, e := range v {
			text, isText := e.(string)
			if !isText || text == "" {
				return nil, false
			}
			texts = append(texts, text)
		}
		return texts, true
	}
	return nil, false
}

// Run implements [core.Tool].
func (t *tool) Run(ctx context.Context, call *core.Call) (core.Result, error) {
	first := &toolproto.HostFrame{Frame: &toolproto.HostFrame_Call{Call: &toolproto.Call{
		Id: call.ID, Tool: t.def.Name, Args: call.Args, Session: t.plugin.sessionInfo(call.Session),
	}}}
	p := t.plugin
	requests := 0
	return p.converse(ctx, first, callbacks{
		output: call.Output, progress: call.Progress,
		form: func(ctx context.Context, q *toolproto.Ask) *toolproto.Answer { return p.form(ctx, call, q) },
		sample: func(ctx context.Context, s *toolproto.Sample) *toolproto.Sampled {
			requests++
			return t.sample(ctx, call, s, requests)
		},
		ask: func(ctx context.Context, c *toolproto.Confirm) *toolproto.ConfirmAnswer {
			return p.confirm(ctx, call, c)
		},
	})
}

// sessionInfo describes a session to the plugin, and adds what the user set for it.
func (p *Plugin) sessionInfo(s core.SessionInfo) *toolproto.SessionInfo {
	values, _ := p.settings() // converse reports the error
	return &toolproto.SessionInfo{Id: s.ID, Workspace: s.Dir, AgentPath: s.AgentPath, Settings: values}
}

// confirm asks the user a plugin's question, naming the plugin.
func (p *Plugin) confirm(ctx context.Context, call *core.Call, c *toolproto.Confirm) *toolproto.ConfirmAnswer {
	answer := &toolproto.ConfirmAnswer{Id: c.Id}
	if call.Ask == nil {
		answer.Reason = core.ErrNonInteractive.Error()
		return answer
	}
	a, err := call.Ask(ctx, core.Question{
		Kind: core.QuestionConfirm, Title: fmt.Sprintf("The plugin %s asks: %s", p.name, shorten(cleanLine(c.Title), 200)),
		Detail: shorten(cleanText(c.Detail), 4000), Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
	})
	if err != nil {
		answer.Reason = err.Error()
		return answer
	}
	answer.Yes, answer.Reason = a.Choice == core.ChoiceYes, a.Reason
	return answer
}
