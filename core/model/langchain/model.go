package langchain

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// Model makes a langchaingo model of a provider, for chains and agents.
//
// Its streaming callbacks get text and reasoning as they arrive; tool calls are
// in the result only. The response is ended here at the first stop word. Options
// that providers do not have (candidates, top-k, top-p, seed, length and
// repetition penalties) are errors with CodeNotSupported; a temperature of 0,
// which langchaingo cannot tell from none, means the provider's default. Signed
// or encrypted reasoning is lost between calls: langchaingo's history has no
// place for it.
//
// Errors are the provider's own. The model is safe for concurrent use.
func Model(p model.Provider) llms.Model { return &langchainModel{p} }

type langchainModel struct{ provider model.Provider }

var _ llms.Model = (*langchainModel)(nil)

// Call implements [llms.Model].
func (m *langchainModel) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// GenerateContent implements [llms.Model].
func (m *langchainModel) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var opts llms.CallOptions
	for _, o := range options {
		o(&opts)
	}
	req, err := m.request(messages, &opts)
	if err != nil {
		return nil, err
	}
	out := &relay{ctx: ctx, opts: &opts}
	var g model.Gatherer
	for d, err := range m.provider.Stream(ctx, req) {
		if err != nil {
			return nil, err
		}
		if err := g.Add(d); err != nil {
			return nil, err
		}
		if err := out.delta(d); err != nil {
			return nil, err
		}
		if out.stopped {
			return contentResponse(&model.Response{Parts: model.TextParts(out.text()), Stop: model.StopEnd}), nil
		}
	}
	resp, err := g.Response()
	if err != nil {
		return nil, err
	}
	if err := out.flush(); err != nil {
		return nil, err
	}
	return contentResponse(resp), nil
}

// relay passes deltas to the callbacks and looks for stop words.
type relay struct {
	ctx     context.Context // of the call
	opts    *llms.CallOptions
	seen    strings.Builder // the text so far
	passed  int             // bytes of it passed to the callback
	stopped bool            // a stop word is at the end of passed
	shown   bool            // a callback was called
}

func (r *relay) text() string { return r.seen.String()[:r.passed] }

func (r *relay) delta(d model.Delta) error {
	switch d.Kind {
	case model.DeltaRetry:
		if d.Retry.Discard && r.shown {
			return d.Retry.Err // a callback cannot be told to forget
		}
		if d.Retry.Discard {
			r.seen.Reset()
			r.passed = 0
		}
	case model.DeltaReasoning:
		if fn := r.opts.StreamingReasoningFunc; fn != nil {
			r.shown = true
			return fn(r.ctx, []byte(d.Text), nil)
		}
	case model.DeltaText:
		r.seen.WriteString(d.Text)
		return r.pass(r.safe())
	}
	return nil
}

// flush passes on the text that was held back as the possible beginning of a stop
// word.
func (r *relay) flush() error { return r.pass(r.seen.Len()) }

// safe returns how much of the text can be passed on: up to the first stop word,
// and without the possible beginning of one at the end.
func (r *relay) safe() int {
	text := r.seen.String()
	fresh := text[r.passed:]
	first := -1
	hold := 0
	for _, w := range r.opts.StopWords {
		if w == "" {
			continue
		}
		if i := strings.Index(fresh, w); i >= 0 && (first < 0 || i < first) {
			first = i
		}
		for n := min(len(w)-1, len(fresh)); n > hold; n-- {
			if strings.HasSuffix(fresh, w[:n]) {
				hold = n
			}
		}
	}
	if first >= 0 {
		r.stopped = true
		return r.passed + first
	}
	return len(text) - hold
}

func (r *relay) pass(end int) error {
	fresh := r.seen.String()[r.passed:end]
	r.passed = end
	if fresh == "" {
		return nil
	}
	r.shown = r.opts.StreamingReasoningFunc != nil || r.opts.StreamingFunc != nil
	if fn := r.opts.StreamingReasoningFunc; fn != nil {
		if err := fn(r.ctx, nil, []byte(fresh)); err != nil {
			return fmt.Errorf("the streaming callback failed: %w", err)
		}
	}
	if fn := r.opts.StreamingFunc; fn != nil {
		if err := fn(r.ctx, []byte(fresh)); err != nil {
			return fmt.Errorf("the streaming callback failed: %w", err)
		}
	}
	return nil
}

