package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp/protocol"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/sdk/host"
)

// prompt begins to process a prompt, so that a cancel behind it counts. The rest
// waits for its result.
func (s *Server) prompt(ctx context.Context, r protocol.PromptRequest) (any, error) {
	one, err := s.find(r.SessionID)
	if err != nil {
		return nil, err
	}
	input, err := inputOf(r.Prompt)
	if err != nil {
		return nil, err
	}
	run := uuid.NewString()
	switch c, args, ok := one.command(input.Content); {
	case ok && c.Name == compact:
		return one.submit(ctx, run, host.Command{Type: compact, Focus: args})
	case ok:
		return one.runCommand(ctx, run, c, args), nil
	}
	wait, err := one.submit(ctx, run, input)
	var closed *host.Error
	if errors.As(err, &closed) && closed.Code == host.CodeClosed {
		return jsonrpc.Later(func() (any, error) { return one.resubmit(ctx, run, input) }), nil
	}
	return wait, err
}

// resubmit opens a session again which an error has closed, such as that of a wrong
// key, and submits an input.
func (s *session) resubmit(ctx context.Context, run string, input host.Command) (any, error) {
	again, err := s.server.connect(ctx, s.request, false)
	if err != nil {
		return nil, err
	}
	s.server.mu.Lock()
	left := s.server.left
	s.server.mu.Unlock()
	if left {
		return protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
	}
	wait, err := again.submit(ctx, run, input)
	if err != nil {
		return nil, err
	}
	return wait()
}

// submit begins a run and returns the wait for its result.
func (s *session) submit(ctx context.Context, run string, c host.Command) (jsonrpc.Later, error) {
	result := make(chan event.Result, 1)
	s.mu.Lock()
	s.results[run] = result
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.results, run)
	}
	c.Run = run
	if c.Type == "input" {
		c.When = "next" // behind a run that is being cancelled
	}
	if _, err := s.Do(ctx, c); err != nil {
		forget()
		return nil, commandError(err)
	}
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), jsonrpc.ErrWithdrawn) { // else the client is gone, see [session.leave]
			_, _ = s.Do(context.WithoutCancel(ctx), host.Command{Type: "cancel"})
		}
	})
	return func() (any, error) {
		defer stop()
		defer forget()
		select {
		case b := <-result:
			return response(b)
		case <-s.ended:
		}
		select {
		case b := <-result: // the last event
			return response(b)
		default:
			return protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
	}, nil
}

// commandError returns the error of a command of sdk/host as one of the protocol.
func commandError(err error) error {
	var known *host.Error
	if errors.As(err, &known) && (known.Code == host.CodeInvalid || known.Code == host.CodeUnknown) {
		return invalid("%s", known.Message)
	}
	return err
}

// response returns the answer to a prompt.
func response(b event.Result) (any, error) {
	reason := protocol.StopReasonEndTurn
	switch core.StopReason(b.Outcome) {
	case core.StopTurnLimit:
		reason = protocol.StopReasonMaxTurnRequests
	case core.StopTokenLimit, core.StopMaxTokens:
		reason = protocol.StopReasonMaxTokens
	case core.StopRefused:
		reason = protocol.StopReasonRefusal
	case core.StopCancelled, core.StopAborted:
		reason = protocol.StopReasonCancelled
	case core.StopError, core.StopContextLength:
		return nil, resultError(b)
	}
	return protocol.PromptResponse{StopReason: reason}, nil
}

// resultError returns the error of a run that failed.
func resultError(b event.Result) error {
	if b.Error == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the prompt could not be processed"}
	}
	code := jsonrpc.CodeInternal
	if model.ErrorCode(b.Error.Code) == model.CodeAuthentication || model.ErrorCode(b.Error.Code) == model.CodeNotConfigured {
		code = codeSignIn
	}
	data, _ := json.Marshal(map[string]any{"code": b.Error.Code, "retryable": b.Error.Retryable}) // strings and bools
	return &jsonrpc.Error{Code: code, Message: b.Error.Message, Data: data}
}

