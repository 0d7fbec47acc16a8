package host_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/host/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener opens sessions below home.
func opener(t *testing.T, home string, p model.Provider, settings []host.Setting, tools ...core.Tool) host.Opener {
	dir := t.TempDir()
	return func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: dir, Home: home, Tools: tools, NoBuiltins: true, Policy: coretest.AllowAll})
		if err != nil {
			return host.Opened{}, err
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: p, Asker: asker, Resume: o.ID})
		return host.Opened{Session: s, Settings: settings, Close: a.Close}, err
	}
}

func TestSuite(t *testing.T) {
	hosttest.Run(t, func(t *testing.T, p model.Provider, tools ...core.Tool) func() hosttest.Driver {
		h := host.New(opener(t, t.TempDir(), p, nil, tools...))
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		s, err := h.Open(t.Context(), host.Open{})
		if err != nil {
			t.Fatal(err)
		}
		return func() hosttest.Driver { return s }
	})
}

func TestOpenAttaches(t *testing.T) {
	h := host.New(opener(t, t.TempDir(), coretest.Model(coretest.Say("One."), coretest.Say("Two.")), nil))
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.Open(t.Context(), host.Open{ID: s.ID()})
	if err != nil || again != s {
		t.Errorf("a second Open: %v, %v", again, err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "close"}); err != nil {
		t.Fatal(err)
	}
	for range s.Events(t.Context(), 0) {
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	resumed, err := h.Open(t.Context(), host.Open{ID: s.ID()})
	if err != nil || resumed == s || resumed.Past() == 0 {
		t.Errorf("after a close the session is not resumed: %v", err)
	}
}

func TestSettings(t *testing.T) {
	set := ""
	settings := []host.Setting{{ID: "mode", Name: "Mode", Value: "a", Values: []string{"a", "b"}, Set: func(v string) error { set = v; return nil }}}
	h := host.New(opener(t, t.TempDir(), coretest.Model(), settings))
	defer h.Close()
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "set", Setting: "mode", Value: "c"}); err == nil || set != "" {
		t.Errorf("an unknown value: %v, set %q", err, set)
	}
	if _, err := s.Do(t.Context(), host.Command{Type: "set", Setting: "mode", Value: "b"}); err != nil || set != "b" || s.Now().Settings[0].Value != "b" {
		t.Errorf("error %v, set %q, now %+v", err, set, s.Now().Settings)
	}
	for e, err := range s.Events(t.Context(), 0) {
		if b, ok := e.Body.(event.SettingChanged); err != nil || ok && b.Value == "b" {
			break
		}
	}
}
