package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/event"
)

// offeringPolicy asks before every call that no approved rule allows; the rule
// for everything must be confirmed.
type offeringPolicy struct{}

func (offeringPolicy) Decide(_ context.Context, req core.PermissionRequest) core.Decision {
	exact := "read(" + req.Accesses[0].Resource + ")"
	if slices.Contains(req.Rules, exact) || slices.Contains(req.Rules, "read(*)") {
		return core.Decision{Verdict: core.Allow, Rule: exact}
	}
	return core.Decision{Verdict: core.Ask, Why: []string{"gravest", "another"}, Offers: []core.Offer{
		{Rules: []string{exact}}, {Rules: []string{"read(*)"}, Confirm: "reading everything"},
	}}
}

func readTool() core.ToolTable {
	return core.StaticTools(core.NewTool(core.ToolDefinition{Name: "read"},
		func(_ context.Context, _ *core.Call, in note) ([]core.Access, error) {
			return []core.Access{{Scope: core.ScopeMCP, Resource: in.Text}}, nil
		},
		func(context.Context, *core.Call, note) (core.Result, error) { return core.TextResult("ok"), nil }))
}

// TestApprovalsLast: how long an answer lasts, what must be confirmed, and what
// the log says of it.
func TestApprovalsLast(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []core.Answer // then once
		want    string        // titles of the questions for the calls a, a, b
		saved   string
		logged  string // choices and rules
	}{
		{"once", nil, "a a b", "", "once once once"},
		{"session", []core.Answer{{Choice: core.ChoiceSession}}, "a b", "", "session[read(a)] - once"},
		{"always", []core.Answer{{Choice: core.ChoiceAlways}}, "a b", "read(a)", "always[read(a)] - once"},
		{"wider", []core.Answer{{Choice: core.ChoiceAlways, Offer: 1}, {Choice: core.ChoiceYes}}, "a confirm-always", "read(*)", "always[read(*)] - -"},
		{"wider for the session", []core.Answer{{Choice: core.ChoiceSession, Offer: 1}, {Choice: core.ChoiceYes}}, "a confirm-session", "", "session[read(*)] - -"},
		{"not confirmed", []core.Answer{{Choice: core.ChoiceSession, Offer: 1}, {Choice: core.ChoiceNo}}, "a confirm-session a a b", "", "once once once"},
		{"not offered", []core.Answer{{Choice: core.ChoiceYes}}, "a a b", "", "deny once once"},
		{"no such offer", []core.Answer{{Choice: core.ChoiceSession, Offer: -3}}, "a b", "", "session[read(a)] - once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked, saved []string
			answers := tt.answers
			r := newRig(t, func(c *core.Config) {
				c.Tools, c.Policy = readTool(), offeringPolicy{}
				c.SaveRules = func(_ context.Context, rules []string) error {
					saved = append(saved, rules...)
					return nil
				}
				c.Asker = coretest.Asker(func(_ context.Context, q core.Question) (core.Answer, error) {
					switch {
					case q.Title == "Allow reading everything, always?":
						asked = append(asked, "confirm-always")
					case q.Title == "Allow reading everything, for this session?":
						asked = append(asked, "confirm-session")
					case q.Detail != "gravest\nanother":
						t.Errorf("detail %q", q.Detail)
					default:
						asked = append(asked, q.Accesses[0].Resource)
					}
					if len(answers) == 0 {
						return core.Answer{Choice: core.ChoiceOnce}, nil
					}
					a := answers[0]
					answers = answers[1:]
					return a, nil
				})
			}, coretest.CallTools(call("read", `{"text":"a"}`)), coretest.CallTools(call("read", `{"text":"a"}`)), coretest.CallTools(call("read", `{"text":"b"}`)), coretest.Say("Done."))
			r.submit(t, "go")
			if got := strings.Join(asked, " "); got != tt.want {
				t.Errorf("asked %q, want %q", got, tt.want)
			}
			if got := strings.Join(saved, " "); got != tt.saved {
				t.Errorf("saved %q, want %q", got, tt.saved)
			}
			var logged []string
			for _, p := range coretest.Bodies[event.Permission](r.ended(t)) {
				switch {
				case p.Choice == "":
					logged = append(logged, "-")
				case len(p.Rules) > 0:
					logged = append(logged, fmt.Sprintf("%s%s", p.Choice, p.Rules))
				default:
					logged = append(logged, p.Choice)
				}
			}
			if got := strings.Join(logged, " "); got != tt.logged {
				t.Errorf("logged %q, want %q", got, tt.logged)
			}
		})
	}
}