// contentResponse converts a response, with the names that langchaingo's own
// models give to usage.
func contentResponse(resp *model.Response) *llms.ContentResponse {
	u := resp.Usage
	choice := &llms.ContentChoice{
		Content:    resp.Parts.Text(),
		StopReason: langchainStops[resp.Stop],
		GenerationInfo: map[string]any{
			"PromptTokens": u.Input, "CompletionTokens": u.Output, "TotalTokens": u.Total(),
			"ReasoningTokens": u.Reasoning, "CompletionReasoningTokens": u.Reasoning, "ThinkingTokens": u.Reasoning,
			"PromptCachedTokens": u.CachedInput,
		},
	}
	if choice.StopReason == "" {
		choice.StopReason = string(resp.Stop)
	}
	for _, p := range resp.Parts {
		if r, ok := p.(model.Reasoning); ok {
			choice.ReasoningContent += r.Text
		}
	}
	for _, c := range resp.Parts.ToolCalls() {
		choice.ToolCalls = append(choice.ToolCalls, llms.ToolCall{ID: c.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: c.Args}})
	}
	if len(choice.ToolCalls) > 0 {
		choice.FuncCall = choice.ToolCalls[0].FunctionCall
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}
}

// langchainStops are the stop reasons as langchaingo's openai names them.
var langchainStops = map[model.StopReason]string{
	model.StopEnd: "stop", model.StopToolCalls: "tool_calls", model.StopMaxTokens: "length", model.StopContentFilter: "content_filter",
}

// request converts a call.
func (m *langchainModel) request(messages []llms.MessageContent, opts *llms.CallOptions) (*model.Request, error) {
	if refused := unsupported(opts); len(refused) > 0 {
		return nil, m.fail(model.CodeNotSupported, "the provider has no option for "+strings.Join(refused, ", "), nil)
	}
	req := &model.Request{Model: opts.Model, MaxTokens: opts.MaxTokens}
	if opts.Temperature != 0 {
		req.Temperature = &opts.Temperature
	}
	if opts.JSONMode {
		req.OutputSchema = json.RawMessage(`{"type":"object"}`)
	}
	switch thinking := llms.GetThinkingConfig(opts); {
	case thinking == nil || thinking.Mode == llms.ThinkingModeAuto:
	default:
		req.Effort = model.Effort(thinking.Mode)
	}
	var err error
	if req.ToolChoice, err = choiceOf(opts.ToolChoice); err != nil {
		return nil, m.fail(model.CodeInvalidRequest, "", err)
	}
	if req.Tools, err = toolDefs(opts); err != nil {
		return nil, m.fail(model.CodeInvalidRequest, "", err)
	}
	for i, msg := range messages {
		if err := addMessage(req, msg); err != nil {
			return nil, m.fail(model.CodeInvalidRequest, fmt.Sprintf("message %d", i), err)
		}
	}
	return req, nil
}

func (m *langchainModel) fail(code model.ErrorCode, message string, err error) error {
	return wire.NewFaults(m.provider.Info(), nil).Wrap(code, message, err)
}

// unsupported names the options that are set and not supported.
func unsupported(o *llms.CallOptions) []string {
	set := map[string]bool{
		"several candidates": o.N > 1 || o.CandidateCount > 1,
		"top-k":              o.TopK != 0, "top-p": o.TopP != 0, "a seed": o.Seed != 0,
		"a minimal or maximal length":                  o.MinLength != 0 || o.MaxLength != 0,
		"repetition, frequency and presence penalties": o.RepetitionPenalty != 0 || o.FrequencyPenalty != 0 || o.PresencePenalty != 0,
		"the MIME type " + o.ResponseMIMEType:          o.ResponseMIMEType != "" && o.ResponseMIMEType != "text/plain",
	}
	maps.DeleteFunc(set, func(_ string, isSet bool) bool { return !isSet })
	return slices.Sorted(maps.Keys(set))
}

