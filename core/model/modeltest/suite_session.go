package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// states returns the state of the service in a request.
func states(s *Parsed) []string {
	var out []string
	for _, p := range s.Parts(model.RoleAssistant) {
		switch p := p.(type) {
		case model.Reasoning:
			if p.Signature != "" {
				out = append(out, p.Signature)
			}
		case model.Opaque:
			var state string
			_ = json.Unmarshal(p.Raw, &state) // always a string, see opaque
			out = append(out, state)
		}
	}
	return out
}

// stored encodes and decodes parts, as a session log does.
func (r *rig) stored(parts model.Parts) model.Parts {
	raw, err := json.Marshal(parts)
	if err != nil {
		r.Fatalf("%v", err)
	}
	var out model.Parts
	if err := json.Unmarshal(raw, &out); err != nil {
		r.Fatalf("%v", err)
	}
	return out
}

// answered adds an answer to the conversation, and the results of its calls.
func (r *rig) answered(req *model.Request, resp *model.Response) {
	req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: r.stored(resp.Parts)})
	var results model.Parts
	for i, c := range resp.Parts.ToolCalls() {
		results = append(results, model.ToolResult{CallID: c.ID, Name: c.Name, Content: model.TextParts(fmt.Sprint("result ", i))})
	}
	next := model.Message{Role: model.RoleTool, Parts: results}
	if results == nil {
		next = model.Message{Role: model.RoleUser, Parts: model.TextParts("go on")}
	}
	req.Messages = append(req.Messages, next)
}

// thinkingTurns returns three answers with state, one without, and the state that
// must be sent back.
func (r *rig) thinkingTurns() (turns []Turn, want []string) {
	turns = []Turn{
		{
			Reasoning: []string{"First ", "thought."}, Signature: "c2lnbmF0dXJlLTE=", Text: []string{"Reading."},
			Calls: []Call{{ID: "call_1", Name: "read_file", Args: []string{`{"path":"a"}`}}, {ID: "call_2", Name: "read_file", Args: []string{`{"path":"b"}`}}},
		},
		{Signature: "c2lnbmF0dXJlLTI=", Calls: []Call{{ID: "call_3", Name: "now", Args: []string{`{}`}}}},
		{Reasoning: []string{"Third <&> \u2028thought."}, Signature: "c2lnbmF0dXJlLTM=", Text: []string{"Done."}},
		{Text: []string{"Bye."}},
	}
	want = []string{turns[0].Signature, turns[1].Signature, turns[2].Signature}
	if r.traits.redacts {
		turns[1].Redacted = "cmVkYWN0ZWQ="
		want = []string{want[0], want[1], turns[1].Redacted, want[2]}
	}
	if !r.traits.state {
		want = nil
	}
	return turns, want
}

// checkState plays turns with reasoning. The server rejects state that it has not
// sent.
func (r *rig) checkState() {
	for _, name := range []string{r.traits.model, r.traits.other} {
		r.sub("of "+name, func(r *rig) {
			turns, want := r.thinkingTurns()
			r.start(turns...)
			req := hello()
			req.Model, req.Effort, req.Tools = name, model.EffortHigh, wireTools()
			for range turns {
				r.answered(req, r.must(req))
			}
			requests := r.server.Requests()
			last := &requests[len(requests)-1].Parsed
			if got := states(last); !reflect.DeepEqual(got, want) {
				r.Errorf("state %q is sent back, want %q", got, want)
			}
			if got := last.Parts(model.RoleAssistant).Text(); strings.ReplaceAll(got, "\n", "") != "Reading.Done." {
				r.Errorf("the model said %q", got)
			}
			if got := len(last.Results()); got != 3 {
				r.Errorf("%d results", got)
			}
		})
	}
}

// foreignIDs are ids of calls in the formats of other services.
var foreignIDs = []string{
	"call_9pQwErTyUiOpAsDfGhJkLzXc", "toolu_01A09q90qw90lq917835lq9", "functions.read_file:0", "fc_0123456789abcdef|call_x", "chatcmpl-tool-" + strings.Repeat("0f", 32),
	"日本語", "9", "a b\"c\\",
}

