package modeltest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

const wireSchema = `{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{"type":"string","description":"<&>"}},"required":["z"]}`

func wireTools() []model.ToolDef {
	return []model.ToolDef{{Name: "count", Description: "Counts.", Schema: json.RawMessage(wireSchema)}, {Name: "now", Deferred: true}}
}

type wireTest struct {
	name  string
	req   func(*model.Request)
	check func(r *rig, got *Parsed)
}

func (r *rig) checkWire() {
	for _, test := range slices.Concat(r.wireTests(), wireToolTests(), r.wireEfforts()) {
		r.sub(test.name, func(r *rig) {
			req := hello()
			test.req(req)
			test.check(r, r.parsed(req))
		})
	}
	r.sub("provider options", (*rig).checkOptions)
	switch r.api {
	case ChatCompletions, Ollama, Azure:
		r.sub("usage is asked for", func(r *rig) {
			r.parsed(hello())
			if got := r.server.Requests()[0]; !got.Stream || got.StreamOptions == nil || !got.StreamOptions.IncludeUsage {
				r.Errorf("body %s", got.Body)
			}
		})
	}
}

// wireTests are the settings and the texts of a request.
func (r *rig) wireTests() []wireTest {
	zero := 0.0
	other, plain, chosen := r.traits.other, r.traits.plain, r.traits.model
	return []wireTest{
		{"nothing that was not asked for", func(*model.Request) {}, func(r *rig, got *Parsed) {
			if got.Temperature != nil || got.MaxTokens != 0 && !r.traits.needsLimit || got.Effort != "" || got.Tools != nil || got.ToolChoice != "" || got.OutputSchema != nil || got.System != "" {
				r.Errorf("it says %+v", got)
			}
			if got.Model != chosen || len(got.Messages) != 1 || got.Parts(model.RoleUser).Text() != "hello" {
				r.Errorf("it says %+v", got)
			}
		}},
		{"model", func(req *model.Request) { req.Model = other }, func(r *rig, got *Parsed) {
			if got.Model != other {
				r.Errorf("model %q", got.Model)
			}
		}},
		{"a temperature of 0", func(req *model.Request) { req.Model, req.Temperature = plain, &zero }, func(r *rig, got *Parsed) {
			if got.Temperature == nil || *got.Temperature != 0 {
				r.Errorf("temperature %v", got.Temperature)
			}
		}},
		{"no temperature for a model that refuses it", func(req *model.Request) { req.Model = other }, func(r *rig, got *Parsed) {
			if got.Temperature != nil {
				r.Errorf("temperature %v", *got.Temperature)
			}
		}},
		{"limit", func(req *model.Request) { req.MaxTokens = 77 }, func(r *rig, got *Parsed) {
			if got.MaxTokens != 77 {
				r.Errorf("limit %d", got.MaxTokens)
			}
		}},
		{"system prompt", func(req *model.Request) { req.System = "Be <brief> & \"kind\"." }, func(r *rig, got *Parsed) {
			if got.System != "Be <brief> & \"kind\"." || len(got.Messages) != 1 {
				r.Errorf("it says %+v", got)
			}
		}},
		{"schema of the answer", func(req *model.Request) { req.OutputSchema = json.RawMessage(wireSchema) }, func(r *rig, got *Parsed) {
			if string(got.OutputSchema) != wireSchema {
				r.Errorf("schema %s, want %s", got.OutputSchema, wireSchema)
			}
		}},
		{"several texts", func(req *model.Request) {
			req.Messages[0].Parts = model.Parts{model.Text{Text: "one"}, model.Text{Text: "two"}}
		}, func(r *rig, got *Parsed) {
			if text := strings.ReplaceAll(got.Parts(model.RoleUser).Text(), "\n", ""); text != "onetwo" {
				r.Errorf("text %q", text)
			}
		}},
	}
}