// choiceOf converts a tool choice, which langchaingo allows to be of any type.
func choiceOf(choice any) (model.ToolChoice, error) {
	switch c := choice.(type) {
	case nil:
		return "", nil
	case string:
		return model.ToolChoice(c), nil
	case *llms.ToolChoice:
		if c != nil {
			return choiceOf(*c)
		}
		return "", nil
	case llms.ToolChoice:
		if c.Function != nil {
			return model.ToolChoice(c.Function.Name), nil
		}
		return model.ToolChoice(c.Type), nil
	}
	return "", fmt.Errorf("the tool choice is a %T; expected a string or an llms.ToolChoice", choice)
}

func toolDefs(opts *llms.CallOptions) ([]model.ToolDef, error) {
	functions := make([]*llms.FunctionDefinition, 0, len(opts.Tools)+len(opts.Functions))
	for i := range opts.Functions {
		functions = append(functions, &opts.Functions[i])
	}
	for _, t := range opts.Tools {
		if t.Function == nil {
			return nil, fmt.Errorf("a tool of type %q has no function", t.Type)
		}
		functions = append(functions, t.Function)
	}
	var defs []model.ToolDef
	for _, f := range functions {
		def := model.ToolDef{Name: f.Name, Description: f.Description}
		if f.Parameters != nil {
			schema, err := json.Marshal(f.Parameters)
			if err != nil {
				return nil, fmt.Errorf("the parameters of tool %s: %w", f.Name, err)
			}
			def.Schema = schema
		}
		defs = append(defs, def)
	}
	return defs, nil
}

// addMessage converts a message and adds it to the request.
func addMessage(req *model.Request, msg llms.MessageContent) error {
	var parts model.Parts
	for _, p := range msg.Parts {
		part, err := partOf(p)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	role := model.RoleUser
	switch msg.Role {
	case llms.ChatMessageTypeSystem:
		req.System = strings.TrimPrefix(req.System+"\n\n"+parts.Text(), "\n\n")
		return nil
	case llms.ChatMessageTypeAI:
		role = model.RoleAssistant
	case llms.ChatMessageTypeTool, llms.ChatMessageTypeFunction:
		role = model.RoleTool
		for _, p := range parts {
			if _, ok := p.(model.ToolResult); !ok {
				return fmt.Errorf("a message of role %s contains a %T; expected llms.ToolCallResponse", msg.Role, p)
			}
		}
	case llms.ChatMessageTypeHuman, llms.ChatMessageTypeGeneric:
	default:
		return fmt.Errorf("unknown role %q", msg.Role)
	}
	req.Messages = append(req.Messages, model.Message{Role: role, Parts: parts})
	return nil
}

func partOf(p llms.ContentPart) (model.Part, error) {
	switch p := p.(type) {
	case llms.TextContent:
		return model.Text{Text: p.Text}, nil
	case llms.BinaryContent:
		if !strings.HasPrefix(p.MIMEType, "image/") {
			return nil, fmt.Errorf("content of type %s cannot be sent; expected an image", p.MIMEType)
		}
		return model.Image{MediaType: p.MIMEType, Bytes: len(p.Data), Data: p.Data}, nil
	case llms.ImageURLContent:
		return imageOf(p.URL)
	case llms.ToolCall:
		if p.FunctionCall == nil {
			return nil, fmt.Errorf("tool call %q has no function", p.ID)
		}
		return model.ToolCall{ID: p.ID, Name: p.FunctionCall.Name, Args: p.FunctionCall.Arguments}, nil
	case llms.ToolCallResponse:
		return model.ToolResult{CallID: p.ToolCallID, Name: p.Name, Content: model.TextParts(p.Content)}, nil
	}
	return nil, fmt.Errorf("content of type %T cannot be sent", p)
}

// imageOf decodes a data URL. Other URLs are not fetched, as that needs a
// permission.
func imageOf(url string) (model.Part, error) {
	head, data, ok := strings.Cut(url, ";base64,")
	mediaType, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData || !strings.HasPrefix(mediaType, "image/") {
		return nil, errors.New("an image must be given as bytes or as a base64 data URL")
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, fmt.Errorf("the image's data URL: %w", err)
	}
	return model.Image{MediaType: mediaType, Bytes: len(raw), Data: raw}, nil
}