// checkSwitch continues conversations that began with other providers.
func (r *rig) checkSwitch() {
	r.sub("ids", func(r *rig) {
		got := r.parsed(foreignSession(foreignIDs))
		r.checkPairs(got, len(foreignIDs))
	})
	r.sub("ids that repeat", func(r *rig) {
		r.checkPairs(r.parsed(foreignSession([]string{"call_0", "call_0", "call_1", "call_0"})), 4)
	})
	r.sub("names that no tool can have", func(r *rig) {
		req := foreignSession([]string{"a", "b", "c"})
		for i, name := range []string{"functions.read file", "", strings.Repeat("naïve", 40)} {
			for n, m := range req.Messages[1+2*i : 3+2*i] {
				last := len(m.Parts) - 1
				if n == 0 {
					c := m.Parts[last].(model.ToolCall)
					c.Name = name
					m.Parts[last] = c
				} else {
					result := m.Parts[last].(model.ToolResult)
					result.Name = name
					m.Parts[last] = result
				}
			}
		}
		got := r.parsed(req)
		r.checkPairs(got, 3)
		for i, c := range got.Parts(model.RoleAssistant).ToolCalls() {
			if result := got.Results()[i].Name; !toolName().MatchString(c.Name) || result != "" && result != c.Name {
				r.Errorf("a call is sent as that of %q, its result as that of %q", c.Name, result)
			}
		}
	})
	r.sub("there and back", func(r *rig) {
		turns, _ := r.thinkingTurns()
		r.start(turns...)
		req := foreignSession([]string{"call_0"})
		req.Model, req.Effort, req.Tools = r.traits.model, model.EffortHigh, wireTools()
		own := r.must(req)
		r.answered(req, own)
		foreign := foreignSession([]string{"toolu_1"})
		req.Messages = append(req.Messages, foreign.Messages[1:]...)
		r.must(req)
		requests := r.server.Requests()
		want := []string{turns[0].Signature}
		if !r.traits.state {
			want = nil
		}
		if got := states(&requests[1].Parsed); !reflect.DeepEqual(got, want) {
			r.Errorf("state %q is sent back, want %q", got, want)
		}
		if strings.Contains(string(requests[1].Body), "hidden") {
			r.Errorf("another provider's state is sent: %s", requests[1].Body)
		}
	})
}

// foreignSession is a session of another provider with a call for each id.
func foreignSession(ids []string) *model.Request {
	req := hello()
	for i, id := range ids {
		req.Messages = append(req.Messages,
			model.Message{Role: model.RoleAssistant, Parts: model.Parts{
				model.Reasoning{Text: "hidden thought", Signature: "elsewhere:c2ln"},
				model.Opaque{Provider: "elsewhere", Model: "m", Raw: json.RawMessage(`{"type":"reasoning","thoughtSignature":"hidden","encrypted_content":"hidden"}`)},
				model.ToolCall{ID: id, Name: "count", Args: fmt.Sprintf(`{"n":%d}`, i)},
			}},
			model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: id, Name: "count", Content: model.TextParts(fmt.Sprint("result ", i))}}})
	}
	return req
}

// checkPairs checks that n calls are each followed by their result.
func (r *rig) checkPairs(got *Parsed, n int) {
	calls, results := got.Parts(model.RoleAssistant).ToolCalls(), got.Results()
	if len(calls) != n || len(results) != n {
		r.Fatalf("%d calls and %d results, want %d", len(calls), len(results), n)
	}
	for i, c := range calls {
		text := results[i].Content.Text()
		if c.ID == "" || results[i].CallID != c.ID || !strings.Contains(text, fmt.Sprint("result ", i)) || compact(c.Args) != fmt.Sprintf(`{"n":%d}`, i) {
			r.Errorf("call %+v has the result %+v", c, results[i])
		}
	}
	if strings.Contains(string(r.server.Requests()[0].Body), "hidden") {
		r.Errorf("another provider's state is sent: %s", r.server.Requests()[0].Body)
	}
}

// checkPrefix plays 20 turns. Each request must begin with the bytes of the one
// before it, or the service's cache is of no use.
func (r *rig) checkPrefix() {
	r.use(NewFunc(r.api, func(*Request) Turn {
		n := len(r.server.Requests())
		t := Turn{Reasoning: []string{"Hm."}, Signature: fmt.Sprintf("c2lnbmF0dXJlLT%02d", n), Text: []string{fmt.Sprint("turn ", n)}}
		if n%3 != 0 {
			t.Calls = []Call{{ID: fmt.Sprint("call_", n), Name: "count", Args: []string{fmt.Sprintf(`{"z": %d, "a": [1, 2.50]}`, n)}}}
		}
		return t
	}), 0)
	req := &model.Request{System: "Be brief.", Effort: model.EffortHigh, Tools: wireTools(), Messages: hello().Messages}
	for range 20 {
		r.answered(req, r.must(req))
	}
	requests := r.server.Requests()
	for i := 1; i < len(requests); i++ {
		rest, talk := r.split(requests[i-1].Body)
		nextRest, nextTalk := r.split(requests[i].Body)
		if !reflect.DeepEqual(rest, nextRest) {
			r.Fatalf("request %d: the members other than the conversation differ:\n%v\n%v", i+1, rest, nextRest)
		}
		if len(nextTalk) <= len(talk) {
			r.Fatalf("request %d has %d entries, the one before it %d", i+1, len(nextTalk), len(talk))
		}
		for j := range talk {
			if talk[j] != nextTalk[j] {
				r.Fatalf("request %d: entry %d was\n%s\nand is\n%s", i+1, j, talk[j], nextTalk[j])
			}
		}
	}
}

