package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tracecontext"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Bounds of what a plugin may send for one request.
const (
	maxText       = 256 << 20 // bytes of text, which is streamed to the caller
	maxStructured = 16 << 20  // bytes
	maxImages     = 20        // number
	maxImage      = 20 << 20  // bytes per image
	progressEvery = 100 * time.Millisecond
	cancelGrace   = time.Second // to finish after a cancellation
)

// callbacks receive what a plugin sends before its result.
type callbacks struct {
	output   io.Writer // receives text as it arrives; nil = keep it for the result
	progress func(core.Progress)
	ask      func(context.Context, *toolproto.Confirm) *toolproto.ConfirmAnswer
	form     func(context.Context, *toolproto.Ask) *toolproto.Answer
	sample   func(context.Context, *toolproto.Sample) *toolproto.Sampled
}

// converse sends a request to the plugin and waits for the result. Failures of
// the plugin are results; the error is that of ctx, or ErrClosed.
func (p *Plugin) converse(ctx context.Context, first *toolproto.HostFrame, cb callbacks) (core.Result, error) {
	if _, err := p.settings(); err != nil {
		return core.Fail(core.CodeConfig, err.Error()), nil
	}
	i, err := p.acquire(ctx)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			p.release(i, true)
		}
		return core.Result{}, ctx.Err()
	case errors.Is(err, ErrClosed):
		return core.Result{}, p.wrap(err)
	case err != nil:
		return core.Failf(core.CodeUnknown, "Cannot use the plugin %s: %v", p.name, err), nil
	}
	c := &conversation{plugin: p, instance: i, callbacks: cb}
	res, err := c.run(ctx, first)
	p.release(i, err == nil && !c.failed)
	if c.ignoredCancel {
		p.check(i)
	}
	return res, err
}

// check kills a process that does not respond, in the background.
func (p *Plugin) check(i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.wg.Go(func() {
		if !i.probe(p.host.version) && i.alive.Err() == nil {
			p.giveUp(i, "it ignored a cancellation and does not respond")
		}
	})
}

// conversation is one stream with a plugin.
type conversation struct {
	plugin        *Plugin
	instance      *instance
	callbacks     callbacks
	stream        toolproto.Plugin_SessionClient
	failed        bool // the stream broke
	ignoredCancel bool

	sending sync.Mutex

	text       strings.Builder // if there is no output callback
	written    int
	structured []byte
	images     []model.Part
	image      []byte // an incomplete one
	open       *toolproto.Part
	progressed time.Time
}

// run opens the stream and receives the result.
func (c *conversation) run(ctx context.Context, first *toolproto.HostFrame) (core.Result, error) {
	// The stream survives a cancellation for a grace period, but not the process.
	streaming, stop := context.WithCancel(c.instance.alive)
	defer stop()
	if header := tracecontext.Header(ctx); header != "" {
		streaming = metadata.AppendToOutgoingContext(streaming, "traceparent", header)
	}
	var err error
	if c.stream, err = c.instance.client.Session(streaming); err == nil {
		err = c.send(first)
	}
	if err != nil && !errors.Is(err, io.EOF) { // on EOF, Recv returns the cause
		return c.failure(ctx, err), ctx.Err()
	}
	var cancelling sync.WaitGroup
	cancelling.Add(1)
	ended := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer cancelling.Done()
		_ = c.send(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Cancel{Cancel: &toolproto.Cancel{Reason: context.Cause(ctx).Error()}}})
		grace := time.NewTimer(cancelGrace)
		defer grace.Stop()
		select {
		case <-ended:
		case <-grace.C:
			c.ignoredCancel = true
			stop()
		}
	})
	res, err := c.follow(ctx)
	close(ended)
	if unhook() {
		cancelling.Done()
	}
	cancelling.Wait()
	if ctx.Err() != nil {
		return core.Result{}, ctx.Err()
	}
	if err != nil {
		return c.failure(ctx, err), nil
	}
	return res, nil
}

func (c *conversation) send(f *toolproto.HostFrame) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.stream.Send(f)
}

// protocolError says that a plugin exceeded a limit or sent an invalid result.
type protocolError struct{ what string }

func (e *protocolError) Error() string { return e.what }

// follow handles the plugin's frames until its result.
func (c *conversation) follow(ctx context.Context) (core.Result, error) {
	for {
		f, err := c.stream.Recv()
		if err != nil {
			return core.Result{}, err
		}
		switch f := f.Frame.(type) {
		case *toolproto.PluginFrame_Progress:
			c.progress(f.Progress)
		case *toolproto.PluginFrame_Output:
			err = c.write(f.Output.Data)
		case *toolproto.PluginFrame_Log:
			c.plugin.log.printf("%s %s", strings.ToLower(f.Log.Level.String()), f.Log.Message)
		case *toolproto.PluginFrame_Confirm:
			err = c.confirm(ctx, f.Confirm)
		case *toolproto.PluginFrame_Ask:
			err = c.form(ctx, f.Ask)
		case *toolproto.PluginFrame_Sample:
			err = c.sample(ctx, f.Sample)
		case *toolproto.PluginFrame_Part:
			err = c.part(f.Part)
		case *toolproto.PluginFrame_ToolsChanged:
			c.relist()
		case *toolproto.PluginFrame_Result:
			return c.result(f.Result)
		}
		if err != nil {
			return core.Result{}, err
		}
	}
}

// relist reads the tools again, in the background.
func (c *conversation) relist() {
	p := c.plugin
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.now.spec.Dynamic {
		p.wg.Go(func() { p.relist(c.instance) })
	}
}

