package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/timeout"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

const (
	// maxPages and maxItems limit a list.
	maxPages = 200
	maxItems = 20_000
	// maxCall limits a call that keeps reporting progress.
	maxCall = time.Hour
	// progressEvery is the shortest interval between progress reports to a caller.
	progressEvery = 50 * time.Millisecond
)

// ToolInfo is a tool as its server describes it.
type ToolInfo struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"inputSchema,omitempty"` // of the arguments, byte for byte
	Annotations struct {
		ReadOnly    bool  `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"`
	} `json:"annotations,omitzero"`
	Execution struct {
		Task string `json:"taskSupport,omitempty"` // "forbidden", "optional" or "required"
	} `json:"execution,omitzero"`
	Meta json.RawMessage `json:"_meta,omitempty"` // as listed; not kept
}

// forModels reports whether a tool is meant for models: some are only for the user
// interface that a server brings along.
//
// https://modelcontextprotocol.io/extensions/apps
func (t ToolInfo) forModels() bool {
	var meta struct {
		UI struct {
			Visibility []string `json:"visibility"`
		} `json:"ui"`
	}
	return json.Unmarshal(t.Meta, &meta) != nil || meta.UI.Visibility == nil || slices.Contains(meta.UI.Visibility, "model")
}

// Resource is a resource that a server offers, or a template of resources
// ([Conn.ResourceTemplates]), which has a Template and no URI.
type Resource struct {
	URI         string `json:"uri"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Prompt is a prompt template that a server offers.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// PromptArgument is an argument of a [Prompt].
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Tools lists the tools. Invalid ones are left out and reported in the error; the
// list is valid nevertheless.
func (c *Conn) Tools(ctx context.Context) ([]ToolInfo, error) {
	items, err := c.list(ctx, mcp.MethodToolsList, "tools")
	if err != nil {
		return nil, err
	}
	tools, broken := decodeAll(items, func(t ToolInfo) string { return t.Name })
	tools = slices.DeleteFunc(tools, func(t ToolInfo) bool {
		if !t.forModels() {
			broken = append(broken, fmt.Errorf("tool %.100q is only for the server's own user interface (_meta.ui.visibility)", cleanLine(t.Name)))
		}
		return !t.forModels()
	})
	for i := range tools {
		tools[i].Meta = nil
	}
	if _, http := c.link.(*streamable); http && c.modern() {
		tools = slices.DeleteFunc(tools, func(t ToolInfo) bool {
			err := mcp.ValidateParamHeaderAnnotations(&mcp.Tool{RawInputSchema: t.Schema})
			if err != nil {
				broken = append(broken, fmt.Errorf("tool %.100q: invalid header parameters: %w", cleanLine(t.Name), err))
			}
			return err != nil
		})
	}
	return tools, c.wrap(errors.Join(broken...))
}

// Resources lists the resources.
func (c *Conn) Resources(ctx context.Context) ([]Resource, error) {
	items, err := c.list(ctx, mcp.MethodResourcesList, "resources")
	list, _ := decodeAll(items, func(r Resource) string { return r.URI })
	return list, err
}

// ResourceTemplates lists the resource templates.
func (c *Conn) ResourceTemplates(ctx context.Context) ([]Resource, error) {
	items, err := c.list(ctx, mcp.MethodResourcesTemplatesList, "resourceTemplates")
	list, _ := decodeAll(items, func(r Resource) string { return r.Template })
	return list, err
}

// Prompts lists the prompts.
func (c *Conn) Prompts(ctx context.Context) ([]Prompt, error) {
	items, err := c.list(ctx, mcp.MethodPromptsList, "prompts")
	list, _ := decodeAll(items, func(p Prompt) string { return p.Name })
	return list, err
}

// list reads all pages of a list. An endless or circular list is an error.
func (c *Conn) list(ctx context.Context, method mcp.MCPMethod, member string) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.listTimeout(), fmt.Errorf("no list of %s within %s (startTimeoutMs)", member, c.server.listTimeout()))
	defer cancel()
	var all []json.RawMessage
	seen := map[string]bool{}
	params := fields{}
	for range maxPages {
		result, err := c.do(ctx, method, params)
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = context.Cause(ctx)
			}
			return nil, c.wrap(err)
		}
		var body map[string]json.RawMessage
		var items []json.RawMessage
		if json.Unmarshal(result, &body) != nil || body[member] != nil && json.Unmarshal(body[member], &items) != nil {
			return nil, c.wrap(fmt.Errorf("invalid list of %s: %s", member, clip(cleanLine(string(result)), 100)))
		}
		all = append(all, items...)
		next := ""
		_ = json.Unmarshal(body["nextCursor"], &next) // an invalid one ends the list
		switch {
		case next == "":
			return all, nil
		case seen[next]:
			return nil, c.wrap(fmt.Errorf("the list of %s is circular: page %.100q repeats", member, next))
		case len(all) > maxItems:
			return nil, c.wrap(fmt.Errorf("the list of %s has more than %d entries", member, maxItems))
		}
		seen[next], params["cursor"] = true, next
	}
	return nil, c.wrap(fmt.Errorf("the list of %s has more than %d pages", member, maxPages))
}

// decodeAll decodes the entries of a list separately. One without a name is
// invalid.
func decodeAll[T any](items []json.RawMessage, name func(T) string) (list []T, broken []error) {
	for i, item := range items {
		var v T
		err := json.Unmarshal(item, &v)
		if err == nil && name(v) == "" {
			err = errors.New("missing name")
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("entry %d of the list is invalid: %w", i+1, err))
			continue
		}
		list = append(list, v)
	}
	return list, broken
}

// Call calls a tool; args are a JSON object. The server's call timeout applies;
// progress restarts it, and it stops while the user is asked.
func (c *Conn) Call(ctx context.Context, tool ToolInfo, args json.RawMessage, caller Caller) (CallResult, error) {
	var result CallResult
	text, err := c.withCallTimeout(ctx, caller, "the call", func(ctx context.Context, token string) (json.RawMessage, error) {
		text, err := c.callOnce(ctx, tool, args, token)
		if e := (*RPCError)(nil); errors.As(err, &e) && e.Code == mcp.URL_ELICITATION_REQUIRED && c.openAll(ctx, e.Data) {
			text, err = c.callOnce(ctx, tool, args, token) // once, as the user has opened the pages
		}
		return text, err
	})
	if err != nil {
		return result, err
	}
	if err := result.decode(text); err != nil {
		return result, c.wrap(fmt.Errorf("invalid result: %w", err))
	}
	return result, nil
}

func (c *Conn) callOnce(ctx context.Context, tool ToolInfo, args json.RawMessage, token string) (json.RawMessage, error) {
	params := fields{"name": tool.Name, "_meta": fields{"progressToken": token}}
	if len(args) > 0 {
		params["arguments"] = args
	}
	task := c.info.Tasks && tool.Execution.Task == string(mcp.TaskSupportRequired)
	if task {
		params["task"] = fields{}
	}
	var headers map[string]string
	if c.modern() { // for arguments that the schema marks
		headers = mcp.GenerateParamHeaders(&mcp.Tool{RawInputSchema: tool.Schema}, encode(params))
	}
	text, err := c.converse(ctx, mcp.MethodToolsCall, params, headers)
	if err != nil || !task {
		return text, err
	}
	return c.awaitTask(ctx, text)
}

const (
	// maxInputRounds limits how often a request is repeated with the input that
	// the server requested, and maxIdleRounds how often in a row it may request
	// none, which means to retry later.
	maxInputRounds = 10
	maxIdleRounds  = 3
)

// converse makes a request that a server of the modern protocol may answer with
// requests for input. It is then repeated with the answers.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
func (c *Conn) converse(ctx context.Context, method mcp.MCPMethod, params fields, headers map[string]string) (json.RawMessage, error) {
	idle := 0
	for range maxInputRounds {
		text, err := c.send(ctx, method, params, headers)
		if err != nil {
			return nil, err
		}
		var more struct {
			Type     string                     `json:"resultType"`
			Requests map[string]jsonrpc.Message `json:"inputRequests"`
			State    json.RawMessage            `json:"requestState"`
		}
		err = json.Unmarshal(text, &more)
		if more.Type != string(mcp.ResultTypeInputRequired) {
			return text, nil
		}
		if err != nil || len(more.Requests) > maxServerRequests {
			return nil, c.wrap(fmt.Errorf("invalid requests for input: %s", clip(cleanLine(string(text)), 100)))
		}
		if idle++; len(more.Requests) > 0 {
			idle = 0
		}
		if idle >= maxIdleRounds {
			break
		}
		params = maps.Clone(params)
		delete(params, "inputResponses")
		delete(params, "requestState")
		if len(more.State) > 0 {
			params["requestState"] = more.State
		}
		if len(more.Requests) > 0 {
			if params["inputResponses"], err = c.answers(ctx, more.Requests); err != nil {
				return nil, err
			}
		}
	}
	return nil, c.wrap(errors.New("the server keeps requesting input"))
}

// answers answers the requests for input in a result, one after the other.
func (c *Conn) answers(ctx context.Context, requests map[string]jsonrpc.Message) (fields, error) {
	answers := fields{}
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		answer, err := c.answer(ctx, requests[id].Method, requests[id].Params)
		if err != nil {
			return nil, c.wrap(fmt.Errorf("the server's request was refused: %w", err))
		}
		answers[id] = answer
	}
	return answers, nil
}

// withCallTimeout makes a request with the server's call timeout, and reports its
// progress to the caller.
func (c *Conn) withCallTimeout(ctx context.Context, caller Caller, what string, request func(ctx context.Context, token string) (json.RawMessage, error)) (json.RawMessage, error) {
	limit := c.server.callTimeout()
	ctx, stopAll := context.WithTimeoutCause(ctx, max(maxCall, limit), errTooLong)
	defer stopAll()
	timer := timeout.New(ctx, limit)
	defer timer.Stop()
	ctx, p, end := c.requests.begin(timer.Context(), caller)
	defer end()
	p.pause, p.resume = timer.Pause, timer.Resume
	token := c.nextToken()
	news, stop := c.notices.followProgress(token)
	defer stop()

	type result struct {
		text json.RawMessage
		err  error
	}
	done := make(chan result, 1)
	reporter := progressReporter{to: caller.Progress}
	if !c.spawn(func() {
		text, err := request(ctx, token)
		done <- result{text, err}
	}) {
		return nil, c.Err()
	}
	for {
		select {
		case n := <-news:
			timer.Restart()
			reporter.add(n)
		case o := <-done:
			select {
			case n := <-news: // arrived before the response
				reporter.add(n)
			default:
			}
			reporter.flush()
			switch {
			case o.err == nil:
				return o.text, nil
			case timer.Expired():
				return nil, c.wrap(fmt.Errorf("%s took longer than %s (callTimeoutMs): %w", what, limit, timeout.ErrExpired))
			case errors.Is(context.Cause(ctx), errTooLong):
				return nil, c.wrap(fmt.Errorf("%s took longer than %s despite progress: %w", what, max(maxCall, limit), timeout.ErrExpired))
			}
			return nil, o.err
		}
	}
}

var errTooLong = errors.New("too long")

// progressReporter reports progress at most every progressEvery, but always the
// latest when flushed.
type progressReporter struct {
	to       func(core.Progress) // may be nil
	pending  *core.Progress
	reported time.Time
}

func (t *progressReporter) add(p progress) {
	t.pending = &core.Progress{Done: p.done, Total: p.total, Message: p.message}
	if time.Since(t.reported) >= progressEvery {
		t.flush()
	}
}

func (t *progressReporter) flush() {
	if t.to != nil && t.pending != nil {
		t.reported = time.Now()
		t.to(*t.pending)
	}
	t.pending = nil
}

// openAll asks the user to open the pages that a server requires first, and
// reports whether all were opened.
func (c *Conn) openAll(ctx context.Context, data json.RawMessage) bool {
	var body struct {
		Elicitations []mcp.ElicitationParams `json:"elicitations"`
	}
	if json.Unmarshal(data, &body) != nil || len(body.Elicitations) == 0 || len(body.Elicitations) > 5 {
		return false
	}
	h := &handlers{conn: c}
	for _, params := range body.Elicitations {
		if h.open(ctx, pendingOf(ctx), params).Action != mcp.ElicitationResponseActionAccept {
			return false
		}
	}
	return true
}

// awaitTask waits for the result of a call made as a task. If ctx ends first, the
// task is cancelled.
func (c *Conn) awaitTask(ctx context.Context, created json.RawMessage) (json.RawMessage, error) {
	var body struct {
		Task struct {
			ID       string `json:"taskId"`
			Status   string `json:"status"`
			Interval int64  `json:"pollInterval"`
		} `json:"task"`
	}
	if err := json.Unmarshal(created, &body); err != nil || body.Task.ID == "" {
		return created, nil // the result itself
	}
	id := body.Task.ID
	interval := min(max(time.Duration(body.Task.Interval)*time.Millisecond, 100*time.Millisecond), 10*time.Second)
	status := mcp.TaskStatus(body.Task.Status)
	for !status.IsTerminal() && status != mcp.TaskStatusInputRequired {
		timer := time.NewTimer(interval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			c.cancelTask(id)
			return nil, c.wrap(ctx.Err())
		}
		text, err := c.do(ctx, mcp.MethodTasksGet, fields{"taskId": id})
		if err != nil {
			return nil, err
		}
		_ = json.Unmarshal(text, &body.Task)
		status = mcp.TaskStatus(body.Task.Status)
	}
	text, err := c.do(ctx, mcp.MethodTasksResult, fields{"taskId": id})
	if err != nil && ctx.Err() != nil {
		c.cancelTask(id)
	}
	return text, err
}

func (c *Conn) cancelTask(id string) {
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(c.ctx, cancelTimeout)
		defer cancel()
		_, _ = c.do(ctx, mcp.MethodTasksCancel, fields{"taskId": id})
	})
}

// ReadResource reads a resource.
func (c *Conn) ReadResource(ctx context.Context, uri string, caller Caller) (CallResult, error) {
	text, err := c.withCallTimeout(ctx, caller, "reading the resource", func(ctx context.Context, _ string) (json.RawMessage, error) {
		return c.converse(ctx, mcp.MethodResourcesRead, fields{"uri": uri}, nil)
	})
	if err != nil {
		return CallResult{}, err
	}
	r, err := resourceResult(text)
	return r, c.wrap(err)
}

// GetPrompt returns a prompt with its arguments filled in.
func (c *Conn) GetPrompt(ctx context.Context, name string, args map[string]string, caller Caller) (CallResult, error) {
	text, err := c.withCallTimeout(ctx, caller, "the prompt", func(ctx context.Context, _ string) (json.RawMessage, error) {
		params := fields{"name": name}
		if len(args) > 0 {
			params["arguments"] = args
		}
		return c.converse(ctx, mcp.MethodPromptsGet, params, nil)
	})
	if err != nil {
		return CallResult{}, err
	}
	r, err := promptResult(text)
	return r, c.wrap(err)
}

// CompletePrompt lists completions for an argument of a prompt, given its prefix
// and the other arguments.
func (c *Conn) CompletePrompt(ctx context.Context, prompt, argument, prefix string, others map[string]string) ([]string, error) {
	if !c.info.Completions {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.listTimeout())
	defer cancel()
	params := fields{"ref": fields{"type": "ref/prompt", "name": prompt}, "argument": fields{"name": argument, "value": prefix}}
	if len(others) > 0 {
		params["context"] = fields{"arguments": others}
	}
	text, err := c.do(ctx, mcp.MethodCompletionComplete, params)
	if err != nil {
		return nil, err
	}
	var body struct {
		Completion struct {
			Values []string `json:"values"`
		} `json:"completion"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, c.wrap(fmt.Errorf("invalid completion: %w", err))
	}
	for i, v := range body.Completion.Values {
		body.Completion.Values[i] = cleanLine(v)
	}
	return body.Completion.Values, nil
}

