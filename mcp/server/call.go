package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
)

const (
	// answerTimeout limits how long a question waits for the client's answer.
	answerTimeout = 10 * time.Minute

	// maxProgress is the size of the queue of progress reports.
	maxProgress = 64
)

// call is a tool call. It outlives its request if the client has to repeat the
// request with the answer to a question.
type call struct {
	name string
	args json.RawMessage
	ctx  context.Context // ends when nobody waits for the result any more

	cancel    context.CancelFunc
	questions chan question
	progress  chan core.Progress
	done      chan *mcp.CallToolResult
	asks      bool // the client supports questions
	asksURL   bool // and opening URLs
}

type question struct {
	params mcp.ElicitationParams
	answer chan answer // buffered, 1
}

type answer struct {
	result elicited
	err    error
}

// elicited is a client's answer to an elicitation.
type elicited struct {
	Action  mcp.ElicitationResponseAction `json:"action"`
	Content json.RawMessage               `json:"content"`
}

// runner runs a call.
type runner func(c *call) *mcp.CallToolResult

// offer returns a tool whose calls run executes.
func (s *Server) offer(t mcp.Tool, run runner) tool {
	return tool{Tool: t, call: func(ctx context.Context, r *request, params *callParams) (*mcp.CallToolResult, error) {
		c, err := s.begin(r, params, run)
		if err != nil {
			return nil, err
		}
		return s.await(ctx, r, c)
	}}
}

// begin starts a call, or finds the one that the request continues.
func (s *Server) begin(r *request, params *callParams, run runner) (*call, error) {
	if params.RequestState != "" {
		c, q := s.calls.take(params.RequestState, params.Name)
		if c == nil {
			return nil, fault(mcp.INVALID_PARAMS, "requestState: no call is waiting for this answer: call %s again without it", params.Name)
		}
		q.answer <- parseAnswer(params.InputResponses[questionKey])
		return c, nil
	}
	c := &call{
		name: params.Name, args: params.Arguments,
		questions: make(chan question), progress: make(chan core.Progress, maxProgress), done: make(chan *mcp.CallToolResult, 1),
	}
	if len(c.args) == 0 || string(c.args) == "null" {
		c.args = json.RawMessage("{}")
	}
	if can := r.capabilities().Elicitation; can != nil {
		c.asks, c.asksURL = can.Form != nil || can.URL == nil, can.URL != nil // an empty object means forms
	}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	s.running.Go(func() {
		defer c.cancel()
		c.done <- run(c)
	})
	return c, nil
}

// parseAnswer parses an answer, independent of its question.
func parseAnswer(data json.RawMessage) answer {
	var a answer
	if err := json.Unmarshal(data, &a.result); err != nil || a.result.Action == "" {
		a.err = fmt.Errorf("invalid answer of the client: %w", core.ErrNonInteractive)
	}
	return a
}

// await waits for the end of a call for a request. Meanwhile it sends progress,
// and questions as the request's protocol defines.
func (s *Server) await(ctx context.Context, r *request, c *call) (*mcp.CallToolResult, error) {
	for {
		select {
		case res := <-c.done:
			for { // queued before the end
				select {
				case p := <-c.progress:
					s.sendProgress(ctx, r, p)
					continue
				default:
				}
				return res, nil
			}
		case p := <-c.progress:
			s.sendProgress(ctx, r, p)
		case q := <-c.questions:
			if r.modern {
				return s.calls.put(c, q), nil
			}
			q.answer <- elicit(ctx, r, q.params)
		case <-ctx.Done():
			c.cancel()
			<-c.done // let the tool clean up
			return nil, ctx.Err()
		}
	}
}

func (s *Server) sendProgress(ctx context.Context, r *request, p core.Progress) {
	if len(r.meta.ProgressToken) == 0 || ctx.Err() != nil {
		return
	}
	params := map[string]any{"progressToken": r.meta.ProgressToken, "progress": p.Done}
	if p.Total > 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = p.Message
	}
	if err := r.send(notification(mcp.MethodNotificationProgress, params)); err != nil {
		s.opts.Logger.DebugContext(ctx, "progress was not delivered", "cause", err)
	}
}

// elicit asks a client of the legacy protocol.
func elicit(ctx context.Context, r *request, params mcp.ElicitationParams) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("the client did not answer within %s", answerTimeout))
	defer cancel()
	data, err := r.ask(ctx, mcp.MethodElicitationCreate, params)
	switch {
	case err != nil && ctx.Err() != nil:
		return answer{err: context.Cause(ctx)}
	case err != nil:
		return answer{err: fmt.Errorf("the client failed to ask: %w", err)}
	}
	return parseAnswer(data)
}

// report queues progress. If the client does not keep up, some is dropped: calls
// do not wait for listeners.
func (c *call) report(p core.Progress) {
	select {
	case c.progress <- p:
	default:
	}
}

