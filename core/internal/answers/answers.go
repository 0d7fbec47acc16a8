// Package answers looks at what a model answered: whether it says anything, who
// said it, and which parts can be sent again.
package answers

import (
	"slices"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/toolname"
	"github.com/seed-009c0928/agent/core/model"
)

// By returns the provider and the model of an answer to a request to those given.
func By(resp *model.Response, provider, name string) (answered, answeredModel string) {
	if resp.By != nil {
		return resp.By.Name, resp.By.Model
	}
	return provider, name
}

// textOnly keeps the parts of an incomplete answer that can be sent again.
func textOnly(parts model.Parts) model.Parts {
	return slices.DeleteFunc(parts, func(p model.Part) bool {
		_, ok := p.(model.Text)
		return !ok
	})
}

// uniqueIDs sets the ids of calls that the provider left empty or duplicated.
func uniqueIDs(parts model.Parts, newID func() string) {
	seen := map[string]bool{}
	for i, p := range parts {
		if c, ok := p.(model.ToolCall); ok {
			if c.ID == "" || seen[c.ID] {
				c.ID = "call_" + newID()
				parts[i] = c
			}
			seen[c.ID] = true
		}
	}
}

// Retry describes the retry of a request, or a fallback.
func Retry(r *model.Retry) event.LLMRetry {
	e := model.AsError(r.Err)
	body := event.LLMRetry{Attempt: r.Attempt, Max: r.Max, WaitMS: (r.Wait + time.Millisecond - 1).Milliseconds(), Code: e.Code, Message: e.Error(), Discard: r.Discard}
	if r.Next != nil {
		body.Provider, body.Model = r.Next.Name, r.Next.Model
	}
	return body
}

// MatchNames returns the results of an answer's calls, in the order of the calls, so
// that both have the same names: services refuse others. A call that only misspells
// the name of its result, as functions.read_file does, gets that; another result
// gets the name of its call. Renamed is the answer with other names of calls; nil if
// none changes.
func MatchNames(answer model.Parts, calls []model.ToolCall, results map[string]model.ToolResult) (parts, renamed model.Parts) {
	parts = make(model.Parts, len(calls))
	names := map[string]string{}
	for i, c := range calls {
		r := results[c.ID]
		if name, ok := toolname.Find(c.Name, []string{r.Name}); ok && name != c.Name {
			names[c.ID] = name
		} else {
			r.Name = c.Name
		}
		parts[i] = r
	}
	if len(names) == 0 {
		return parts, nil
	}
	renamed = slices.Clone(answer)
	for i, p := range renamed {
		if c, ok := p.(model.ToolCall); ok && names[c.ID] != "" {
			c.Name = names[c.ID]
			renamed[i] = c
		}
	}
	return parts, renamed
}

// WithArgs returns an answer whose calls have other arguments. The answer itself
// does not change.
func WithArgs(answer model.Parts, args func(model.ToolCall) string) model.Parts {
	changed := false
	for i, p := range answer {
		call, ok := p.(model.ToolCall)
		if !ok {
			continue
		}
		if text := args(call); text != call.Args {
			if !changed {
				answer, changed = slices.Clone(answer), true
			}
			call.Args = text
			answer[i] = call
		}
	}
	return answer
}

// Texts returns the texts of parts, one per line, and the other parts.
func Texts(parts model.Parts) (text string, others model.Parts) {
	for _, p := range parts {
		t, ok := p.(model.Text)
		switch {
		case !ok:
			others = append(others, p)
		case text == "":
			text = t.Text
		default:
			text += "\n" + t.Text
		}
	}
	return text, others
}

// Hide keeps secrets of what is not logged out of later records. The hider may be nil.
func Hide(hider interface{ Hide(text string) }, parts model.Parts) {
	for _, p := range parts {
		if text := model.Written(p); text != "" && hider != nil {
			hider.Hide(text)
		}
	}
}