// Subscribe subscribes to changes of a resource; see [ConnectOptions.Notify].
func (c *Conn) Subscribe(ctx context.Context, uri string) error {
	if !c.info.Subscribe {
		return nil
	}
	c.subscribed.Lock()
	known := c.subscribed.uris[uri]
	if c.subscribed.uris == nil {
		c.subscribed.uris = map[string]bool{}
	}
	c.subscribed.uris[uri] = true
	c.subscribed.Unlock()
	if known {
		return nil
	}
	if c.modern() {
		c.listen(ctx)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.listTimeout())
	defer cancel()
	_, err := c.do(ctx, mcp.MethodResourcesSubscribe, fields{"uri": uri})
	return err
}

// listen opens the stream of notifications that belong to no request, or reopens
// it with the current subscriptions. It returns once none can be missed.
func (c *Conn) listen(ctx context.Context) {
	if !c.modern() {
		if t, ok := c.link.(*streamable); ok {
			t.listen(ctx)
		}
		return
	}
	filter := mcp.SubscriptionFilter{ToolsListChanged: c.info.Tools, PromptsListChanged: c.info.Prompts, ResourcesListChanged: c.info.Resources}
	c.subscribed.Lock()
	filter.ResourceSubscriptions = slices.Sorted(maps.Keys(c.subscribed.uris))
	if filter.IsEmpty() {
		c.subscribed.Unlock()
		return
	}
	if c.subscribed.stop != nil {
		c.subscribed.stop()
	}
	life, cancel := context.WithCancel(c.ctx)
	opened := make(chan struct{}, 1)
	c.subscribed.stop, c.subscribed.opened = cancel, opened
	c.subscribed.Unlock()
	c.spawn(func() {
		defer cancel()
		_, _ = c.do(life, mcp.MethodSubscriptionsListen, fields{"notifications": filter}) // without such a stream there are no notifications
		signal(opened)
	})
	waitBriefly(ctx, opened)
}

// handleNotification handles a notification of the server.
func (c *Conn) handleNotification(method string, params json.RawMessage) {
	if method != "notifications/subscriptions/acknowledged" {
		c.notices.handle(method, params)
		return
	}
	c.subscribed.Lock()
	defer c.subscribed.Unlock()
	signal(c.subscribed.opened)
}

func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// waitBriefly waits for something that a well-behaved server does at once.
func waitBriefly(ctx context.Context, done <-chan struct{}) {
	timer := time.NewTimer(500 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}
