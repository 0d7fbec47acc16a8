package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/redact"
)

// keyWarning returns a hook that warns, once in a session, when a tool's result
// holds what looks like a key: the model gets to see it.
func keyWarning(warn func(ctx context.Context, code, message string), next func(context.Context, model.ToolCall, *core.Result)) func(context.Context, model.ToolCall, *core.Result) {
	keys := redact.New(nil)
	var once sync.Once
	return func(ctx context.Context, call model.ToolCall, result *core.Result) {
		if next != nil {
			next(ctx, call, result)
		}
		for _, p := range result.Content {
			text, ok := p.(model.Text)
			if !ok {
				continue
			}
			if _, found := keys.Text([]byte(text.Text)); found {
				once.Do(func() {
					warn(ctx, "SECRET", fmt.Sprintf("what %s returned holds what looks like a key: the model and its provider get to see it. "+
						"Change the key if it should not be known there, and keep keys in files whose names ask, such as .env", call.Name))
				})
				return
			}
		}
	}
}
