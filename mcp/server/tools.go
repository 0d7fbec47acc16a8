package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// toolSession runs tool calls one after the other in one session, so that what was
// allowed for the session and which files were read carries over to the next
// call. Its model requests exactly the client's call.
type toolSession struct {
	server *Server
	turn   chan struct{} // held by the running call

	session Session // guarded by turn; nil before the first call and after an aborted one
	model   oneCall
	asker   *call
	seen    event.Seq
}

// call implements runner.
func (t *toolSession) call(c *call) *mcp.CallToolResult {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-c.ctx.Done():
		return failure("The call was cancelled before it started.")
	}
	t.asker = c
	if t.session == nil {
		s, err := t.server.opts.Open(t.server.ctx, SessionOptions{Provider: &t.model, Asker: t})
		if err != nil {
			return failure(fmt.Sprintf("Cannot open a session: %v", err))
		}
		t.session, t.seen = s, 0
	}
	id := t.model.set(c.name, string(c.args))
	var found *event.ToolResult
	var reading sync.WaitGroup
	stop, quit := context.WithCancel(context.Background())
	reading.Go(func() { found = t.follow(stop, c, id) })
	_, err := t.session.Submit(c.ctx, core.TextInput("Call "+c.name+" for the client."))
	if err != nil || c.ctx.Err() != nil {
		_ = t.session.Close() // an aborted session accepts no further input
		t.session = nil
	}
	if err != nil {
		quit() // there may be no result to wait for
	}
	reading.Wait()
	quit()
	switch {
	case found != nil:
		return t.result(c.ctx, found)
	case c.ctx.Err() != nil:
		return failure("The call was cancelled.")
	case err != nil:
		return failure(fmt.Sprintf("The call failed: %v", err))
	}
	return failure("The call returned no result.")
}

// Ask implements [core.Asker] for the running call.
func (t *toolSession) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	return t.asker.Ask(ctx, q)
}

// follow reads the session's events until the call has ended, reports progress and
// returns the result.
func (t *toolSession) follow(ctx context.Context, c *call, id string) (found *event.ToolResult) {
	for e, err := range t.session.Events(ctx, t.seen) {
		if err != nil {
			return found
		}
		t.seen = max(t.seen, e.Seq)
		switch b := e.Body.(type) {
		case event.ToolProgress:
			if e.Call == id {
				c.report(core.Progress{Done: b.Done, Total: b.Total, Message: b.Message})
			}
		case event.ToolResult:
			if e.Call == id {
				found = &b
			}
		case event.Idle:
			return found
		}
	}
	return found
}

// result converts a tool result to MCP.
func (t *toolSession) result(ctx context.Context, r *event.ToolResult) *mcp.CallToolResult {
	out := &mcp.CallToolResult{IsError: r.IsError, Content: []mcp.Content{}}
	for _, p := range r.Content {
		switch p := p.(type) {
		case model.Text:
			out.Content = append(out.Content, mcp.NewTextContent(p.Text))
		case model.Image:
			data, err := t.image(ctx, p)
			if err != nil {
				out.Content = append(out.Content, mcp.NewTextContent(fmt.Sprintf("[image unavailable: %v]", err)))
				continue
			}
			out.Content = append(out.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(data), p.MediaType))
		}
	}
	if len(r.Structured) > 0 && r.Structured[0] == '{' {
		out.StructuredContent = r.Structured
	}
	return out
}

// maxImage limits an image in a result, in bytes.
const maxImage = 16 << 20

func (t *toolSession) image(ctx context.Context, img model.Image) ([]byte, error) {
	if img.Data != nil {
		return img.Data, nil
	}
	if t.server.opts.Blob == nil || t.session == nil {
		return nil, errors.New("not stored")
	}
	f, err := t.server.opts.Blob(ctx, t.session, img.Blob)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err == nil && len(data) > maxImage {
		err = fmt.Errorf("larger than %d bytes", maxImage)
	}
	return data, err
}

func (t *toolSession) close() error {
	if t.session == nil {
		return nil
	}
	return t.session.Close()
}

func failure(text string) *mcp.CallToolResult { return mcp.NewToolResultError(text) }

// oneCall is a model that requests the call that was set, and then stops.
type oneCall struct {
	mu   sync.Mutex
	n    int
	next *model.ToolCall
}

var _ model.Provider = (*oneCall)(nil)

// set sets the next call and returns its ID.
func (p *oneCall) set(name, args string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	p.next = &model.ToolCall{ID: fmt.Sprintf("mcp-%d", p.n), Name: name, Args: args}
	return p.next.ID
}

// Info implements [model.Provider].
func (*oneCall) Info() model.ProviderInfo { return model.ProviderInfo{Name: "mcp", Model: "client"} }

// Stream implements [model.Provider].
func (p *oneCall) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	p.mu.Lock()
	c := p.next
	p.next = nil
	p.mu.Unlock()
	deltas := []model.Delta{{Kind: model.DeltaText, Text: "Done."}, {Kind: model.DeltaDone, Stop: model.StopEnd}}
	if c != nil {
		deltas = []model.Delta{
			{Kind: model.DeltaToolStart, ID: c.ID, Name: c.Name},
			{Kind: model.DeltaToolArgs, Text: c.Args},
			{Kind: model.DeltaToolEnd},
			{Kind: model.DeltaDone, Stop: model.StopToolCalls},
		}
	}
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
	}
}
