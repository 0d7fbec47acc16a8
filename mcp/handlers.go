package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// Limits of sampling and of questions.
const (
	defaultSampleTokens = 4096
	defaultSampleRounds = 5
	maxSampleText       = 200_000 // bytes of a request
	maxShownSample      = 2_000   // characters that the user sees of a request
	maxQuestionText     = 4_000   // characters of a question to the user
)

// Sampler queries a model on behalf of a server, in the session that called the
// server. The user has approved the request.
type Sampler func(ctx context.Context, session core.SessionInfo, req *model.Request) (*model.Response, error)

// handlers answer the requests of a server.
type handlers struct {
	conn   *Conn
	sample Sampler // nil = no sampling
	limits Sampling
	roots  []mcp.Root
}

// answer answers a request of the server. The context carries the client's
// request that it belongs to.
func (h *handlers) answer(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch mcp.MCPMethod(method) {
	case mcp.MethodPing:
		return struct{}{}, nil
	case mcp.MethodListRoots:
		return fields{"roots": h.roots}, nil
	case mcp.MethodElicitationCreate:
		return h.elicit(ctx, params)
	case mcp.MethodSamplingCreateMessage:
		return h.createMessage(ctx, params)
	}
	return nil, &jsonrpc.Error{Code: mcp.METHOD_NOT_FOUND, Message: "this client does not support " + method}
}

// invalid is the error for invalid parameters.
func invalid(what string, err error) error {
	return &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: fmt.Sprintf("invalid %s params: %v", what, err)}
}

// fileURI returns the URI of a local path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// elicit asks the user a server's question. It is declined when not interactive.
func (h *handlers) elicit(ctx context.Context, raw json.RawMessage) (any, error) {
	p := pendingOf(ctx)
	var params mcp.ElicitationParams
	err := json.Unmarshal(raw, &params)
	switch {
	case err != nil:
	case params.Mode == mcp.ElicitationModeURL:
		return h.open(ctx, p, params), nil
	case params.Mode != "" && params.Mode != mcp.ElicitationModeForm:
		err = fmt.Errorf("unknown mode %.40q", params.Mode)
	case params.RequestedSchema == nil:
		err = errors.New("requestedSchema is missing")
	}
	if err != nil {
		return nil, invalid("elicitation", err)
	}
	form, err := json.Marshal(params.RequestedSchema)
	if err != nil {
		return nil, fmt.Errorf("requestedSchema: %w", err)
	}
	form = cleanJSON(form)
	title, detail := h.questionText(params.Message)
	answer, err := p.ask(ctx, core.Question{Kind: core.QuestionForm, Title: title, Detail: detail, Schema: form})
	action := h.action(ctx, answer, err)
	if action != mcp.ElicitationResponseActionAccept {
		return elicited(action, nil), nil
	}
	values, err := schema.Fill(form, answer.Values)
	if err != nil {
		return nil, err
	}
	return elicited(action, values), nil
}

// open asks the user to open a page for the server.
func (h *handlers) open(ctx context.Context, p *pending, params mcp.ElicitationParams) *mcp.ElicitationResult {
	u, err := url.Parse(params.URL)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLocalName(u.Hostname())) || u.User != nil || cleanText(params.URL) != params.URL {
		return elicited(mcp.ElicitationResponseActionDecline, nil)
	}
	_, detail := h.questionText(params.Message)
	title, _ := h.questionText(fmt.Sprintf("Open a page of %s?", u.Host))
	if detail == "" {
		detail = clip(cleanText(params.Message), maxQuestionText)
	}
	answer, err := p.ask(ctx, core.Question{Kind: core.QuestionURL, Title: title, Detail: detail, URL: params.URL, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}})
	return elicited(h.action(ctx, answer, err), nil)
}

// questionText splits a server's message into title and detail of a question.
func (h *handlers) questionText(text string) (title, detail string) {
	title, detail, _ = strings.Cut(strings.TrimSpace(clip(cleanText(text), maxQuestionText)), "\n")
	return fmt.Sprintf("The MCP server %s asks: %s", h.conn.name, clip(title, 200)), strings.TrimSpace(detail)
}

// action returns the protocol's word for an answer.
func (h *handlers) action(ctx context.Context, a core.Answer, err error) mcp.ElicitationResponseAction {
	switch {
	case ctx.Err() != nil || err != nil && !errors.Is(err, core.ErrNonInteractive):
		return mcp.ElicitationResponseActionCancel
	case err != nil || a.Choice != core.ChoiceYes:
		return mcp.ElicitationResponseActionDecline
	}
	return mcp.ElicitationResponseActionAccept
}

