package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Driver is the host of a plugin under test.
type Driver struct {
	Client    toolproto.PluginClient
	Workspace string         // of the session
	Settings  map[string]any // of the user

	desc *toolproto.Description
}

// Result is the result of a sample.
type Result struct {
	Code       sdk.Code
	Text       string // live output and the result's text
	Prompt     bool   // of a command: the text is for the model
	Structured json.RawMessage
	Images     []sdk.Image
	Progress   []string
	Questions  []string // titles
}

// Describe asks for the plugin's description, as a host that has all features.
func (d *Driver) Describe(ctx context.Context) (*toolproto.Description, error) {
	desc, err := d.Client.Describe(ctx, &toolproto.DescribeRequest{
		HostVersion: "plugintest",
		Features:    []string{toolproto.FeatureHooks, toolproto.FeatureSettings, toolproto.FeatureQuestions, toolproto.FeatureModel},
	})
	if err == nil {
		d.desc = desc
	}
	return desc, err
}

// session is what the plugin is told about the session.
func (d *Driver) session() (*toolproto.SessionInfo, error) {
	s := &toolproto.SessionInfo{Id: "plugintest", Workspace: d.Workspace}
	if d.Settings == nil {
		return s, nil
	}
	var err error
	s.Settings, err = json.Marshal(d.Settings)
	return s, err
}

// Run runs a sample and returns its result, whatever the sample expects.
func (d *Driver) Run(ctx context.Context, s Sample) (Result, error) {
	first, err := d.first(s)
	if err != nil {
		return Result{}, err
	}
	return d.converse(ctx, first, s, false)
}

// first returns the frame that begins a sample.
func (d *Driver) first(s Sample) (*toolproto.HostFrame, error) {
	session, err := d.session()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Tool != "":
		call := &toolproto.Call{Id: "sample", Tool: s.Tool, Args: s.Args, Session: session}
		if len(s.Args) == 0 {
			call.Args = []byte("{}")
		}
		return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Call{Call: call}}, nil
	case s.Command != "":
		var args string
		if len(s.Args) > 0 {
			if err := json.Unmarshal(s.Args, &args); err != nil {
				return nil, fmt.Errorf("args of the command %s: expected a string: %w", s.Command, err)
			}
		}
		req := &toolproto.CommandRequest{Name: s.Command, Args: args, Session: session}
		return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Command{Command: req}}, nil
	case s.Context != "":
		req := &toolproto.ContextRequest{Source: s.Context, Input: s.Input, MaxTokens: int64(s.MaxTokens), Session: session}
		return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Context{Context: req}}, nil
	}
	req := &toolproto.HookRequest{Name: s.Hook, Input: s.Event, Session: session}
	for _, h := range d.desc.GetHooks() {
		if h.Name == s.Hook {
			req.Event = h.Event
		}
	}
	if len(req.Input) == 0 {
		req.Input = []byte("{}")
	}
	return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Hook{Hook: req}}, nil
}

// converse opens a session and returns its result, answering what the plugin asks. If
// cancelled is set, it cancels the session right after its start.
func (d *Driver) converse(ctx context.Context, first *toolproto.HostFrame, s Sample, cancelled bool) (res Result, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := d.Client.Session(ctx)
	if err != nil {
		return res, err
	}
	if err := stream.Send(first); err != nil {
		return res, err
	}
	if cancelled { // an error means that it has ended
		_ = stream.Send(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Cancel{Cancel: &toolproto.Cancel{Reason: "test"}}})
	}
	var parts []*toolproto.Part
	for {
		f, err := stream.Recv()
		if err != nil {
			return res, err
		}
		var answer *toolproto.HostFrame
		switch f := f.Frame.(type) {
		case *toolproto.PluginFrame_Progress:
			res.Progress = append(res.Progress, f.Progress.Message)
		case *toolproto.PluginFrame_Output:
			res.Text += string(f.Output.Data)
		case *toolproto.PluginFrame_Confirm:
			res.Questions = append(res.Questions, f.Confirm.Title)
			answer = &toolproto.HostFrame{Frame: &toolproto.HostFrame_Confirm{Confirm: &toolproto.ConfirmAnswer{Id: f.Confirm.Id, Yes: !s.Decline}}}
		case *toolproto.PluginFrame_Ask:
			res.Questions = append(res.Questions, f.Ask.Title)
			answer = s.answer(f.Ask)
		case *toolproto.PluginFrame_Sample:
			answer = d.sampled(s, f.Sample)
		case *toolproto.PluginFrame_Part:
			if n := len(parts); n > 0 && parts[n-1].More {
				parts[n-1].Data, parts[n-1].More = append(parts[n-1].Data, f.Part.Data...), f.Part.More
			} else {
				parts = append(parts, f.Part)
			}
		case *toolproto.PluginFrame_Result:
			res.finish(parts, f.Result)
			return res, nil
		}
		if answer != nil {
			if err := stream.Send(answer); err != nil && !errors.Is(err, io.EOF) { // then Recv returns the cause, or the result
				return res, err
			}
		}
	}
}

// answer answers a form, as a host does: one that it could not show is declined.
func (s Sample) answer(q *toolproto.Ask) *toolproto.HostFrame {
	a := &toolproto.Answer{Id: q.Id}
	var form struct {
		Type       string
		Properties map[string]any
	}
	switch err := json.Unmarshal(q.Schema, &form); {
	case err != nil || form.Type != "object" || len(form.Properties) == 0:
		a.Reason = `the form is invalid: expected "type": "object" with properties`
	case s.Answers == nil || s.Decline:
	default:
		if values, err := json.Marshal(s.Answers); err != nil {
			a.Reason = err.Error()
		} else {
			a.Answered, a.Values = true, values
		}
	}
	return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Answer{Answer: a}}
}

// sampled answers a request to the model.
func (d *Driver) sampled(s Sample, q *toolproto.Sample) *toolproto.HostFrame {
	a := &toolproto.Sampled{Id: q.Id, Model: "test", Code: string(sdk.Permission)}
	declared := slices.ContainsFunc(d.desc.GetTools(), func(t *toolproto.Tool) bool { return t.Name == s.Tool && t.AsksModel })
	switch {
	case !declared:
		a.Text = "a plugin can ask the model only during a call of a tool that declares it"
	case len(q.Messages) == 0:
		a.Code, a.Text = string(sdk.Validation), "expected messages"
	case s.Model == nil:
		a.Text = "there is no model to ask"
	default:
		prompt := sdk.Prompt{System: q.System, MaxTokens: int(q.MaxTokens)}
		for _, m := range q.Messages {
			prompt.Messages = append(prompt.Messages, sdk.Message{Assistant: m.Assistant, Text: m.Text})
		}
		text, err := s.Model(prompt)
		if a.Code, a.Text = "", text; err != nil {
			a.Code, a.Text = string(sdk.IO), err.Error()
		}
	}
	return &toolproto.HostFrame{Frame: &toolproto.HostFrame_Sampled{Sampled: a}}
}

func (r *Result) finish(parts []*toolproto.Part, last *toolproto.Result) {
	r.Code, r.Prompt = sdk.Code(last.Code), last.Prompt
	for _, p := range parts {
		switch p.Kind {
		case toolproto.Part_IMAGE:
			r.Images = append(r.Images, sdk.Image{MediaType: p.MediaType, Data: p.Data})
		case toolproto.Part_STRUCTURED:
			r.Structured = p.Data
		default:
			r.Text += string(p.Data)
		}
	}
	r.Text += last.Text
	if len(last.Structured) > 0 {
		r.Structured = last.Structured
	}
}
