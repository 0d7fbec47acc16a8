package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/redact"
)

// keyWarning returns a hook that warns, once per session, if a tool's result seems
// to contain a key, which the model then sees.
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
					warn(ctx, "SECRET", fmt.Sprintf("the result of %s seems to contain a key, which the model and its provider will see. "+
						"Change the key if they should not know it, and keep keys in files that need approval, such as .env", call.Name))
				})
				return
			}
		}
	}
}
