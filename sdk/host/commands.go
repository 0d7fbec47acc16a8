package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// answer answers an open question. That of a parked session continues it.
func (s *Session) answer(ctx context.Context, c Command) (string, error) {
	pending := s.session.Pending()
	at := slices.IndexFunc(pending, func(q event.Question) bool { return q.QID == c.Question })
	if at < 0 {
		return "", fail(CodeUnknown, "no question %q is open", c.Question)
	}
	q := pending[at]
	if len(q.Choices) > 0 && !slices.Contains(q.Choices, string(c.Choice)) {
		return "", fail(CodeUnknown, "question %s has no choice %q: use one of %s", c.Question, c.Choice, strings.Join(q.Choices, ", "))
	}
	if c.Offer < 0 || c.Offer > 0 && c.Offer >= len(q.Offers) {
		return "", fail(CodeUnknown, "question %s has %d offers, and none with index %d", c.Question, len(q.Offers), c.Offer)
	}
	a := core.Answer{Choice: c.Choice, Offer: c.Offer, Reason: c.Reason, Args: c.Args}
	switch {
	case len(c.Args) == 0:
	case q.Kind != string(core.QuestionPermission) || c.Choice != core.ChoiceOnce:
		return "", fail(CodeInvalid, "args: only with choice %s, to a permission request", core.ChoiceOnce)
	case !json.Valid(c.Args) || c.Args[0] != '{':
		return "", fail(CodeInvalid, "args: send the arguments of the call as an object")
	}
	if c.Values != nil {
		var err error
		if a.Values, err = json.Marshal(c.Values); err != nil {
			return "", fail(CodeInvalid, "values: %v", err)
		}
	}
	if s.session.State() == core.StateParked {
		if err := s.session.Answer(ctx, c.Question, a); err != nil {
			return "", errorOf(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.start(core.Input{Run: c.Run})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errorOf(core.ErrClosed)
	}
	if s.answered[c.Question] {
		return "", fail(CodeUnknown, "question %q has an answer already", c.Question)
	}
	s.answered[c.Question] = true
	if reply := s.asked[c.Question]; reply != nil {
		reply <- a
	} else {
		s.answers[c.Question] = a
	}
	return "", nil
}

// cancel ends the current run and drops the queued inputs.
func (s *Session) cancel(c Command) error {
	end := s.session.Interrupt
	switch c.Reach {
	case "", "tools":
	case "model":
		end = s.session.Cancel
	default:
		return fail(CodeInvalid, "reach is %q: use model or tools", c.Reach)
	}
	s.drop()
	s.mu.Lock()
	r := s.current
	s.mu.Unlock()
	if r != nil {
		r.stop()
		end(cmp.Or(c.Reason, byUser))
	}
	return nil
}

// restore applies the settings that were changed in earlier openings. One that cannot
// be applied any more is reported.
func (s *Session) restore(ctx context.Context) {
	for i, setting := range s.opened.Settings {
		value, ok := s.session.Settings()[setting.ID]
		if !ok || setting.Given || value == setting.Value {
			continue
		}
		var err error
		if slices.Contains(setting.Lapse, value) {
			err = errors.New("it must be chosen again")
		} else if len(setting.Values) > 0 && !slices.Contains(setting.Values, value) {
			err = fmt.Errorf("use one of %s", strings.Join(setting.Values, ", "))
		} else {
			err = setting.Set(value)
		}
		if err != nil {
			s.session.Warn(ctx, "SETTING", fmt.Sprintf("%s cannot be %q as before, and is %q: %v", setting.ID, value, setting.Value, err))
			continue
		}
		s.opened.Settings[i].Value = value
	}
}

func (s *Session) set(ctx context.Context, c Command) error {
	s.mu.Lock()
	at := slices.IndexFunc(s.opened.Settings, func(o Setting) bool { return o.ID == c.Setting })
	if at < 0 {
		s.mu.Unlock()
		return fail(CodeUnknown, "there is no setting %q", c.Setting)
	}
	setting := s.opened.Settings[at]
	s.mu.Unlock()
	if len(setting.Values) > 0 && !slices.Contains(setting.Values, c.Value) {
		return fail(CodeUnknown, "%s cannot be %q: use one of %s", c.Setting, c.Value, strings.Join(setting.Values, ", "))
	}
	if err := setting.Set(c.Value); err != nil {
		return fail(CodeFailed, "%s: %v", c.Setting, err)
	}
	s.mu.Lock()
	s.opened.Settings[at].Value = c.Value
	s.mu.Unlock()
	s.session.Note(ctx, event.SettingChanged{Setting: c.Setting, Value: c.Value})
	return nil
}

// Close ends the session, with what is being processed.
func (s *Session) Close() error {
	return s.end(func() error {
		s.mu.Lock()
		current := s.current
		s.mu.Unlock()
		if current != nil {
			current.stop()
		}
		s.drop()
		s.unobserve()
		return s.session.Close()
	})
}

// Detach lets go of the session without ending it, so that it can be resumed, here or by
// another process: see [agent.Session.Detach]. The result of what was being processed is
// parked if a question is open, and else aborted, as that of queued inputs, which stay
// queued in the resumed session.
func (s *Session) Detach(ctx context.Context) error {
	return s.end(func() error {
		s.unobserve()
		s.mu.Lock()
		s.parked = s.session.Pending()
		s.mu.Unlock()
		s.detached.Store(true)
		err := s.session.Detach(ctx)
		s.mu.Lock()
		if s.current != nil {
			s.current.stop()
		}
		s.mu.Unlock()
		s.drop()
		return err
	})
}

// end closes the session once, and what belongs to it.
func (s *Session) end(release func() error) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return nil
	}
	s.closed = true
	s.host.closing.Add(1) // before another caller finds it closed: Host.Close waits for the end
	s.mu.Unlock()
	defer s.host.closing.Done()
	s.host.forget(s.ID())
	err := release()
	s.wg.Wait()
	if s.opened.Close != nil {
		if cerr := s.opened.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// Leave ends the session when all inputs are processed, because nobody drives it any
// more. If one asks a question before, the session is detached, and the question stays
// open. It is called again by the last driver if alone says that there are others by then.
func (s *Session) Leave(ctx context.Context, alone func() bool) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go func() {
		s.wg.Wait()
		done()
	}()
	asks := false
	for e, err := range s.session.Events(ctx, s.Past()) {
		q, asked := e.Body.(event.Question)
		if asks = err == nil && asked && slices.ContainsFunc(s.session.Pending(), func(open event.Question) bool { return open.QID == q.QID }); asks || err != nil {
			break
		}
	}
	switch {
	case !alone():
	case asks:
		_ = s.detach()
	default:
		_ = s.Close()
	}
}

// detachWait is how long a driver's detach waits for running calls.
const detachWait = time.Minute

func (s *Session) detach() error {
	ctx, done := context.WithTimeout(context.Background(), detachWait)
	defer done()
	return s.Detach(ctx)
}