// wireToolTests are the tools, and whether the model must use them.
func wireToolTests() []wireTest {
	return []wireTest{
		{"tools", func(req *model.Request) { req.Tools = wireTools() }, func(r *rig, got *Parsed) {
			if len(got.Tools) != 2 || got.Tools[0].Name != "count" || got.Tools[1].Name != "now" || got.Tools[0].Description != "Counts." {
				r.Fatalf("tools %+v", got.Tools)
			}
			if s := got.Tools[0].Schema; string(s) != wireSchema {
				r.Errorf("schema %s, want it unchanged: %s", s, wireSchema)
			}
		}},
		{"tool choice required", func(req *model.Request) { req.Tools, req.ToolChoice = wireTools(), model.ToolChoiceRequired }, func(r *rig, got *Parsed) {
			if got.ToolChoice != model.ToolChoiceRequired {
				r.Errorf("tool choice %q", got.ToolChoice)
			}
		}},
		{"tool choice none", func(req *model.Request) { req.Tools, req.ToolChoice = wireTools(), model.ToolChoiceNone }, func(r *rig, got *Parsed) {
			if got.ToolChoice != model.ToolChoiceNone || len(got.Tools) != 2 {
				r.Errorf("tool choice %q of %d tools", got.ToolChoice, len(got.Tools))
			}
		}},
		{"choice of one tool", func(req *model.Request) { req.Tools, req.ToolChoice = wireTools(), "count" }, func(r *rig, got *Parsed) {
			if got.ToolChoice != "count" {
				r.Errorf("tool choice %q", got.ToolChoice)
			}
		}},
		{"a choice without tools", func(req *model.Request) { req.ToolChoice = model.ToolChoiceRequired }, func(*rig, *Parsed) {}},
	}
}

// wireEfforts are efforts of models with different forms of them. The server
// rejects a form that the model does not support.
func (r *rig) wireEfforts() []wireTest {
	var tests []wireTest
	for _, name := range []string{r.traits.model, r.traits.other} {
		sent := map[model.Effort]string{}
		for _, e := range []model.Effort{model.EffortNone, model.EffortLow, model.EffortMedium, model.EffortHigh, model.EffortXHigh} {
			tests = append(tests, wireTest{"effort " + string(e) + " of " + name, func(req *model.Request) { req.Model, req.Effort = name, e }, func(r *rig, got *Parsed) {
				sent[e] = got.Effort
				if e == model.EffortLow && got.Effort == "" || e == model.EffortHigh && got.Effort == sent[model.EffortLow] {
					r.Errorf("the efforts low and high are sent as %q and %q", sent[model.EffortLow], got.Effort)
				}
			}})
		}
	}
	return tests
}

// checkOptions checks that an option of the provider is sent, and one of another
// is not.
func (r *rig) checkOptions() {
	r.start(Turn{Text: []string{"ok"}})
	req := hello()
	req.ProviderOptions = map[string]json.RawMessage{
		r.provider.Info().Name: json.RawMessage(r.traits.option),
		"elsewhere":            json.RawMessage(`{"hidden":true}`),
	}
	r.must(req)
	var body, want map[string]any
	_ = json.Unmarshal(r.server.Requests()[0].Body, &body) // the server has done it before
	_ = json.Unmarshal([]byte(r.traits.option), &want)     // a constant
	for name, value := range want {
		if !reflect.DeepEqual(body[name], value) {
			r.Errorf("%s is %v, want %v", name, body[name], value)
		}
	}
	if bytes.Contains(r.server.Requests()[0].Body, []byte("hidden")) {
		r.Errorf("another provider's option is sent: %s", r.server.Requests()[0].Body)
	}
}

const (
	oddArgs = `{"path":"a", "n":12345678901234567890}`
	cutArgs = `{"path":"b"`
)

