package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/seed-009c0928/agent/sdk/service"
)

// ErrNotSent is the error of an [Client.Import] whose end was not sent: the service does
// not have the session.
var ErrNotSent = errors.New("it was not sent completely, and is not there")

// Import moves a session to the service: write adds its logs, outputs and files to the
// archive, in the order of [service.Archive]. The session exists when all of it is there.
// If the error is neither an [ErrNotSent] nor an *[Error], that may be so; Import can be
// repeated.
func (c *Client) Import(ctx context.Context, id string, m service.Moved, write func(a *service.Archive) error) (s service.Session, err error) {
	out, in := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.base+path(id), out)
	if err != nil {
		return s, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/x-tar")
	req.Header.Set("Expect", "100-continue") // a refusal comes before the body
	var ended atomic.Bool
	written := make(chan error, 1)
	go func() {
		a, err := service.NewArchive(in, m)
		if err == nil {
			err = write(a)
		}
		if err == nil {
			ended.Store(true)
			err = a.Close()
		}
		written <- err
		_ = in.CloseWithError(err) // it never fails
	}()
	res, err := c.http.Do(req)
	var answer []byte
	if err == nil { // before the body ends: the service may answer before it has read all
		answer, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		_ = res.Body.Close()
	}
	_ = out.Close()
	failed := <-written
	if err != nil {
		if err = unreachable(err); failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
			err = failed // the cause
		}
		if !ended.Load() {
			err = fmt.Errorf("%w; %w", err, ErrNotSent)
		}
		return s, err
	}
	if res.StatusCode >= 300 {
		return s, failure(res, answer)
	}
	if err := json.Unmarshal(answer, &s); err != nil {
		return s, fmt.Errorf("the answer of the service to PUT %s: %w", path(id), err)
	}
	return s, nil
}
