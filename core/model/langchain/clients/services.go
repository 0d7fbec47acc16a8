package clients

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/cloudflare"
	"github.com/tmc/langchaingo/llms/cohere"
	"github.com/tmc/langchaingo/llms/huggingface"
	"github.com/tmc/langchaingo/llms/mistral"
	"github.com/tmc/langchaingo/llms/ollama"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

func openOllama(c *call) (llms.Model, error) {
	return ollama.New(ollama.WithServerURL(c.trimVersion("/v1").String()), ollama.WithHTTPClient(c.httpClient()), ollama.WithModel(c.model))
}

// ollamaEnded reads the last line of an answer, which the client does not
// require.
func ollamaEnded(tail []byte) (model.StopReason, bool) {
	tail = bytes.TrimSpace(tail)
	var last struct {
		Done   bool
		Reason string `json:"done_reason"`
	}
	if json.Unmarshal(tail[bytes.LastIndexByte(tail, '\n')+1:], &last) != nil || !last.Done {
		return "", false
	}
	if last.Reason == "length" {
		return model.StopMaxTokens, true
	}
	return model.StopEnd, true
}

// openCloudflare takes the account from the end of the base URL.
func openCloudflare(c *call) (llms.Model, error) {
	u := c.trimVersion("/ai/run")
	account := path.Base(u.Path)
	u.Path = path.Dir(u.Path)
	return cloudflare.New(
		cloudflare.WithCloudflareServerURL(u), cloudflare.WithAccountID(account), cloudflare.WithToken(placeholder),
		cloudflare.WithModel(c.model), cloudflare.WithHTTPClient(c.httpClient()))
}

// cloudflareChunk reads an event of the stream.
func cloudflareChunk(data []byte) (string, error) {
	var chunk struct{ Response string }
	err := json.Unmarshal(data, &chunk)
	return chunk.Response, err
}

func cloudflareEnded(tail []byte) (model.StopReason, bool) {
	return model.StopEnd, bytes.HasSuffix(bytes.TrimSpace(tail), []byte("[DONE]"))
}

func openHuggingFace(c *call) (llms.Model, error) {
	llm, err := huggingface.New(
		huggingface.WithToken(placeholder), huggingface.WithURL(strings.TrimSuffix(c.URL().String(), "/")),
		huggingface.WithModel(c.model), huggingface.WithHTTPClient(c.httpClient()))
	if c.req.Temperature == nil {
		neutral := 1.0 // the client sends 0, which the service rejects
		c.req.Temperature = &neutral
	}
	return echoless{llm}, err
}

func openCohere(c *call) (llms.Model, error) {
	return &gateway{c, func(baseURL, key string) (llms.Model, error) {
		return cohere.New(cohere.WithBaseURL(baseURL), cohere.WithToken(key), cohere.WithModel(c.model))
	}}, nil
}

func openMistral(c *call) (llms.Model, error) {
	return &gateway{c, func(baseURL, key string) (llms.Model, error) {
		const never = 1000 * time.Hour // the transport has the time limits
		return mistral.New(mistral.WithEndpoint(baseURL), mistral.WithAPIKey(key), mistral.WithModel(c.model), mistral.WithMaxRetries(1), mistral.WithTimeout(never))
	}}, nil
}

// mistralMessage is a message as langchaingo's mistral sends it: a call each, and
// results without the ID of their call, which is added here.
type mistralMessage struct {
	Role       string            `json:"role"`
	Content    string            `json:"content"`
	ToolCalls  []json.RawMessage `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
	Name       string            `json:"name,omitempty"`
}

// patchMistral joins the messages of one answer, and adds the IDs to results.
func patchMistral(_ *call, fields map[string]json.RawMessage) error {
	var messages, out []mistralMessage
	if err := json.Unmarshal(fields["messages"], &messages); err != nil {
		return err
	}
	var open []json.RawMessage // calls without a result, in the order of both
	for _, m := range messages {
		switch last := len(out) - 1; {
		case m.Role == "assistant" && last >= 0 && out[last].Role == "assistant":
			out[last].Content += m.Content
			out[last].ToolCalls = append(out[last].ToolCalls, m.ToolCalls...)
		case m.Role == "tool" && len(open) > 0:
			var call struct {
				ID       string
				Function struct{ Name string }
			}
			if err := json.Unmarshal(open[0], &call); err != nil {
				return err
			}
			m.ToolCallID, m.Name, open = call.ID, call.Function.Name, open[1:]
			out = append(out, m)
		default:
			out = append(out, m)
		}
		open = append(open, m.ToolCalls...)
	}
	var err error
	fields["messages"], err = wire.Marshal(out)
	return err
}
