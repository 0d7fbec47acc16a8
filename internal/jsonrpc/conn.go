package jsonrpc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// MaxLine is the size of the longest message that a [Conn] reads, in bytes.
const MaxLine = 64 << 20

// CodeCancelled is the code of a request that was cancelled.
const CodeCancelled = -32800

// methodCancel is the notification that withdraws a request; that of language
// servers is methodCancelHeaders.
const (
	methodCancel        = "$/cancel_request"
	methodCancelHeaders = "$/cancelRequest"
)

// ErrClosed is the error of a call or notification on a connection that has ended.
var ErrClosed = errors.New("the connection is closed")

// Later is the rest of the work on a request. Messages are handled one after the
// other up to it; then it runs beside the following ones.
type Later func() (result any, err error)

// Then is a result with what to do right behind the response.
type Then struct {
	Result any
	Do     func()
}

// Handler handles a request or a notification. It returns the result, or a [Later]
// that does. The context ends with the request or the connection.
type Handler func(ctx context.Context, params json.RawMessage) (any, error)

// On returns a handler that decodes the parameters.
func On[P, R any](f func(context.Context, P) (R, error)) Handler {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		var params P
		if err := json.Unmarshal(raw, &params); err != nil {
			if len(raw) == 0 {
				err = errors.New("there are none")
			}
			return nil, &Error{Code: CodeParams, Message: "invalid params: " + err.Error()}
		}
		return f(ctx, params)
	}
}

// Conn is a connection over lines: one message per line, both ways. Set Handlers,
// Ended and Headers before Serve. All methods are safe for concurrent use.
type Conn struct {
	Handlers map[string]Handler // by method
	// Ended is called when the other side is gone: at the end of the input or of the
	// context of Serve, or when the output is broken. Calls have ended then, handlers
	// may still run. It may be nil.
	Ended func()
	// Headers says that each message has a header with its length instead of a line,
	// as in the Language Server Protocol. What is no message then ends the connection.
	Headers bool

	writing sync.Mutex
	out     io.Writer
	broken  func() // ends Serve

	mu      sync.Mutex
	closed  bool // or about to be: writing failed
	next    int
	waiting map[string]chan Message // calls, by ID
	running map[string]func()       // cancels requests, by ID
}

// NewConn returns a connection that writes to out.
func NewConn(out io.Writer) *Conn {
	return &Conn{out: out, waiting: map[string]chan Message{}, running: map[string]func(){}}
}

// Serve handles messages until the end of in, of ctx or of out, and waits for the
// handlers of requests. At the end of in they can finish, after Ended; otherwise their
// contexts end. The cause is [ErrWithdrawn] only if the other side cancelled the request.
// When ctx ends it does not wait for in.
func (c *Conn) Serve(ctx context.Context, in io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	c.mu.Lock()
	if c.broken = stop; c.closed { // a message could not be written
		stop()
	}
	c.mu.Unlock()
	type line struct {
		text []byte
		long bool
		err  error
	}
	lines := make(chan line)
	go func() { // ends with in
		r := bufio.NewReaderSize(in, 64<<10)
		read := readLine
		if c.Headers {
			read = readFramed
		}
		for {
			text, long, err := read(r)
			select {
			case lines <- line{text, long, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	var later sync.WaitGroup
	defer later.Wait()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			c.end()
			return nil
		case l := <-lines:
			switch text := bytes.TrimSpace(l.text); {
			case c.Headers && len(text) > 0 && !json.Valid(text):
				c.end()
				return fmt.Errorf("expected a message of JSON-RPC, not %.100q", text)
			case l.long:
				c.reply(nil, nil, &Error{Code: CodeRequest, Message: fmt.Sprintf("the message is longer than %d MiB", MaxLine>>20)})
			case len(text) > 0:
				c.handle(ctx, text, &later)
			}
			if l.err == nil {
				continue
			}
			c.end()
			later.Wait()
			if !errors.Is(l.err, io.EOF) {
				return l.err
			}
			return nil
		}
	}
}

// readLine reads a line; of one that is too long it returns nothing.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > MaxLine {
			line, long = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if long {
				line = nil
			}
			return line, long, err
		}
	}
}

// end ends the calls that wait, as the other side is gone.
func (c *Conn) end() {
	c.mu.Lock()
	c.closed = true
	for id, reply := range c.waiting {
		delete(c.waiting, id)
		close(reply)
	}
	c.mu.Unlock()
	if c.Ended != nil {
		c.Ended()
	}
}

// Gone reports whether the other side is known to be gone: it answers nothing any more.
func (c *Conn) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// ErrWithdrawn is the cause of the end of a request's context if the other side
// cancelled the request.
var ErrWithdrawn = errors.New("the request was cancelled")

