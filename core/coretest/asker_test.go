package coretest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
)

// dialog is an asker that displays one question at a time, and its user.
type dialog struct {
	turn    chan struct{} // holds one: the displayed question
	display chan string
	answers chan core.Choice
}

func newDialog(*testing.T) (core.Asker, coretest.User) {
	d := &dialog{turn: make(chan struct{}, 1), display: make(chan string), answers: make(chan core.Choice)}
	return coretest.Asker(d.ask), d
}

func (d *dialog) ask(ctx context.Context, q core.Question) (core.Answer, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return core.Answer{}, ctx.Err()
	}
	select {
	case d.display <- q.Title:
	case <-ctx.Done():
		return core.Answer{}, ctx.Err()
	}
	for {
		select {
		case c := <-d.answers:
			if c == "" || slices.Contains(q.Choices, c) {
				return core.Answer{Choice: c}, nil
			}
		case <-ctx.Done():
			return core.Answer{}, ctx.Err()
		}
	}
}

func (d *dialog) Shown(ctx context.Context) (string, error) {
	select {
	case title := <-d.display:
		return title, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (d *dialog) Answer(c core.Choice) error {
	select {
	case d.answers <- c:
		return nil
	case <-d.idle():
		return errors.New("no question is displayed")
	}
}

// idle is ready when no question is open.
func (d *dialog) idle() <-chan struct{} {
	if len(d.turn) > 0 {
		return nil
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

func TestAskerSuite(t *testing.T) { coretest.TestAsker(t, newDialog) }
