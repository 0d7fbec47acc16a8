package langchain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
)

// TestConversationIsEncodedAsIfAnew checks that the encoding does not depend on
// the cache.
func TestConversationIsEncodedAsIfAnew(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	image := model.Image{MediaType: "image/png", Data: []byte{1, 2, 3}}
	random := func() model.Message {
		text := fmt.Sprintf("<%d> & é", rng.IntN(4))
		switch rng.IntN(6) {
		case 0:
			return model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.Text{Text: text}, model.ToolCall{ID: text, Name: "n", Args: `{"a":1}`}}}
		case 1:
			return model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.Reasoning{Text: text}}}
		case 2:
			return model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: text, Name: "n", Content: model.Parts{model.Text{Text: text}}}}}
		case 3:
			return model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: text, Name: "n", Content: model.Parts{image}, IsError: true}}}
		case 4:
			return model.Message{Role: model.RoleUser, Parts: model.Parts{model.Text{Text: text}, image, model.Unknown{Kind: "k", Raw: json.RawMessage(`{}`)}}}
		}
		return model.Message{Role: model.RoleUser, Parts: model.TextParts(text)}
	}
	var kept conversation
	req := &model.Request{}
	for step := range 3000 {
		switch rng.IntN(12) {
		case 0: // another or a shortened conversation
			req.Messages = req.Messages[:rng.IntN(len(req.Messages)+1)]
		case 1:
			req.System = fmt.Sprint(rng.IntN(2))
		case 2: // a caller that changes a message
			if n := len(req.Messages); n > 0 {
				m := req.Messages[rng.IntN(n)]
				m.Parts[rng.IntN(len(m.Parts))] = model.Text{Text: fmt.Sprint("changed ", step)}
			}
		default:
			req.Messages = append(req.Messages, random())
		}
		var got, want bytes.Buffer
		if err := kept.encode(&got, req); err != nil {
			t.Fatal(err)
		}
		if err := new(conversation).encode(&want, req); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(got.Bytes()) || got.String() != want.String() {
			t.Fatalf("step %d: the remembered encoding differs\n got %s\nwant %s", step, got.String(), want.String())
		}
	}
}
