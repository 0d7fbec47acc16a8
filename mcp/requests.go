package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/timeout"
)

// Bounds of lists.
const (
	maxPages = 200
	maxItems = 20_000
	// maxCall bounds a call that goes on telling of progress.
	maxCall = time.Hour
	// progressEvery bounds how often a caller hears of progress.
	progressEvery = 50 * time.Millisecond
)

// ToolInfo is a tool as its server describes it.
type ToolInfo struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"inputSchema,omitempty"` // of the arguments, to the byte
	Annotations struct {
		ReadOnly    bool  `json:"readOnlyHint,omitempty"`
		Destructive *bool `json:"destructiveHint,omitempty"`
	} `json:"annotations,omitzero"`
	Execution struct {
		Task string `json:"taskSupport,omitempty"` // "forbidden", "optional" or "required"
	} `json:"execution,omitzero"`
}

// Resource is something that a server lets be read. URI is a template for those
// of [Conn.ResourceTemplates].
type Resource struct {
	URI         string `json:"uri"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// Prompt is a text that a server has ready, with gaps to fill.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
}

// PromptArgument is a gap of a [Prompt].
type PromptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// Tools lists the tools. One that cannot be read is left out and named in the
// error beside the others.
func (c *Conn) Tools(ctx context.Context) ([]ToolInfo, error) {
	var kept map[string]bool // by the library, where the transport cannot call all
	items, err := c.list(ctx, "tools", func(ctx context.Context, cursor mcp.Cursor) error {
		var req mcp.ListToolsRequest
		req.Params.Cursor = cursor
		res, err := c.client.ListToolsByPage(ctx, req)
		if err == nil && c.modern.Load() {
			for _, t := range res.Tools {
				if kept == nil {
					kept = map[string]bool{}
				}
				kept[t.Name] = true
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	tools, broken := decodeAll(items, func(t ToolInfo) string { return t.Name })
	usable := tools[:0]
	for _, t := range tools {
		if kept != nil && !kept[t.Name] {
			broken = append(broken, fmt.Errorf("the tool %.100q has headers that cannot be sent", cleanLine(t.Name)))
			continue
		}
		usable = append(usable, t)
	}
	return usable, c.wrap(errors.Join(broken...))
}

// Resources lists the resources.
func (c *Conn) Resources(ctx context.Context) ([]Resource, error) {
	items, err := c.list(ctx, "resources", func(ctx context.Context, cursor mcp.Cursor) error {
		var req mcp.ListResourcesRequest
		req.Params.Cursor = cursor
		_, err := c.client.ListResourcesByPage(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	list, _ := decodeAll(items, func(r Resource) string { return r.URI })
	return list, nil
}

// ResourceTemplates lists the templates of resources.
func (c *Conn) ResourceTemplates(ctx context.Context) ([]Resource, error) {
	items, err := c.list(ctx, "resourceTemplates", func(ctx context.Context, cursor mcp.Cursor) error {
		var req mcp.ListResourceTemplatesRequest
		req.Params.Cursor = cursor
		_, err := c.client.ListResourceTemplatesByPage(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	list, _ := decodeAll(items, func(r Resource) string { return r.Template })
	return list, nil
}

// Prompts lists the prompts.
func (c *Conn) Prompts(ctx context.Context) ([]Prompt, error) {
	items, err := c.list(ctx, "prompts", func(ctx context.Context, cursor mcp.Cursor) error {
		var req mcp.ListPromptsRequest
		req.Params.Cursor = cursor
		_, err := c.client.ListPromptsByPage(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	list, _ := decodeAll(items, func(p Prompt) string { return p.Name })
	return list, nil
}

// list reads all pages of a list. A server whose list has no end, or that turns
// in a circle, is an error.
func (c *Conn) list(ctx context.Context, member string, page func(context.Context, mcp.Cursor) error) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.server.listTimeout(), fmt.Errorf("the list of %s did not come within %s (startTimeoutMs)", member, c.server.listTimeout()))
	defer cancel()
	var all []json.RawMessage
	seen := map[mcp.Cursor]bool{}
	cursor := mcp.Cursor("")
	for range maxPages {
		result, err := c.do(ctx, func(ctx context.Context) error { return page(ctx, cursor) })
		if err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				err = context.Cause(ctx)
			}
			return nil, c.wrap(err)
		}
		var body map[string]json.RawMessage
		var items []json.RawMessage
		if json.Unmarshal(result, &body) != nil || body[member] != nil && json.Unmarshal(body[member], &items) != nil {
			return nil, c.wrap(fmt.Errorf("its list of %s is none: %s", member, clip(cleanLine(string(result)), 100)))
		}
		all = append(all, items...)
		var next mcp.Cursor
		_ = json.Unmarshal(body["nextCursor"], &next) // one that is no text ends the list
		switch {
		case next == "":
			return all, nil
		case seen[next]:
			return nil, c.wrap(fmt.Errorf("its list of %s turns in a circle (page %.100q comes twice)", member, string(next)))
		case len(all) > maxItems:
			return nil, c.wrap(fmt.Errorf("its list of %s has more than %d entries", member, maxItems))
		}
		seen[next], cursor = true, next
	}
	return nil, c.wrap(fmt.Errorf("its list of %s has more than %d pages", member, maxPages))
}

// decodeAll decodes the entries of a list, each by itself. One without a name
// is as broken as one that cannot be read.
func decodeAll[T any](items []json.RawMessage, name func(T) string) (list []T, broken []error) {
	for i, item := range items {
		var v T
		err := json.Unmarshal(item, &v)
		if err == nil && name(v) == "" {
			err = errors.New("it has no name")
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("entry %d of the list cannot be used: %w", i+1, err))
			continue
		}
		list = append(list, v)
	}
	return list, broken
}

// Call calls a tool. The result is as the server sent it; args are a JSON
// object. The server has its call time-out, which progress starts anew and
// questions to a person stop.
func (c *Conn) Call(ctx context.Context, tool ToolInfo, args json.RawMessage, caller Caller) (CallResult, error) {
	var result CallResult
	text, err := c.during(ctx, caller, "the call", func(ctx context.Context, token string) (json.RawMessage, error) {
		text, err := c.callOnce(ctx, tool, args, token)
		if e := (*RPCError)(nil); errors.As(err, &e) && e.Code == mcp.URL_ELICITATION_REQUIRED && c.openAll(ctx, e.Data) {
			text, err = c.callOnce(ctx, tool, args, token) // once: the person has been there
		}
		return text, err
	})
	if err != nil {
		return result, err
	}
	if err := result.decode(text); err != nil {
		return result, c.wrap(fmt.Errorf("its answer to the call is no result: %w", err))
	}
	return result, nil
}

func (c *Conn) callOnce(ctx context.Context, tool ToolInfo, args json.RawMessage, token string) (json.RawMessage, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool.Name, args
	req.Params.Meta = &mcp.Meta{ProgressToken: token}
	task := c.info.Tasks && tool.Execution.Task == string(mcp.TaskSupportRequired)
	if task {
		req.Params.Task = &mcp.TaskParams{}
	}
	text, err := c.do(ctx, func(ctx context.Context) error {
		_, err := c.client.CallTool(ctx, req)
		return err
	})
	if err != nil || !task {
		return text, err
	}
	return c.awaitTask(ctx, text)
}

// during makes a request with the server's call time-out, and hands its
// progress on.
func (c *Conn) during(ctx context.Context, caller Caller, what string, request func(ctx context.Context, token string) (json.RawMessage, error)) (json.RawMessage, error) {
	limit := c.server.callTimeout()
	ctx, stopAll := context.WithTimeoutCause(ctx, max(maxCall, limit), errTooLong)
	defer stopAll()
	timer := timeout.New(ctx, limit)
	defer timer.Stop()
	ctx, p, end := c.requests.begin(timer.Context(), caller)
	defer end()
	p.pause, p.resume = timer.Pause, timer.Resume
	token := c.nextToken()
	news, stop := c.notices.follow(token)
	defer stop()

	type outcome struct {
		text json.RawMessage
		err  error
	}
	done := make(chan outcome, 1)
	var told time.Time
	c.spawnAlways(func() {
		text, err := request(ctx, token)
		done <- outcome{text, err}
	})
	for {
		select {
		case n := <-news:
			timer.Restart()
			if caller.Progress != nil && time.Since(told) >= progressEvery {
				told = time.Now()
				caller.Progress(core.Progress{Done: n.done, Total: n.total, Message: n.message})
			}
		case o := <-done:
			switch {
			case o.err == nil:
				return o.text, nil
			case timer.Expired():
				return nil, c.wrap(fmt.Errorf("%s took longer than %s (callTimeoutMs): %w", what, limit, timeout.ErrExpired))
			case errors.Is(context.Cause(ctx), errTooLong):
				return nil, c.wrap(fmt.Errorf("%s took longer than %s, whatever its progress: %w", what, max(maxCall, limit), timeout.ErrExpired))
			}
			return nil, o.err
		}
	}
}

var errTooLong = errors.New("too long")

// spawnAlways runs f in a goroutine that Close waits for, also while it closes:
// what f does ends with the connection.
func (c *Conn) spawnAlways(f func()) { c.wg.Go(f) }

// openAll has the person open the pages that a server wants to be opened first,
// and reports whether all were.
func (c *Conn) openAll(ctx context.Context, data json.RawMessage) bool {
	var body struct {
		Elicitations []mcp.ElicitationParams `json:"elicitations"`
	}
	if json.Unmarshal(data, &body) != nil || len(body.Elicitations) == 0 || len(body.Elicitations) > 5 {
		return false
	}
	h := &handlers{conn: c}
	for _, params := range body.Elicitations {
		res, err := h.open(ctx, pendingOf(ctx), params)
		if err != nil || res.Action != mcp.ElicitationResponseActionAccept {
			return false
		}
	}
	return true
}

// awaitTask waits for the end of a call that was made as a task. When ctx ends
// before, the server is told to cancel it.
func (c *Conn) awaitTask(ctx context.Context, created json.RawMessage) (json.RawMessage, error) {
	var body struct {
		Task struct {
			ID       string `json:"taskId"`
			Status   string `json:"status"`
			Interval int64  `json:"pollInterval"`
		} `json:"task"`
	}
	if err := json.Unmarshal(created, &body); err != nil || body.Task.ID == "" {
		return created, nil // it answered at once
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
		text, err := c.do(ctx, func(ctx context.Context) error {
			_, err := c.client.GetTask(ctx, mcp.GetTaskRequest{Params: mcp.GetTaskParams{TaskId: id}})
			return err
		})
		if err != nil {
			return nil, err
		}
		_ = json.Unmarshal(text, &body.Task)
		status = mcp.TaskStatus(body.Task.Status)
	}
	text, err := c.do(ctx, func(ctx context.Context) error {
		_, err := c.client.TaskResult(ctx, mcp.TaskResultRequest{Params: mcp.TaskResultParams{TaskId: id}})
		return err
	})
	if err != nil && ctx.Err() != nil {
		c.cancelTask(id)
	}
	return text, err
}

func (c *Conn) cancelTask(id string) {
	c.spawn(func(life context.Context) {
		ctx, cancel := context.WithTimeout(life, cancelTimeout)
		defer cancel()
		_, _ = c.client.CancelTask(ctx, mcp.CancelTaskRequest{Params: mcp.CancelTaskParams{TaskId: id}})
	})
}

// ReadResource reads a resource.
func (c *Conn) ReadResource(ctx context.Context, uri string, caller Caller) (CallResult, error) {
	text, err := c.during(ctx, caller, "reading the resource", func(ctx context.Context, _ string) (json.RawMessage, error) {
		return c.do(ctx, func(ctx context.Context) error {
			var req mcp.ReadResourceRequest
			req.Params.URI = uri
			_, err := c.client.ReadResource(ctx, req)
			return err
		})
	})
	if err != nil {
		return CallResult{}, err
	}
	r, err := resourceResult(text)
	return r, c.wrap(err)
}

// GetPrompt has a prompt filled in.
func (c *Conn) GetPrompt(ctx context.Context, name string, args map[string]string, caller Caller) (CallResult, error) {
	text, err := c.during(ctx, caller, "the prompt", func(ctx context.Context, _ string) (json.RawMessage, error) {
		return c.do(ctx, func(ctx context.Context) error {
			var req mcp.GetPromptRequest
			req.Params.Name, req.Params.Arguments = name, args
			_, err := c.client.GetPrompt(ctx, req)
			return err
		})
	})
	if err != nil {
		return CallResult{}, err
	}
	r, err := promptResult(text)
	return r, c.wrap(err)
}

// CompletePrompt lists what an argument of a prompt may be, given its beginning
// and the other arguments.
func (c *Conn) CompletePrompt(ctx context.Context, prompt, argument, prefix string, others map[string]string) ([]string, error) {
	return c.complete(ctx, mcp.PromptReference{Type: "ref/prompt", Name: prompt}, argument, prefix, others)
}

// CompleteResource lists what a variable of a resource template may be.
func (c *Conn) CompleteResource(ctx context.Context, template, variable, prefix string, others map[string]string) ([]string, error) {
	return c.complete(ctx, mcp.ResourceReference{Type: "ref/resource", URI: template}, variable, prefix, others)
}

func (c *Conn) complete(ctx context.Context, ref any, argument, prefix string, others map[string]string) ([]string, error) {
	if !c.info.Completions {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.listTimeout())
	defer cancel()
	text, err := c.do(ctx, func(ctx context.Context) error {
		var req mcp.CompleteRequest
		req.Params.Ref = ref
		req.Params.Argument = mcp.CompleteArgument{Name: argument, Value: prefix}
		req.Params.Context.Arguments = others
		_, err := c.client.Complete(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	var body struct {
		Completion struct {
			Values []string `json:"values"`
		} `json:"completion"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, c.wrap(fmt.Errorf("its completion is none: %w", err))
	}
	for i, v := range body.Completion.Values {
		body.Completion.Values[i] = cleanLine(v)
	}
	return body.Completion.Values, nil
}

// Subscribe asks to be told when a resource changes; see
// [ConnectOptions.Notify].
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
	if c.modern.Load() {
		c.listen()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.server.listTimeout())
	defer cancel()
	_, err := c.do(ctx, func(ctx context.Context) error {
		var req mcp.SubscribeRequest
		req.Params.URI = uri
		//lint:ignore SA1019 in the old era there is no other way
		return c.client.Subscribe(ctx, req)
	})
	return err
}

// listen opens the stream of notifications of the new era, or opens it anew
// with what was subscribed to since. In the old era they come by themselves.
func (c *Conn) listen() {
	if !c.modern.Load() {
		return
	}
	c.subscribed.Lock()
	defer c.subscribed.Unlock()
	filter := mcp.SubscriptionFilter{ToolsListChanged: c.info.Tools, PromptsListChanged: c.info.Prompts, ResourcesListChanged: c.info.Resources}
	for uri := range c.subscribed.uris {
		filter.ResourceSubscriptions = append(filter.ResourceSubscriptions, uri)
	}
	if c.subscribed.stop != nil {
		c.subscribed.stop()
	}
	ctx, cancel := context.WithCancel(c.life)
	c.subscribed.stop = cancel
	c.spawn(func(context.Context) {
		defer cancel()
		_ = c.client.Listen(ctx, filter) // a server that has no such stream tells of no changes
	})
}
