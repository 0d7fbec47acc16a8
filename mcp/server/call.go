package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/seed-009c0928/agent/core"
)

// patience is how long a question waits for the client's answer.
const patience = 10 * time.Minute

// call is one request for a tool. It outlives the request where the protocol
// wants the client to ask again with the answer to a question.
type call struct {
	name string
	args json.RawMessage
	ctx  context.Context // ends when nobody waits for it any more

	cancel    context.CancelFunc
	questions chan question
	progress  chan core.Progress
	done      chan *mcp.CallToolResult
	asks      bool // the client can be asked
	asksURL   bool // and sent to an address
}

type question struct {
	params mcp.ElicitationParams
	answer chan answer // has room for one
}

type answer struct {
	result mcp.ElicitationResponse
	err    error
}

// runner does a call.
type runner func(c *call) *mcp.CallToolResult

// handle makes mcp-go's handler of a runner.
func (s *Server) handle(run runner) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c, err := s.begin(ctx, req, run)
		if err != nil {
			return nil, err
		}
		return s.attend(ctx, req, c)
	}
}

// begin starts a call, or finds the one that the request goes on with.
func (s *Server) begin(ctx context.Context, req mcp.CallToolRequest, run runner) (*call, error) {
	if state := req.Params.RequestState; state != "" {
		c, q := s.calls.take(state, req.Params.Name)
		if c == nil {
			return nil, fmt.Errorf("requestState: no call waits for this answer (any more): call %s again without it", req.Params.Name)
		}
		given := server.ElicitationResponse(req.Params.InputResponses, questionKey)
		if given == nil {
			q.answer <- answer{err: fmt.Errorf("the client sent no answer: %w", core.ErrNobody)}
		} else {
			q.answer <- answer{result: given.ElicitationResponse}
		}
		return c, nil
	}
	args := req.Params.RawArguments
	if len(args) == 0 {
		var err error
		if args, err = json.Marshal(req.Params.Arguments); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
	}
	if string(args) == "null" {
		args = json.RawMessage("{}")
	}
	c := &call{
		name: req.Params.Name, args: args, questions: make(chan question), progress: make(chan core.Progress), done: make(chan *mcp.CallToolResult, 1),
	}
	c.asks, c.asksURL = elicits(ctx)
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	s.running.Go(func() {
		defer c.cancel()
		c.done <- run(c)
	})
	return c, nil
}

// elicits reports whether the client of a request can ask its person, and send
// them to an address.
func elicits(ctx context.Context) (form, address bool) {
	var can *mcp.ElicitationCapability
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if info.ClientCapabilities != nil {
			can = info.ClientCapabilities.Elicitation
		}
	} else if known, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		can = known.GetClientCapabilities().Elicitation
	}
	if can == nil {
		return false, false
	}
	return can.Form != nil || can.URL == nil, can.URL != nil // an empty object means forms
}

// attend waits for a call's end on behalf of a request. Meanwhile it passes
// progress on, and questions in the way of the request's protocol.
func (s *Server) attend(ctx context.Context, req mcp.CallToolRequest, c *call) (*mcp.CallToolResult, error) {
	var token mcp.ProgressToken
	if req.Params.Meta != nil {
		token = req.Params.Meta.ProgressToken
	}
	for {
		select {
		case res := <-c.done:
			return res, nil
		case p := <-c.progress:
			if token != nil {
				s.tellProgress(ctx, token, p)
			}
		case q := <-c.questions:
			if server.IsModernRequest(ctx) {
				return s.calls.put(c, q), nil
			}
			q.answer <- s.elicit(ctx, q.params)
		case <-ctx.Done():
			c.cancel()
			<-c.done // the tool gets a moment to end what it started
			return nil, ctx.Err()
		}
	}
}

func (s *Server) tellProgress(ctx context.Context, token mcp.ProgressToken, p core.Progress) {
	params := map[string]any{"progressToken": token, "progress": p.Done}
	if p.Total > 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = p.Message
	}
	if err := s.notify(ctx, string(mcp.MethodNotificationProgress), params); err != nil {
		s.opts.Logger.DebugContext(ctx, "progress was not delivered", "cause", err)
	}
}

// notify tells the client of a request. Over stdio mcp-go would write it some
// time, often after the result that it goes before; so it is written here.
func (s *Server) notify(ctx context.Context, method string, params map[string]any) error {
	s.mu.Lock()
	stdout := s.stdout
	s.mu.Unlock()
	if stdout == nil {
		return s.mcp.SendNotificationToClient(ctx, method, params)
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(line, '\n'))
	return err
}

// elicit asks a client of the time before 2026-07-28.
func (s *Server) elicit(ctx context.Context, params mcp.ElicitationParams) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the client did not answer within %s", patience))
	defer cancel()
	res, err := s.mcp.RequestElicitation(ctx, mcp.ElicitationRequest{
		Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)}, Params: params,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return answer{err: context.Cause(ctx)}
	case err != nil:
		return answer{err: fmt.Errorf("the client could not ask: %w", err)}
	}
	return answer{result: res.ElicitationResponse}
}

// report passes progress on, unless nobody waits for it.
func (c *call) report(p core.Progress) {
	select {
	case c.progress <- p:
	case <-c.ctx.Done():
	}
}

var _ core.Asker = (*call)(nil)