// history is a conversation with text and calls, a failed result, and parts that
// only other providers or versions know.
func history() *model.Request {
	foreignID := "toolu_" + strings.Repeat("x", 60)
	return &model.Request{
		System: "Be brief.",
		Messages: []model.Message{
			{Role: model.RoleUser, Parts: model.TextParts("read both")},
			{Role: model.RoleAssistant, Parts: model.Parts{
				model.Reasoning{Text: "hidden thought", Signature: "c2ln"},
				model.Opaque{Provider: "elsewhere", Raw: json.RawMessage(`{"state":"hidden state"}`)},
				model.Text{Text: "Reading."},
				model.ToolCall{ID: "call_1", Name: "read_file", Args: oddArgs},
				model.ToolCall{ID: foreignID, Name: "read_file", Args: cutArgs},
			}},
			{Role: model.RoleTool, Parts: model.Parts{
				model.ToolResult{CallID: "call_1", Name: "read_file", Content: model.Parts{model.Text{Text: "first"}, model.Unknown{Kind: "chart", Raw: json.RawMessage(`{"type":"chart"}`)}}},
				model.ToolResult{CallID: foreignID, Name: "read_file", Content: model.TextParts("no such file"), IsError: true},
			}},
			{Role: model.RoleAssistant, Parts: model.Parts{model.Reasoning{Text: "cut while thinking"}}},
			{Role: model.RoleUser, Parts: model.TextParts("go on")},
		},
	}
}

func (r *rig) checkResults() {
	r.sub("of two calls", func(r *rig) {
		got := r.parsed(history()) // the server refuses a result without its call and a call without its result
		r.checkHistory(got)
		if bytes.Contains(r.server.Requests()[0].Body, []byte("hidden")) {
			r.Errorf("another provider's state is sent: %s", r.server.Requests()[0].Body)
		}
	})
	r.sub("out of order", func(r *rig) {
		req := history()
		slices.Reverse(req.Messages[2].Parts)
		r.checkHistory(r.parsed(req))
	})
	r.sub("in messages of their own", func(r *rig) {
		req := history()
		results := req.Messages[2]
		req.Messages = slices.Insert(slices.Clone(req.Messages), 3, model.Message{Role: model.RoleTool, Parts: results.Parts[1:]})
		req.Messages[2].Parts = results.Parts[:1]
		r.checkHistory(r.parsed(req))
	})
	r.sub("with nothing in it", func(r *rig) {
		req := history()
		req.Messages[2].Parts[0] = model.ToolResult{CallID: "call_1", Name: "read_file"}
		if got := r.parsed(req).Results(); len(got) != 2 {
			r.Errorf("results %+v", got)
		}
	})
	r.sub("as the last message", func(r *rig) {
		req := history()
		req.Messages = req.Messages[:3]
		got := r.parsed(req)
		if last := got.Messages[len(got.Messages)-1]; last.Role != model.RoleTool {
			r.Errorf("the last message is %+v", last)
		}
	})
}

// checkHistory checks the parsed history, with any order of the results.
func (r *rig) checkHistory(got *Parsed) {
	var roles []model.Role
	for _, m := range got.Messages {
		roles = append(roles, m.Role)
	}
	if want := []model.Role{model.RoleUser, model.RoleAssistant, model.RoleTool, model.RoleUser}; !reflect.DeepEqual(roles, want) {
		r.Fatalf("roles %q, want %q", roles, want)
	}
	calls, results := got.Messages[1].Parts.ToolCalls(), got.Results()
	if got.System != "Be brief." || got.Messages[1].Parts.Text() != "Reading." || len(calls) != 2 || len(results) != 2 {
		r.Fatalf("it says %+v", got)
	}
	if got.Messages[0].Parts.Text() != "read both" || got.Messages[3].Parts.Text() != "go on" {
		r.Errorf("the user says %+v and %+v", got.Messages[0], got.Messages[3])
	}
	if calls[0].Name != "read_file" || compact(calls[0].Args) != compact(oddArgs) {
		r.Errorf("call %+v, want the arguments %s", calls[0], oddArgs)
	}
	if args := calls[1].Args; !json.Valid([]byte(args)) && (!r.traits.badArgs || args != cutArgs) {
		r.Errorf("arguments %q: servers that parse them fail", args)
	}
	if results[0].CallID != calls[0].ID {
		slices.Reverse(results)
	}
	if results[0].CallID != calls[0].ID || results[1].CallID != calls[1].ID {
		r.Fatalf("results answer %q and %q", results[0].CallID, results[1].CallID)
	}
	if text := results[0].Content.Text(); !strings.Contains(text, "first") || !strings.Contains(text, "chart") {
		r.Errorf("first result %q, want its text and a word on the part that cannot be sent", text)
	}
	text := results[1].Content.Text()
	if !strings.Contains(text, "no such file") || !results[1].IsError && (r.traits.errorFlag || !strings.Contains(strings.ToLower(text), "error")) {
		r.Errorf("failed result %+v does not say that it failed", results[1])
	}
	if results[0].IsError {
		r.Errorf("the result %+v is not a failure", results[0])
	}
}