var _ core.Asker = (*call)(nil)

// Ask implements [core.Asker]: it puts the question to the client.
func (c *call) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if !c.asks && q.Kind != core.QuestionURL || !c.asksURL && q.Kind == core.QuestionURL {
		return core.Answer{}, core.ErrNonInteractive
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
		return toAnswer(q, a.result), nil
	case <-ctx.Done():
		return core.Answer{}, ctx.Err()
	case <-c.ctx.Done():
		return core.Answer{}, c.ctx.Err()
	}
}

// offeredChoices returns the choices that a client may make. None of them changes
// the user's settings: a client is a program, and may answer without its user.
func offeredChoices(q core.Question) []string {
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

// offeredRules returns the rules of each offer.
func offeredRules(q core.Question) []string {
	var out []string
	for _, o := range q.Offers {
		out = append(out, strings.Join(o.Rules, ", "))
	}
	return out
}

// elicitation converts a question to MCP.
func elicitation(q core.Question) (mcp.ElicitationParams, error) {
	text := q.Title
	if q.Detail != "" {
		text += "\n" + q.Detail
	}
	for _, a := range q.Accesses {
		if strings.Contains(q.Title, a.Resource) {
			continue
		}
		text += "\n- " + a.String()
	}
	p := mcp.ElicitationParams{Message: text}
	switch q.Kind {
	case core.QuestionURL:
		p.Mode, p.URL, p.ElicitationID = mcp.ElicitationModeURL, q.URL, q.ID
	case core.QuestionForm:
		if len(q.Schema) == 0 {
			return p, errors.New("the form has no schema")
		}
		p.RequestedSchema = q.Schema
	default:
		properties := map[string]any{
			"choice": map[string]any{"type": "string", "title": "Your answer", "description": "once: allow this call; session: allow as long as this server runs; deny: deny", "enum": offeredChoices(q)},
			"reason": map[string]any{"type": "string", "title": "Reason", "description": "What to tell the agent (optional)"},
		}
		if rules := offeredRules(q); len(rules) > 0 {
			properties["rule"] = map[string]any{"type": "string", "title": "Rule", "description": "What session allows (optional; the first if missing)", "enum": rules}
		}
		p.RequestedSchema = map[string]any{"type": "object", "properties": properties, "required": []string{"choice"}}
	}
	return p, nil
}

// toAnswer converts the client's answer. Anything but a clear yes is a no.
func toAnswer(q core.Question, r elicited) core.Answer {
	no := core.Answer{Choice: core.ChoiceDeny, Reason: "the client answered: " + string(r.Action)}
	if q.Kind == core.QuestionConfirm {
		no.Choice = core.ChoiceNo
	}
	if r.Action != mcp.ElicitationResponseActionAccept {
		return no
	}
	switch q.Kind {
	case core.QuestionURL:
		return core.Answer{Choice: core.ChoiceYes}
	case core.QuestionForm:
		return core.Answer{Choice: core.ChoiceYes, Values: r.Content}
	}
	var a struct{ Choice, Reason, Rule string }
	if err := json.Unmarshal(r.Content, &a); err == nil {
		for _, o := range offeredChoices(q) {
			if a.Choice == o {
				return core.Answer{Choice: core.Choice(o), Offer: slices.Index(offeredRules(q), a.Rule), Reason: a.Reason}
			}
		}
	}
	no.Reason = "the client's answer was not one of: " + strings.Join(offeredChoices(q), ", ")
	return no
}

// questionKey is the key of a suspended call's one question.
const questionKey = "question"

// suspended are the calls that wait for the client to repeat the request with an
// answer, by request state.
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

// put suspends a call and returns the result that asks its client. The call is
// cancelled if the client does not answer in time.
func (s *suspended) put(c *call, q question) *mcp.CallToolResult {
	state := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		q.answer <- answer{err: core.ErrNonInteractive}
		return mcp.NewToolResultError("The server is shutting down.")
	}
	s.calls[state] = &waiting{call: c, question: q, timer: time.AfterFunc(answerTimeout, func() { s.drop(state) })}
	return &mcp.CallToolResult{
		Result:               mcp.Result{ResultType: mcp.ResultTypeInputRequired},
		MultiRoundTripResult: mcp.MultiRoundTripResult{RequestState: state, InputRequests: mcp.InputRequests{questionKey: mcp.NewElicitationInputRequest(q.params)}},
	}
}

// drop cancels a call whose client did not answer.
func (s *suspended) drop(state string) {
	s.mu.Lock()
	w := s.calls[state]
	delete(s.calls, state)
	s.mu.Unlock()
	if w != nil {
		w.call.cancel()
	}
}

// take removes and returns the suspended call of a state, nil if there is none.
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
