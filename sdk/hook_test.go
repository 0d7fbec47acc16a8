package sdk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

func says(r sdk.HookReply) func(*sdk.Context, *sdk.HookEvent) (sdk.HookReply, error) {
	return func(*sdk.Context, *sdk.HookEvent) (sdk.HookReply, error) { return r, nil }
}

func TestHookReplies(t *testing.T) {
	for name, c := range map[string]struct {
		at    sdk.HookPoint
		reply sdk.HookReply
		want  string
	}{
		"nothing":            {sdk.Stop, sdk.HookReply{}, `{"hookSpecificOutput":{"hookEventName":"Stop"}}`},
		"deny":               {sdk.PreToolUse, sdk.HookReply{Verdict: sdk.Deny, Reason: "no"}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		"permission request": {sdk.PermissionRequest, sdk.HookReply{Verdict: sdk.Allow, Args: 1}, `{"hookSpecificOutput":{"decision":{"behavior":"allow","updatedInput":1},"hookEventName":"PermissionRequest"}}`},
		"continue":           {sdk.Stop, sdk.HookReply{Verdict: sdk.Deny, Reason: "test first"}, `{"decision":"block","hookSpecificOutput":{"hookEventName":"Stop"},"reason":"test first"}`},
		"context":            {sdk.SessionStart, sdk.HookReply{Context: "c", Message: "m"}, `{"hookSpecificOutput":{"additionalContext":"c","hookEventName":"SessionStart"},"systemMessage":"m"}`},
		"result":             {sdk.PostToolUse, sdk.HookReply{Result: "short"}, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"short"}}`},
		"stop":               {sdk.PostToolUse, sdk.HookReply{Stop: true, Reason: "enough"}, `{"continue":false,"hookSpecificOutput":{"hookEventName":"PostToolUse"},"stopReason":"enough"}`},
	} {
		p := sdktest.Start(t, plugin(sdk.Hook(c.at, "h", says(c.reply))))
		if got := string(p.Hook(t, "h", sdk.HookEvent{Point: c.at}).Structured); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestHookEvent(t *testing.T) {
	p := sdktest.Start(t, plugin(sdk.Hook(sdk.PreToolUse, "h", func(_ *sdk.Context, e *sdk.HookEvent) (sdk.HookReply, error) {
		return sdk.HookReply{Context: e.Tool + string(e.Args)}, nil
	}, sdk.Matches("Bash"), sdk.If("Bash(rm *)"), sdk.Once(), sdk.AllowOnError())))
	if got := string(p.Hook(t, "h", sdk.HookEvent{Point: sdk.PreToolUse, Tool: "Bash", Args: json.RawMessage(`{"command":"ls"}`)}).Structured); !strings.Contains(got, `Bash{\"command\":\"ls\"}`) {
		t.Errorf("the event: %s", got)
	}
	if h := p.Describe(t).Hooks[0]; h.Matcher != "Bash" || h.Condition != "Bash(rm *)" || !h.Once || !h.OnErrorAllow {
		t.Errorf("description: %v", h)
	}
}

// TestOlderHost: a guard is not lost in silence on a host that has no hooks, and
// settings are refused instead of missing.
func TestOlderHost(t *testing.T) {
	s, err := sdk.NewServer(plugin(sdk.Hook(sdk.Stop, "h", says(sdk.HookReply{}))))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Describe(context.Background(), &toolproto.DescribeRequest{HostVersion: "0.9"}); err == nil || !strings.Contains(err.Error(), "has hooks, which this version of agent does not run: update agent") {
		t.Errorf("hooks on an older host: %v", err)
	}
}

func TestSettings(t *testing.T) {
	p := sdktest.Start(t, plugin(sdk.Tool("team", "Say the team.", func(ctx *sdk.Context, _ struct{}) (string, error) {
		var set struct{ Team string }
		err := ctx.Settings(&set)
		return set.Team, err
	})))
	if got := p.Call(t, "team", struct{}{}); got.Text != "" || got.Code != "" {
		t.Errorf("without settings: %+v", got)
	}
	p.Settings = map[string]any{"team": "core"}
	if got := p.Call(t, "team", struct{}{}).Text; got != "core" {
		t.Errorf("team = %q", got)
	}
}