// compact returns JSON without spaces, other text as it is.
func compact(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

func (r *rig) checkImages() {
	img := model.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n0123")}
	r.sub("from the user", func(r *rig) {
		req := hello()
		req.Messages[0].Parts = model.Parts{model.Text{Text: "What is this?"}, img}
		got := r.parsed(req)
		if got.Parts(model.RoleUser).Text() != "What is this?" || !reflect.DeepEqual(got.Images(), []model.Image{img}) {
			r.Errorf("it says %+v", got.Messages)
		}
	})
	r.sub("of a result", func(r *rig) {
		req := history()
		result := req.Messages[2].Parts[0].(model.ToolResult)
		result.Content = append(slices.Clone(result.Content), img)
		req.Messages[2].Parts[0] = result
		if got := r.parsed(req).Images(); !reflect.DeepEqual(got, []model.Image{img}) {
			r.Errorf("images %+v", got)
		}
	})
	r.sub("without its bytes", func(r *rig) {
		req := hello()
		req.Messages[0].Parts = model.Parts{model.Image{MediaType: "image/png", Blob: "abc"}}
		if text := r.parsed(req).Parts(model.RoleUser).Text(); !strings.Contains(text, "image") {
			r.Errorf("text %q does not say that there was an image", text)
		}
	})
}

func (r *rig) checkRequestUnchanged() {
	r.start(Turn{Calls: []Call{{ID: "call_9", Name: "now", Args: []string{"{}"}}}})
	req := history()
	// Spare capacity of the slices reveals a provider that appends to them.
	messages := append(make([]model.Message, 0, 32), req.Messages...)
	req.Messages = messages
	req.Tools = append(make([]model.ToolDef, 0, 8), model.ToolDef{Name: "now", Schema: json.RawMessage(` {"type" : "object"} `)})
	before := r.clone(req)
	schema := string(req.Tools[0].Schema)
	r.must(req)
	if !reflect.DeepEqual(r.clone(req), before) || string(req.Tools[0].Schema) != schema {
		r.Errorf("the request was changed:\n%+v\nbefore:\n%+v", req, before)
	}
	if next := messages[:cap(messages)][len(req.Messages)]; next.Role != "" {
		r.Errorf("something was appended to the request's messages: %+v", next)
	}
}

// checkModels checks the list of models, if the provider has one.
func (r *rig) checkModels() {
	r.start()
	l, ok := r.provider.(model.Lister)
	if !ok {
		return
	}
	for i := range 120 { // more than a page
		r.server.Models = append(r.server.Models, "model-"+string(rune('a'+i%26))+"-"+strings.Repeat("x", i/26))
	}
	names, err := l.Models(r.ctx)
	if model.AsError(err) != nil && model.AsError(err).Code == model.CodeNotSupported {
		return
	}
	if err != nil || !reflect.DeepEqual(names, r.server.Models) {
		r.Errorf("models %q, %v; want %q", names, err, r.server.Models)
	}
	r.server.Key = "another"
	if _, err := l.Models(r.ctx); r.checkError(nil, err).Code != model.CodeAuthentication {
		r.Errorf("with a wrong key: %v", err)
	}
}