// TestApprovalsAreShared: an approval of one subagent applies to another one at
// once, also to a request that waits.
func TestApprovalsAreShared(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	root := newRig(t, func(c *core.Config) {
		c.Asker = coretest.Asker(func(ctx context.Context, q core.Question) (core.Answer, error) {
			if q.AgentPath[0] == "one" {
				close(first)
				<-second
				return core.Answer{Choice: core.ChoiceSession}, nil
			}
			<-ctx.Done()
			return core.Answer{}, ctx.Err()
		})
	})
	child := func(name string) *rig {
		return newRig(t, func(c *core.Config) {
			c.Tools, c.Policy, c.Asker, c.AgentPath = readTool(), offeringPolicy{}, root.Session, []string{name}
		}, coretest.CallTools(call("read", `{"text":"a"}`)), coretest.Say("Done."))
	}
	one, two := child("one"), child("two")
	done := make(chan error, 2)
	submit := func(r *rig) {
		_, err := r.Submit(t.Context(), core.TextInput("go"))
		done <- err
	}
	go submit(one)
	<-first
	go submit(two)
	for e, err := range two.Events(t.Context(), 0) { // until it asks, behind the other one
		if err != nil {
			t.Fatal(err)
		}
		if _, asks := e.Body.(event.Question); asks {
			break
		}
	}
	close(second)
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	p := coretest.Bodies[event.Permission](two.ended(t))
	if len(p) != 1 || p[0].Decision != "allow" || p[0].Decider != "policy" || p[0].Rule != "read(a)" {
		t.Errorf("the second subagent logged %+v, want that the rule allows it", p)
	}
	a := coretest.Bodies[event.Answer](two.ended(t))
	if len(a) != 1 || !a[0].Withdrawn {
		t.Errorf("its question ended with %+v, want that it is withdrawn", a)
	}
}

// TestInterruptedQuestion: a call whose question an interruption ends says why.
func TestInterruptedQuestion(t *testing.T) {
	var r *rig
	r = newRig(t, func(c *core.Config) {
		c.Tools, c.Policy = readTool(), offeringPolicy{}
		c.Asker = coretest.Asker(func(ctx context.Context, _ core.Question) (core.Answer, error) {
			r.Interrupt("interrupted by Ctrl-C")
			<-ctx.Done()
			return core.Answer{}, ctx.Err()
		})
	}, coretest.CallTools(call("read", `{"text":"a"}`)))
	if out := r.submit(t, "go"); out.Stop != core.StopCancelled {
		t.Errorf("stop %s", out.Stop)
	}
	p := coretest.Bodies[event.Permission](r.ended(t))
	if len(p) != 1 || p[0].Decision != "deny" || p[0].Reason != "nobody answered (cancelled: interrupted by Ctrl-C)" {
		t.Errorf("logged %+v", p)
	}
}

// TestApprovalsSurvive: what was approved for a session holds when it is resumed, unless in
// another directory or in a fork.
func TestApprovalsSurvive(t *testing.T) {
	for _, tt := range []struct {
		name   string
		choice core.Choice
		dir    string
		fork   bool
		asked  int // for a, again
	}{
		{"session", core.ChoiceSession, "/work", false, 1},
		{"once", core.ChoiceOnce, "/work", false, 2},
		{"always", core.ChoiceAlways, "/work", false, 2}, // the settings say
		{"another directory", core.ChoiceSession, "/elsewhere", false, 2},
		{"fork", core.ChoiceSession, "/work", true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			journal := &coretest.MemoryJournal{}
			open := func(id, dir string) {
				r := newRig(t, func(c *core.Config) {
					c.ID, c.Journal, c.Env = id, journal, env.NewMemory(dir, nil)
					c.Tools, c.Policy = readTool(), offeringPolicy{}
					c.SaveRules = func(context.Context, []string) error { return nil }
					c.Asker = coretest.Asker(func(context.Context, core.Question) (core.Answer, error) {
						asked++
						return core.Answer{Choice: tt.choice}, nil
					})
				}, coretest.CallTools(call("read", `{"text":"a"}`)), coretest.Say("ok"))
				r.submit(t, "go")
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			open("s", "/work")
			id := "s"
			if tt.fork {
				id = "copy"
			}
			if open(id, tt.dir); asked != tt.asked {
				t.Errorf("asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}
