package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

const (
	requestTime = time.Minute
	maxAnswer   = 64 << 20 // bytes of an answer, and of an event
)

// Options configure a [Client]. URL and Token are required.
type Options struct {
	URL   string // of the service, such as http://127.0.0.1:7433
	Token string
	// HTTP sends the requests; nil is a client of this package's.
	HTTP *http.Client
	// Patience is how long a lost connection of [Client.Events] is tried again; 0 = 1 minute.
	Patience time.Duration
}

// Client is a client of a service. It is safe for concurrent use.
type Client struct {
	base     string
	token    string
	http     *http.Client
	patience time.Duration
}

// New returns a client. It sends nothing. A token is sent in the clear only to this
// machine: the URL of another one must begin with https.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the address of the service is %q: use a URL such as http://127.0.0.1:7433", o.URL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the address of the service, %s, has more than a host, a port and a path: leave that out", u.Redacted())
	case u.Scheme == "http" && !Local(o.URL):
		return nil, fmt.Errorf("%s would send the token in the clear: use https, or a tunnel to a port of this machine", o.URL)
	case o.Token == "":
		return nil, errors.New("client.New: Token is required")
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	return &Client{strings.TrimSuffix(o.URL, "/"), o.Token, o.HTTP, cmp.Or(o.Patience, time.Minute)}, nil
}

// Local reports whether a URL is of this machine.
func Local(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is a refusal of the service. It is an [fs.ErrNotExist] for a session that does
// not exist, and an [fs.ErrExist] for one that does already.
type Error struct {
	Status  int    // of HTTP
	Code    string // of the API, such as not_found
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Is reports whether the error is one of package fs.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && e.Code == "not_found" || target == fs.ErrExist && e.Code == "exists"
}

// NewSession is a session to create. The zero value is one without an input.
type NewSession struct {
	ID      string            `json:"id,omitempty"` // empty = a new one
	Title   string            `json:"title,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Spec    json.RawMessage   `json:"spec,omitempty"`    // what the service takes to open the session
	Content []host.Part       `json:"content,omitempty"` // of the first input, whose command has the session's ID
	// Workspace is what the session works in; the zero value is nothing.
	Workspace workspace.Spec `json:"workspace,omitzero"`
}

// Text returns an input that is a text.
func Text(text string) []host.Part { return []host.Part{{Type: "text", Text: text}} }

// Create creates a session, and gives it its first input, if there is one.
func (c *Client) Create(ctx context.Context, n NewSession) (s service.Session, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/sessions", n, &s)
	return s, err
}

// Get returns a session.
func (c *Client) Get(ctx context.Context, id string) (s service.Session, err error) {
	err = c.do(ctx, http.MethodGet, path(id), nil, &s)
	return s, err
}

// List returns a page of the sessions with lower IDs than before, if that is set, the
// highest first, and the before of the next page; it is empty on the last one. The limit
// is 1 to 200, or 0 for the service's.
func (c *Client) List(ctx context.Context, before string, limit int) (list []service.Session, next string, err error) {
	query := url.Values{}
	if before != "" {
		query.Set("before", before)
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var page struct {
		Sessions []service.Session `json:"sessions"`
		Before   string            `json:"before"`
	}
	err = c.do(ctx, http.MethodGet, "/v1/sessions?"+query.Encode(), nil, &page)
	return page.Sessions, page.Before, err
}

// Delete deletes a session with its log and outputs.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, path(id), nil, nil)
}

// Send gives a session a command: input, continue, compact, cancel or answer. It returns
// the command's ID, which is new if it has none. The event result that answers it has
// this ID as its run.
func (c *Client) Send(ctx context.Context, id string, command service.Command) (string, error) {
	command.ID = cmp.Or(command.ID, uuid.NewString())
	to := "/commands"
	if command.Type == "answer" {
		to = "/answers"
	}
	return command.ID, c.do(ctx, http.MethodPost, path(id)+to, command, nil)
}

// Input gives a session an input that is a text.
func (c *Client) Input(ctx context.Context, id, text string) (string, error) {
	return c.Send(ctx, id, service.Command{Command: host.Command{Type: "input", Content: Text(text)}})
}

// Cancel ends what a session is doing, and drops the inputs before the cancel.
func (c *Client) Cancel(ctx context.Context, id, reason string) error {
	_, err := c.Send(ctx, id, service.Command{Command: host.Command{Type: "cancel", Reason: reason}})
	return err
}

func path(id string) string { return "/v1/sessions/" + url.PathEscape(id) }

// do sends a request, and reads the answer into the value.
func (c *Client) do(ctx context.Context, method, to string, body, value any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := c.request(ctx, method, to, data)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer res.Body.Close()
	data, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode >= 300 {
		return failure(res, data)
	}
	if err == nil && value != nil {
		err = json.Unmarshal(data, value)
	}
	if err != nil {
		return fmt.Errorf("the answer of the service to %s %s: %w", method, to, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, to string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// unreachable is the error of a request without an answer.
func unreachable(err error) error {
	var where *url.Error
	if errors.As(err, &where) {
		return fmt.Errorf("the service at %s cannot be reached: %w", hostOf(where.URL), where.Err)
	}
	return err
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Host
	}
	return address
}

// failure returns the error of an answer.
func failure(res *http.Response, answer []byte) error {
	var body struct {
		Error struct{ Code, Message string }
	}
	if json.Unmarshal(answer, &body) != nil || body.Error.Message == "" {
		body.Error.Message = fmt.Sprintf("the service at %s answers %s: is it one of agent serve?", res.Request.URL.Host, res.Status)
	}
	return &Error{res.StatusCode, body.Error.Code, body.Error.Message}
}