// cancel ends what is running in a session. It is carried out before the next message.
func (s *Server) cancel(ctx context.Context, r protocol.CancelNotification) (any, error) {
	one, err := s.find(r.SessionID)
	if err != nil {
		return nil, err
	}
	one.withdraw()
	_, err = one.Do(ctx, host.Command{Type: "cancel"})
	return nil, err
}

// inputOf returns a prompt as an input. The texts of resources are context: they are
// not the user's words.
func inputOf(blocks []protocol.ContentBlock) (host.Command, error) {
	in := host.Command{Type: "input"}
	text := func(t string) {
		if t != "" {
			in.Content = append(in.Content, host.Part{Type: "text", Text: t})
		}
	}
	image := func(i int, mediaType, data string) error {
		bytes, err := base64.StdEncoding.DecodeString(data)
		if err != nil || len(bytes) == 0 || mediaType == "" {
			return invalid("prompt[%d]: an image needs data in base64 and a mimeType", i)
		}
		in.Content = append(in.Content, host.Part{Type: "image", MediaType: mediaType, Data: bytes})
		return nil
	}
	for i, b := range blocks {
		var err error
		switch v := b.Value.(type) {
		case *protocol.TextContent:
			text(v.Text)
		case *protocol.ImageContent:
			err = image(i, v.MimeType, v.Data)
		case *protocol.ResourceLink:
			text(link(v))
		case *protocol.EmbeddedResource:
			switch r := v.Resource; {
			case r.Blob == "":
				in.Context = append(in.Context, host.Context{Source: label(r.URI), Text: r.Text})
			case strings.HasPrefix(r.MimeType, "image/"):
				err = image(i, r.MimeType, r.Blob)
			default:
				text(fmt.Sprintf("[the resource %s is binary (%s) and was left out]", r.URI, label(r.MimeType)))
			}
		default:
			err = invalid("prompt[%d]: content of type %q is not supported: use text, image, resource_link or resource", i, b.Tag)
		}
		if err != nil {
			return in, err
		}
	}
	if len(in.Content)+len(in.Context) == 0 {
		return in, invalid("the prompt is empty")
	}
	return in, nil
}

// link returns a link to a resource as the model reads it: a file by its path, with the
// lines that are meant.
func link(l *protocol.ResourceLink) string {
	if u, err := url.Parse(l.URI); err == nil && u.Scheme == "file" {
		path := u.Path
		if len(path) > 2 && path[2] == ':' { // /C:/… on Windows
			path = path[1:]
		}
		if u.Fragment != "" { // lines
			path += "#" + u.Fragment
		}
		return "@" + path
	}
	return fmt.Sprintf("[%s](%s)", l.Name, l.URI)
}

// command returns the slash command that a prompt begins with, and its arguments.
func (s *session) command(content []host.Part) (*Command, string, bool) {
	if len(content) == 0 || !strings.HasPrefix(content[0].Text, "/") {
		return nil, "", false
	}
	rest := content[0].Text[1:]
	name, args := rest, ""
	if at := strings.IndexAny(rest, " \n"); at >= 0 {
		name, args = rest[:at], strings.TrimSpace(rest[at+1:])
	}
	for _, p := range content[1:] {
		args = strings.TrimSpace(args + "\n\n" + p.Text)
	}
	at := slices.IndexFunc(s.opened.Commands, func(c Command) bool { return c.Name == name && (c.Run != nil || c.Name == compact) })
	if at < 0 {
		return nil, "", false
	}
	return &s.opened.Commands[at], args, true
}

// compact is the command that the session itself carries out.
const compact = "compact"

// runCommand runs a slash command.
func (s *session) runCommand(ctx context.Context, run string, c *Command, args string) jsonrpc.Later {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.expanding[run] = cancel
	s.mu.Unlock()
	return func() (any, error) {
		defer func() {
			cancel()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.expanding, run)
		}()
		text, prompt, err := c.Run(ctx, args)
		if ctx.Err() != nil {
			return protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
		if err != nil {
			return nil, err
		}
		if text != "" {
			s.update("agent_message_chunk", chunk(text, ""))
		}
		if prompt == "" {
			return protocol.PromptResponse{StopReason: protocol.StopReasonEndTurn}, nil
		}
		wait, err := s.submit(ctx, run, host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: prompt}}})
		if err != nil {
			return nil, err
		}
		return wait()
	}
}
