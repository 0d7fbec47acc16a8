//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/sdk"
)

// authorExtensions are what an author can do besides tools.
func authorExtensions() []sdk.Extension {
	return []sdk.Extension{
		sdk.Hook(sdk.PreToolUse, "guard", func(ctx *sdk.Context, e *sdk.HookEvent) (sdk.HookReply, error) {
			var in struct{ Command string }
			if err := json.Unmarshal(e.Args, &in); err != nil {
				return sdk.HookReply{}, err
			}
			switch in.Command {
			case "fail":
				return sdk.HookReply{}, sdk.Errorf(sdk.IO, "the disk is full")
			case "change":
				return sdk.HookReply{Args: map[string]string{"command": "true"}}, nil
			}
			return sdk.HookReply{Verdict: sdk.Deny, Reason: "no " + in.Command}, nil
		}, sdk.Matches("Bash")),
		sdk.Tool("settings", "Show the settings.", func(ctx *sdk.Context, _ struct{}) (map[string]any, error) {
			values := map[string]any{}
			err := ctx.Settings(&values)
			return values, err
		}),
		sdk.Tool("choose", "Ask the user.", func(ctx *sdk.Context, _ struct{}) (string, error) {
			return ctx.Choose("Which\x1b?", "", "left", "right")
		}),
		sdk.Tool("consult", "Ask the model.", func(ctx *sdk.Context, in struct {
			Times int `json:"times"`
		},
		) (text string, err error) {
			for range in.Times {
				c, err := ctx.AskModel(sdk.Prompt{System: "Be brief.", MaxTokens: 5000, Messages: []sdk.Message{{Text: "hi"}}})
				if err != nil {
					return text, err
				}
				text += c.Text
			}
			return text, nil
		}, sdk.AsksModel()),
		sdk.Tool("keep", "Keep a file.", func(ctx *sdk.Context, _ struct{}) (string, error) {
			return ctx.DataDir(), os.WriteFile(filepath.Join(ctx.DataDir(), "kept"), nil, 0o600)
		}),
	}
}

func authorSpec(s map[string]any) {
	s["manifest"] = map[string]any{"hooks": []string{"PreToolUse"}, "model": map[string]any{"maxTokens": 100, "requests": 2}}
	s["settings"] = json.RawMessage(`{"type": "object", "required": ["team"], "properties": {
		"team": {"type": "string", "enum": ["core", "web"]}, "limit": {"type": "integer", "default": 1000000, "minimum": 1},
		"token": {"type": "string", "format": "password"}}}`)
}

func set(t *testing.T, home string, change func(*plugins.Choices)) {
	t.Helper()
	if err := plugins.SetChoices(t.Context(), home, "good", change); err != nil {
		t.Fatal(err)
	}
}

// TestSettings: a plugin has the user's settings with their types, and those of a
// running process change at once.
func TestSettings(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:author", authorSpec)
	o := pl.options()
	o.Secret = func(plugin, key string) string { return "hidden-" + plugin + "-" + key }
	h := open(t, o)
	p := only(t, h)
	res, err := call(t, t.Context(), p, "settings", struct{}{}, "")
	if err != nil || res.Code != core.CodeConfig || !strings.Contains(res.text, "the plugin good needs the setting team: run 'agent plugins config good'") {
		t.Errorf("without a required setting: %v %s %q", err, res.Code, res.text)
	}
	set(t, pl.home, func(c *plugins.Choices) { c.Values = map[string]string{"team": "core"} })
	if got := string(must(t, p, "settings", struct{}{}).Structured); got != `{"limit":1000000,"team":"core"}` {
		t.Errorf("settings: %s", got)
	}
	set(t, pl.home, func(c *plugins.Choices) { c.Secrets, c.Values["limit"] = []string{"token"}, "5" })
	if got := string(must(t, p, "settings", struct{}{}).Structured); got != `{"limit":5,"team":"core","token":"hidden-good-token"}` {
		t.Errorf("changed settings: %s", got)
	}
	if again := open(t, o); strings.Join(again.Secrets(), " ") != "hidden-good-token" {
		t.Errorf("secrets to redact: %q", again.Secrets())
	}
	set(t, pl.home, func(c *plugins.Choices) { c.Values["team"] = "sales" })
	if res, _ := call(t, t.Context(), p, "settings", struct{}{}, ""); !strings.Contains(res.text, `"sales" is not one of core, web`) {
		t.Errorf("an invalid setting: %q", res.text)
	}
}

func TestDataDir(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:author", func(s map[string]any) { authorSpec(s); delete(s, "settings") })
	dir := must(t, only(t, open(t, pl.options())), "keep", struct{}{}).text
	if _, err := os.Stat(filepath.Join(plugins.DataDir(pl.home, "good"), "kept")); err != nil || !strings.HasSuffix(dir, "plugin-data/good") {
		t.Errorf("%q: %v", dir, err)
	}
}