// Ask implements [core.Asker]: it puts the question to the client.
func (c *call) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if !c.asks && q.Kind != core.QuestionURL || !c.asksURL && q.Kind == core.QuestionURL {
		return core.Answer{}, core.ErrNobody
	}
	params, err := elicitation(q)
	if err != nil {
		return core.Answer{}, err
	}
	asked := question{params: params, answer: make(chan answer, 1)}
	select {
	case c.questions <- asked:
	case <-ctx.Done():
		return core.Answer{}, ctx.Err()
	case <-c.ctx.Done():
		return core.Answer{}, c.ctx.Err()
	}
	select {
	case a := <-asked.answer:
		if a.err != nil {
			return core.Answer{}, a.err
		}
		return understood(q, a.result)
	case <-ctx.Done():
		return core.Answer{}, ctx.Err()
	case <-c.ctx.Done():
		return core.Answer{}, c.ctx.Err()
	}
}

// offered are the answers to a question that a client may give. None of them
// changes the person's settings: a client is a program, and may answer by
// itself.
func offered(q core.Question) []string {
	choices := q.Choices
	if len(choices) == 0 && q.Kind == core.QuestionConfirm {
		choices = []core.Choice{core.ChoiceYes, core.ChoiceNo}
	}
	var out []string
	for _, c := range choices {
		if c != core.ChoiceAlways {
			out = append(out, string(c))
		}
	}
	return out
}

// elicitation is a question as MCP has it.
func elicitation(q core.Question) (mcp.ElicitationParams, error) {
	text := q.Title
	if q.Detail != "" {
		text += "\n" + q.Detail
	}
	for _, a := range q.Accesses {
		text += fmt.Sprintf("\n- %s %s", a.Scope, a.Resource)
	}
	p := mcp.ElicitationParams{Message: text}
	switch q.Kind {
	case core.QuestionURL:
		p.Mode, p.URL, p.ElicitationID = mcp.ElicitationModeURL, q.URL, q.ID
	case core.QuestionForm:
		if len(q.Schema) == 0 {
			return p, errors.New("a form without a schema cannot be asked")
		}
		p.RequestedSchema = q.Schema
	default:
		p.RequestedSchema = map[string]any{
			"type": "object",
			"properties": map[string]any{
				"choice": map[string]any{"type": "string", "title": "Your answer", "description": "once: this time; session: for as long as this server runs; deny: no", "enum": offered(q)},
				"reason": map[string]any{"type": "string", "title": "Reason", "description": "What to tell the agent; may be left out"},
			},
			"required": []string{"choice"},
		}
	}
	return p, nil
}

// understood reads the client's answer. What is not clearly a yes is a no.
func understood(q core.Question, r mcp.ElicitationResponse) (core.Answer, error) {
	no := core.Answer{Choice: core.ChoiceDeny, Reason: "the client answered: " + string(r.Action)}
	if q.Kind == core.QuestionConfirm {
		no.Choice = core.ChoiceNo
	}
	if r.Action != mcp.ElicitationResponseActionAccept {
		return no, nil
	}
	content, err := json.Marshal(r.Content)
	if err != nil {
		return no, nil
	}
	switch q.Kind {
	case core.QuestionURL:
		return core.Answer{Choice: core.ChoiceYes}, nil
	case core.QuestionForm:
		return core.Answer{Choice: core.ChoiceYes, Values: content}, nil
	}
	var a struct{ Choice, Reason string }
	if err := json.Unmarshal(content, &a); err == nil {
		for _, o := range offered(q) {
			if a.Choice == o {
				return core.Answer{Choice: core.Choice(o), Reason: a.Reason}, nil
			}
		}
	}
	no.Reason = "the client's answer was none of: " + strings.Join(offered(q), ", ")
	return no, nil
}

// questionKey names the one question of a call that waits.
const questionKey = "question"

// suspended are the calls that wait for the client to ask again with an answer,
// by the states that it was given.
type suspended struct {
	mu     sync.Mutex
	calls  map[string]*waiting
	closed bool
}

type waiting struct {
	call     *call
	question question
	timer    *time.Timer
}

func newSuspended() *suspended { return &suspended{calls: map[string]*waiting{}} }

// put keeps a call and returns the result that asks its client. A client that
// does not come back in time leaves the question unanswered.
func (s *suspended) put(c *call, q question) *mcp.CallToolResult {
	state := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		q.answer <- answer{err: core.ErrNobody}
		return mcp.NewToolResultError("The server ends.")
	}
	s.calls[state] = &waiting{call: c, question: q, timer: time.AfterFunc(patience, func() { s.drop(state) })}
	return server.NewInputRequestBuilder(state).Elicit(questionKey, q.params).ToolResult()
}

// drop gives a call up whose client did not come back.
func (s *suspended) drop(state string) {
	s.mu.Lock()
	w := s.calls[state]
	delete(s.calls, state)
	s.mu.Unlock()
	if w != nil {
		w.call.cancel()
	}
}

// take returns the call that waits under a state, once.
func (s *suspended) take(state, tool string) (*call, question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.calls[state]
	if w == nil || w.call.name != tool {
		return nil, question{}
	}
	w.timer.Stop()
	delete(s.calls, state)
	return w.call, w.question
}

func (s *suspended) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, w := range s.calls {
		w.timer.Stop()
	}
	clear(s.calls)
}