// handle handles one message.
func (c *Conn) handle(ctx context.Context, text []byte, later *sync.WaitGroup) {
	m, err := Parse(text)
	switch {
	case err != nil && !json.Valid(text):
		c.reply(nil, nil, &Error{Code: CodeParse, Message: fmt.Sprintf("the line is not JSON: %v", err)})
	case err != nil || m.Version != "2.0" || m.Method == "" && !m.HasID():
		c.reply(m.ID, nil, &Error{Code: CodeRequest, Message: `the line is not a message of JSON-RPC: expected an object with "jsonrpc": "2.0" and a method or an id`})
	case m.Method == "":
		c.mu.Lock()
		reply := c.waiting[string(m.ID)]
		delete(c.waiting, string(m.ID))
		c.mu.Unlock()
		if reply != nil {
			reply <- m
		}
	case m.Method == methodCancel || m.Method == methodCancelHeaders:
		c.cancel(m.Params)
	default:
		c.request(ctx, m, later)
	}
}

func (c *Conn) cancel(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
		ID        json.RawMessage `json:"id"` // of language servers
	}
	if json.Unmarshal(params, &p) != nil {
		return // a notification has no answer
	}
	c.mu.Lock()
	cancel := c.running[cmp.Or(string(p.RequestID), string(p.ID))]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// request handles a request or a notification.
func (c *Conn) request(ctx context.Context, m Message, later *sync.WaitGroup) {
	ctx, withdraw := context.WithCancelCause(ctx)
	cancel := func() { withdraw(nil) }
	id := string(m.ID)
	if m.HasID() {
		c.mu.Lock()
		_, taken := c.running[id]
		if !taken {
			c.running[id] = func() { withdraw(ErrWithdrawn) }
		}
		c.mu.Unlock()
		if taken {
			cancel()
			c.reply(m.ID, nil, &Error{Code: CodeRequest, Message: fmt.Sprintf("a request with the ID %s is in progress", id)})
			return
		}
	}
	finish := func(result any, err error) {
		ended := ctx.Err() != nil
		cancel()
		if !m.HasID() {
			return
		}
		c.mu.Lock()
		delete(c.running, id)
		c.mu.Unlock()
		then, ok := result.(Then)
		if ok {
			result = then.Result
		}
		c.reply(m.ID, result, asError(err, ended))
		if ok && err == nil {
			then.Do()
		}
	}
	handler := c.Handlers[m.Method]
	if handler == nil {
		finish(nil, &Error{Code: CodeMethod, Message: fmt.Sprintf("unknown method %q", m.Method)})
		return
	}
	result, err := handler(ctx, m.Params)
	if rest, ok := result.(Later); ok && err == nil {
		later.Go(func() { finish(rest()) })
		return
	}
	finish(result, err)
}

// asError returns the error of a response; nil if there is none.
func asError(err error, cancelled bool) *Error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case cancelled && errors.Is(err, context.Canceled):
		return &Error{Code: CodeCancelled, Message: "the request was cancelled"}
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

// reply answers a request; an empty id is that of an unreadable one.
func (c *Conn) reply(id json.RawMessage, result any, failed *Error) {
	m := Message{ID: id, Error: failed}
	if len(id) == 0 {
		m.ID = json.RawMessage("null")
	}
	if failed == nil {
		m.Result = Encode(result)
	}
	_ = c.write(m) // the connection ends
}

// write writes one message. If that fails, the connection ends, and the error is an
// [ErrClosed].
func (c *Conn) write(m Message) error {
	m.Version = "2.0"
	text := Encode(m)
	if c.Headers {
		text = append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(text)), text...)
	} else {
		text = append(text, '\n')
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(text)
	if err != nil {
		c.mu.Lock()
		broken := c.broken
		c.closed = true
		c.mu.Unlock()
		if broken != nil {
			broken()
		}
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return nil
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	return c.write(Message{Method: method, Params: Encode(params)})
}

// Call sends a request and decodes its result. When ctx ends it withdraws the
// request. The error of the other side is an [*Error].
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	reply := make(chan Message, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.next++
	id := strconv.Itoa(c.next)
	c.waiting[id] = reply
	c.mu.Unlock()
	forget := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}
	if err := c.write(Message{ID: json.RawMessage(id), Method: method, Params: Encode(params)}); err != nil {
		forget()
		return err
	}
	select {
	case m, ok := <-reply:
		switch {
		case !ok:
			return ErrClosed
		case m.Error != nil:
			return m.Error
		case len(m.Result) == 0:
			return &Error{Code: CodeRequest, Message: fmt.Sprintf("the response to %s has neither result nor error", method)}
		}
		return json.Unmarshal(m.Result, result)
	case <-ctx.Done():
		forget()
		if c.Headers {
			_ = c.Notify(methodCancelHeaders, map[string]any{"id": json.RawMessage(id)})
		} else {
			_ = c.Notify(methodCancel, map[string]any{"requestId": json.RawMessage(id)})
		}
		return ctx.Err()
	}
}