// split returns the entries of the conversation in a body, without cache marks,
// and the other members.
func (r *rig) split(body []byte) (rest map[string]string, entries []string) {
	var members map[string]json.RawMessage
	var talk []json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		r.Fatalf("%v", err)
	}
	if err := json.Unmarshal(members[r.traits.conversation], &talk); err != nil {
		r.Fatalf("%v", err)
	}
	delete(members, r.traits.conversation)
	rest = map[string]string{}
	for name, value := range members {
		rest[name] = string(value)
	}
	for _, e := range talk {
		entries = append(entries, strings.ReplaceAll(string(e), `,"cache_control":{"type":"ephemeral"}`, ""))
	}
	return rest, entries
}

// checkRetry checks the provider with retries.
func (r *rig) checkRetry() {
	r.sub("before the answer", func(r *rig) {
		r.start(RateLimited("7"), Overloaded(), Turn{Text: []string{"ok"}})
		waits, retries, resp, err := r.retried()
		if err != nil || resp.Parts.Text() != "ok" || retries != 2 || len(waits) != 2 || waits[0] != 7*time.Second {
			r.Errorf("response %+v, %v after %d retries with waits %v", resp, err, retries, waits)
		}
	})
	r.sub("a malformed body", func(r *rig) {
		for _, body := range []string{"", "{", "not JSON", "[]", "null", "data: {\n\n"} {
			r.start(Turn{Text: []string{"x"}, Edits: []Edit{func([]string) []string { return []string{body} }}}, Turn{Text: []string{"ok"}})
			if _, retries, resp, err := r.retried(); err != nil || retries != 1 || resp.Parts.Text() != "ok" {
				r.Errorf("body %q: response %+v, %v after %d retries", body, resp, err, retries)
			}
		}
	})
	r.sub("not what will fail again", func(r *rig) {
		r.start(ContextLength(), Turn{Text: []string{"again"}})
		if _, retries, resp, err := r.retried(); err == nil || retries != 0 {
			r.Errorf("response %+v, %v after %d retries", resp, err, retries)
		}
	})
}

// checkBreakAfterFirst breaks the stream right after the first delta of each kind,
// in each way. The next attempt must give the whole answer, and nothing of the
// first may be left.
func (r *rig) checkBreakAfterFirst() {
	for kind, turn := range map[string]Turn{
		"text":      {Text: []string{"half of it", " and more"}},
		"reasoning": {Reasoning: []string{"half a thought", " and more"}, Text: []string{"x"}},
		"call":      {Calls: []Call{{ID: "call_1", Name: "read_file", Args: []string{`{"path":`, `"a"}`}}}},
		"signature": {Reasoning: []string{"all"}, Signature: "c2lnbmVk", Text: []string{"x"}},
		"refusal":   {Refusal: []string{"I will ", "not"}},
		"calls":     {Calls: []Call{{ID: "call_1", Name: "a", Args: []string{`{`, `}`}}, {ID: "call_2", Name: "b", Args: []string{`{`, `}`}}}, Interleave: true},
		"usage":     {Usage: Usage{Prompt: 1, Completion: 1}, Text: []string{"x"}},
	} {
		frames := turn.streamed(r.api, r.traits.model)
		size := 0
		for i, f := range frames[:len(frames)-1] {
			size += len(f)
			for _, how := range []Ending{End, Abort, Reset} {
				r.sub(fmt.Sprintf("%s, %d frames, %d", kind, i+1, how), func(r *rig) {
					half := turn
					half.Break = &Break{After: size, How: how}
					r.start(half, Turn{Text: []string{"ok"}})
					_, _, resp, err := r.retried()
					if err != nil || len(r.server.Requests()) == 2 && (resp.Parts.Text() != "ok" || len(shown(resp.Parts)) != 1) {
						r.Errorf("response %+v, %v after %d requests", resp, err, len(r.server.Requests()))
					}
				})
			}
		}
	}
}

// retried sends a request with up to two retries, without waiting.
func (r *rig) retried() (waits []time.Duration, retries int, resp *model.Response, err error) {
	p := model.WithRetry(r.provider, model.RetryPolicy{Max: 2, Broken: 5, Base: time.Millisecond, Sleep: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}})
	var g model.Gatherer
	for d, err := range p.Stream(r.ctx, hello()) {
		if err != nil {
			return waits, retries, nil, err
		}
		if d.Kind == model.DeltaRetry {
			retries++
		}
		if err := g.Add(d); err != nil {
			return waits, retries, nil, err
		}
	}
	resp, err = g.Response()
	return waits, retries, resp, err
}