// progress forwards progress reports, at a limited rate.
func (c *conversation) progress(p *toolproto.Progress) {
	now := time.Now()
	if c.callbacks.progress == nil || now.Sub(c.progressed) < progressEvery {
		return
	}
	c.progressed = now
	c.callbacks.progress(core.Progress{Done: p.Done, Total: p.Total, Message: shorten(cleanLine(p.Message), 200)})
}

func (c *conversation) write(data []byte) error {
	if c.written += len(data); c.written > maxText {
		return &protocolError{fmt.Sprintf("it sent more than %d MiB of text", maxText>>20)}
	}
	if c.callbacks.output == nil {
		c.text.Write(data)
		return nil
	}
	_, err := c.callbacks.output.Write(data)
	return err
}

func (c *conversation) confirm(ctx context.Context, q *toolproto.Confirm) error {
	answer := &toolproto.ConfirmAnswer{Id: q.Id, Reason: core.ErrNonInteractive.Error()}
	if c.callbacks.ask != nil {
		asking, done := c.whileAlive(ctx)
		answer = c.callbacks.ask(asking, q)
		done()
	}
	return c.reply(&toolproto.HostFrame{Frame: &toolproto.HostFrame_Confirm{Confirm: answer}})
}

// whileAlive returns a context that ends with the plugin: a dead plugin's question is
// withdrawn.
func (c *conversation) whileAlive(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(c.instance.alive, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// reply sends an answer to the plugin.
func (c *conversation) reply(f *toolproto.HostFrame) error {
	err := c.send(f)
	if errors.Is(err, io.EOF) {
		return nil // Recv returns the cause
	}
	return err
}

// part handles a part of the result, or a piece of one.
func (c *conversation) part(p *toolproto.Part) error {
	if c.open != nil && c.open.Kind != p.Kind {
		return &protocolError{"it started a new part of the result before the last one was complete"}
	}
	switch p.Kind {
	case toolproto.Part_IMAGE:
		if len(c.image)+len(p.Data) > maxImage || len(c.images) >= maxImages {
			return &protocolError{fmt.Sprintf("it sent more than %d images or one of more than %d MiB", maxImages, maxImage>>20)}
		}
		c.image = append(c.image, p.Data...)
		if !p.More {
			mediaType := p.MediaType
			if c.open != nil {
				mediaType = c.open.MediaType
			}
			c.images = append(c.images, model.Image{MediaType: shorten(cleanLine(mediaType), 80), Data: c.image})
			c.image = nil
		}
	case toolproto.Part_STRUCTURED:
		if len(c.structured)+len(p.Data) > maxStructured {
			return &protocolError{fmt.Sprintf("it sent more than %d MiB of structured data", maxStructured>>20)}
		}
		c.structured = append(c.structured, p.Data...)
	default:
		if err := c.write(p.Data); err != nil {
			return err
		}
	}
	if c.open == nil {
		c.open = p
	}
	if !p.More {
		c.open = nil
	}
	return nil
}

// resultCodes are the error codes that a plugin may use.
var resultCodes = []core.ErrorCode{
	core.CodeValidation, core.CodeIO, core.CodeConfig, core.CodePermission, core.CodeRateLimited, core.CodeNotFound,
	core.CodeTimeout, core.CodeCancelled, core.CodeUnknown,
}

// result combines the final frame with what was sent before.
func (c *conversation) result(r *toolproto.Result) (core.Result, error) {
	if c.open != nil {
		return core.Result{}, &protocolError{"a part of its result is incomplete"}
	}
	if len(r.Structured) > 0 {
		c.structured = r.Structured
	}
	if len(c.structured) > 0 && !json.Valid(c.structured) {
		return core.Result{}, &protocolError{"its structured result is not valid JSON"}
	}
	res := core.Result{Structured: c.structured, Code: core.ErrorCode(r.Code)}
	if res.Code != "" && !slices.Contains(resultCodes, res.Code) {
		res.Code = core.CodeUnknown
	}
	text := c.text.String() + r.Text
	if text == "" && c.written == 0 && len(c.images) == 0 {
		text = string(c.structured)
	}
	if res.Code != "" && text == "" && c.written == 0 {
		text = fmt.Sprintf("The plugin %s failed without an error message.", c.plugin.name)
	}
	if text != "" {
		res.Content = model.TextParts(strings.ToValidUTF8(text, "\uFFFD"))
	}
	res.Content = append(res.Content, c.images...)
	if r.Prompt {
		res.Meta = map[string]json.RawMessage{metaPrompt: json.RawMessage("true")}
	}
	return res, nil
}

// metaPrompt marks a command's result as a prompt.
const metaPrompt = "prompt"

// failure converts a stream error to a result.
func (c *conversation) failure(ctx context.Context, err error) core.Result {
	c.failed = true
	name := c.plugin.name
	var violation *protocolError
	switch {
	case ctx.Err() != nil:
		return core.Result{}
	case errors.As(err, &violation):
		return core.Failf(core.CodeUnknown, "The plugin %s was aborted: %v.", name, err)
	case status.Code(err) == codes.ResourceExhausted:
		return core.Failf(core.CodeUnknown, "The plugin %s was aborted: a message was larger than %d MiB; its author should send large results in parts.", name, toolproto.MaxMessage>>20)
	case c.instance.ended(300 * time.Millisecond):
		if c.plugin.isClosed() {
			return core.Failf(core.CodeCancelled, "The plugin %s was closed.", name)
		}
		return core.Failf(core.CodeUnknown, "The plugin %s %s. The next call restarts it; if it keeps crashing, do without it.", name, c.instance.crashText(c.plugin.log))
	case errors.Is(err, io.EOF):
		return core.Failf(core.CodeUnknown, "The plugin %s ended the call without a result.", name)
	}
	return core.Failf(core.CodeUnknown, "The plugin %s failed: %s", name, cleanLine(status.Convert(err).Message()))
}

func (p *Plugin) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