func elicited(action mcp.ElicitationResponseAction, content any) *mcp.ElicitationResult {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: content}}
}

// errRejected answers a sampling request that the user has not approved.
var errRejected = errors.New("the user rejected the sampling request")

// createMessage queries the model for a server, within the settings' limits and
// if the user approves.
func (h *handlers) createMessage(ctx context.Context, raw json.RawMessage) (any, error) {
	if h.sample == nil {
		return nil, errors.New("no sampling handler configured")
	}
	var params mcp.CreateMessageParams
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, invalid("sampling", err)
	}
	p := pendingOf(ctx)
	if p == nil {
		return nil, errors.New("sampling is only allowed during a call of the server")
	}
	p.mu.Lock()
	p.rounds++
	rounds := p.rounds
	p.mu.Unlock()
	if limit := positive(h.limits.MaxRounds, defaultSampleRounds); rounds > limit {
		return nil, fmt.Errorf("sampling is limited to %d requests per call", limit)
	}
	if len(params.Tools) > 0 {
		return nil, errors.New("sampling with tools is not supported")
	}
	request, err := sampleRequest(params, positive(h.limits.MaxTokens, defaultSampleTokens))
	if err != nil {
		return nil, err
	}
	answer, err := p.ask(ctx, core.Question{
		Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
		Title:  fmt.Sprintf("Let the MCP server %s query the model? (request %d of this call, at most %d tokens)", h.conn.name, rounds, request.MaxTokens),
		Detail: describeRequest(request),
	})
	if err != nil || answer.Choice != core.ChoiceYes {
		return nil, errRejected
	}
	p.pause()
	defer p.resume()
	resp, err := h.sample(ctx, p.Session, request)
	if err != nil {
		return nil, fmt.Errorf("the model request failed: %w", err)
	}
	stop := "endTurn"
	if resp.Stop == model.StopMaxTokens {
		stop = "maxTokens"
	}
	return &mcp.CreateMessageResult{
		SamplingMessage: mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.TextContent{Type: "text", Text: resp.Parts.Text()}},
		Model:           resp.Model, StopReason: stop,
	}, nil
}

// positive returns n, or def if n is not positive.
func positive(n, def int) int {
	if n > 0 {
		return n
	}
	return def
}

// sampleRequest returns the request to the model.
func sampleRequest(params mcp.CreateMessageParams, maxTokens int) (*model.Request, error) {
	req := &model.Request{System: params.SystemPrompt, MaxTokens: maxTokens}
	if params.MaxTokens > 0 {
		req.MaxTokens = min(maxTokens, params.MaxTokens)
	}
	if t := params.Temperature; t > 0 {
		req.Temperature = &t
	}
	size := len(params.SystemPrompt)
	for i, m := range params.Messages {
		role := model.RoleUser
		if m.Role == mcp.RoleAssistant {
			role = model.RoleAssistant
		}
		content, err := mcp.ParseSamplingContent(m.Content)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		parts, err := sampleParts(content)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		size += len(parts.Text())
		req.Messages = append(req.Messages, model.Message{Role: role, Parts: parts})
	}
	switch {
	case len(req.Messages) == 0:
		return nil, errors.New("no messages")
	case size > maxSampleText:
		return nil, fmt.Errorf("the messages have %d bytes; the limit is %d", size, maxSampleText)
	}
	return req, nil
}

func sampleParts(content any) (model.Parts, error) {
	switch c := content.(type) {
	case mcp.TextContent:
		return model.TextParts(strings.ToValidUTF8(c.Text, "\ufffd")), nil
	case mcp.ImageContent:
		data, err := base64.StdEncoding.DecodeString(c.Data)
		if err != nil || !strings.HasPrefix(c.MIMEType, "image/") {
			return nil, errors.New("invalid image")
		}
		return model.Parts{model.Image{MediaType: c.MIMEType, Data: data, Bytes: len(data)}}, nil
	case []mcp.Content:
		var all model.Parts
		for _, one := range c {
			parts, err := sampleParts(one)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		}
		return all, nil
	}
	return nil, fmt.Errorf("unsupported content type %T", content)
}

// describeRequest returns what the user sees of a request.
func describeRequest(req *model.Request) string {
	var b strings.Builder
	if req.System != "" {
		fmt.Fprintf(&b, "system: %s\n", req.System)
	}
	for _, m := range req.Messages {
		fmt.Fprintf(&b, "%s: %s", m.Role, m.Parts.Text())
		if m.Parts.HasImage() {
			b.WriteString(" [image]")
		}
		b.WriteByte('\n')
	}
	return clip(cleanText(strings.TrimSpace(b.String())), maxShownSample)
}