func TestHooks(t *testing.T) {
	pl := newPlace(t)
	dir := pl.link(t, "good", "good:author", func(s map[string]any) { authorSpec(s); delete(s, "settings") })
	if err := os.Remove(filepath.Join(pl.home, "plugin-links.json")); err != nil {
		t.Fatal(err)
	}
	h := open(t, pl.options())
	p, err := h.Store().Look(t.Context(), dir)
	if err == nil {
		err = h.Store().Link(t.Context(), p) // with what was approved
	}
	if err != nil {
		t.Fatal(err)
	}
	h = open(t, pl.options())
	if points := h.HookPoints(); strings.Join(points, " ") != "PreToolUse" {
		t.Fatalf("points: %v", points)
	}
	list := h.Hooks(t.Context(), "PreToolUse")
	if len(list) != 1 || list[0].Name != "guard" || list[0].Matcher != "Bash" {
		t.Fatalf("hooks: %+v", list)
	}
	for command, want := range map[string]string{
		"rm":     `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no rm"}}`,
		"change": `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"true"}}}`,
	} {
		out, err := list[0].Run(t.Context(), core.SessionInfo{}, json.RawMessage(`{"tool_input": {"command": "`+command+`"}}`))
		if err != nil || string(out) != want {
			t.Errorf("%s: %v\n%s, want\n%s", command, err, out, want)
		}
	}
	if _, err := list[0].Run(t.Context(), core.SessionInfo{}, json.RawMessage(`{"tool_input": {"command": "fail"}}`)); err == nil || err.Error() != "the disk is full" {
		t.Errorf("a hook that fails: %v", err)
	}

	// Its program is gone: a guard that cannot run is not one less.
	if err := os.Remove(filepath.Join(dir, "plugin.exe")); err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]*plugins.Host{"running": h, "new": open(t, pl.options())} {
		list := host.Hooks(t.Context(), "PreToolUse")
		if len(list) != 1 {
			t.Fatalf("%s: %+v", name, list)
		}
		if _, err := list[0].Run(t.Context(), core.SessionInfo{}, json.RawMessage(`{}`)); err == nil || !strings.Contains(err.Error(), "is missing: build it") {
			t.Errorf("%s: a hook of a broken plugin: %v", name, err)
		}
	}
}

// TestUnlistedHook: a plugin has no hooks but those that its manifest lists.
func TestUnlistedHook(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:author", func(s map[string]any) { s["manifest"] = map[string]any{"model": map[string]any{"maxTokens": 1}} })
	_, err := only(t, open(t, pl.options())).Tools(t.Context())
	if err == nil || !strings.Contains(err.Error(), `hook "guard" runs at "PreToolUse", which the manifest in plugin.json does not list in "hooks"`) {
		t.Errorf("an unlisted hook: %v", err)
	}
}

// TestForm: questions with a form reach the user with the plugin's name, and answers
// are checked against it.
func TestForm(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:author", func(s map[string]any) { authorSpec(s); delete(s, "settings") })
	tools, err := only(t, open(t, pl.options())).Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(answer func(core.Question) (core.Answer, error)) core.Result {
		for _, tool := range tools {
			if tool.Definition().Name == "choose" {
				c := &core.Call{Args: json.RawMessage(`{}`), Output: io.Discard, Progress: func(core.Progress) {}}
				if answer != nil {
					c.Ask = func(_ context.Context, q core.Question) (core.Answer, error) { return answer(q) }
				}
				res, err := tool.Run(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
		}
		t.Fatal("no tool choose")
		return core.Result{}
	}
	var asked core.Question
	for values, want := range map[string]string{`{"answer": "right", "more": 1}`: "right", `{"answer": "up"}`: "no answer: the answer does not match the form", "": "no answer: the user declined"} {
		res := ask(func(q core.Question) (core.Answer, error) {
			asked = q
			return core.Answer{Choice: core.ChoiceYes, Values: json.RawMessage(values)}, nil
		})
		if got := model.Parts(res.Content).Text(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", values, got, want)
		}
	}
	if asked.Kind != core.QuestionForm || asked.Title != "The plugin good asks: Which?" {
		t.Errorf("the question: %+v", asked)
	}
	if res := ask(nil); res.Code != core.CodePermission || !strings.Contains(model.Parts(res.Content).Text(), "non-interactive") {
		t.Errorf("without a user: %+v", res)
	}
}

// TestSample: a plugin asks the model within its manifest, and its calls say so to the
// policy.
func TestSample(t *testing.T) {
	pl := newPlace(t)
	pl.link(t, "good", "good:author", func(s map[string]any) { authorSpec(s); delete(s, "settings") })
	o := pl.options()
	var got *model.Request
	o.Sample = func(_ context.Context, _ core.SessionInfo, by string, req *model.Request) (*model.Response, error) {
		got = req
		return &model.Response{Parts: model.TextParts(by + ";")}, nil
	}
	p := only(t, open(t, o))
	times := func(n int) map[string]int { return map[string]int{"times": n} }
	if res := must(t, p, "consult", times(2)); res.text != "plugin good;plugin good;" || got.MaxTokens != 100 || got.System != "Be brief." {
		t.Errorf("%q, %+v", res.text, got)
	}
	if res, _ := call(t, t.Context(), p, "consult", times(3), ""); res.Code != core.CodePermission || !strings.Contains(res.text, "a call may ask the model 2 times at most") {
		t.Errorf("over the limit: %+v", res)
	}
	tools, _ := p.Tools(t.Context())
	for _, tool := range tools {
		if tool.Definition().Name != "consult" {
			continue
		}
		list, err := tool.Access(t.Context(), &core.Call{Args: json.RawMessage(`{}`)})
		if err != nil || len(list) != 2 || list[1].Scope != core.ScopePlugin || list[1].Resource != "good/model" {
			t.Errorf("access: %+v %v", list, err)
		}
	}
}
