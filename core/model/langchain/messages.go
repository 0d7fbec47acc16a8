package langchain

import (
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// messages converts the conversation, one message for each tool result.
func (t Traits) messages(req *model.Request) []llms.MessageContent {
	var out []llms.MessageContent
	add := func(role llms.ChatMessageType, parts ...llms.ContentPart) {
		if t.OneText || t.OnePrompt {
			parts = joinTexts(parts)
		}
		if !t.OnePart && len(parts) > 0 {
			out = append(out, llms.MessageContent{Role: role, Parts: parts})
			return
		}
		for _, p := range parts {
			out = append(out, llms.MessageContent{Role: role, Parts: []llms.ContentPart{p}})
		}
	}
	if req.System != "" {
		add(llms.ChatMessageTypeSystem, llms.TextContent{Text: req.System})
	}
	result := llms.ChatMessageTypeTool
	if t.NoTools {
		result = llms.ChatMessageTypeHuman
	}
	var images []llms.ContentPart // of tool results
	for i, m := range req.Messages {
		switch m.Role {
		case model.RoleAssistant:
			add(llms.ChatMessageTypeAI, t.assistantParts(m.Parts)...)
		case model.RoleTool:
			for _, p := range m.Parts {
				if r, ok := p.(model.ToolResult); ok {
					add(result, t.resultPart(r, &images))
				}
			}
			if i+1 == len(req.Messages) || req.Messages[i+1].Role != model.RoleTool {
				add(llms.ChatMessageTypeHuman, images...)
				images = nil
			}
		default:
			add(llms.ChatMessageTypeHuman, t.userParts(m.Parts)...)
		}
	}
	if t.OnePrompt {
		return transcript(out)
	}
	return out
}

// joinTexts makes one text of the texts, before all other parts.
func joinTexts(parts []llms.ContentPart) []llms.ContentPart {
	var texts []string
	var others []llms.ContentPart
	for _, p := range parts {
		if t, ok := p.(llms.TextContent); ok {
			texts = append(texts, t.Text)
		} else {
			others = append(others, p)
		}
	}
	if len(texts) == 0 {
		return others
	}
	return append([]llms.ContentPart{llms.TextContent{Text: strings.Join(texts, "\n\n")}}, others...)
}

// transcript makes one text of a conversation. A single message stays as it is.
func transcript(messages []llms.MessageContent) []llms.MessageContent {
	if len(messages) < 2 {
		return messages
	}
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			text, _ := p.(llms.TextContent)
			switch m.Role {
			case llms.ChatMessageTypeSystem:
			case llms.ChatMessageTypeAI:
				b.WriteString("Assistant: ")
			default:
				b.WriteString("User: ")
			}
			b.WriteString(text.Text + "\n\n")
		}
	}
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, b.String()+"Assistant:")}
}

func (t Traits) assistantParts(parts model.Parts) []llms.ContentPart {
	var out []llms.ContentPart
	if text := joinText(parts, "\n\n"); text != "" {
		out = append(out, llms.TextContent{Text: text})
	}
	for _, c := range parts.ToolCalls() {
		if t.NoTools {
			out = append(out, llms.TextContent{Text: "[call of " + c.Name + " with " + c.Args + "]"})
			continue
		}
		out = append(out, llms.ToolCall{ID: wireID(c.ID), Type: "function", FunctionCall: &llms.FunctionCall{Name: c.Name, Arguments: string(wire.Object(c.Args))}})
	}
	return out
}

func (t Traits) userParts(parts model.Parts) []llms.ContentPart {
	var out []llms.ContentPart
	for _, p := range parts {
		if img, ok := p.(model.Image); ok && t.sends(img) {
			out = append(out, t.image(img))
		} else if text := wire.Text(p); text != "" {
			out = append(out, llms.TextContent{Text: text})
		}
	}
	return out
}

// sends reports whether the model gets an image.
func (t Traits) sends(img model.Image) bool {
	return len(img.Data) > 0 && !t.NoImages && !t.OnePrompt
}

func (t Traits) image(img model.Image) llms.ContentPart {
	if t.ImageURLs {
		return llms.ImageURLContent{URL: dataURL(img)}
	}
	return llms.BinaryContent{MIMEType: img.MediaType, Data: img.Data}
}

// resultPart converts a result. Its images are added to images, as no langchaingo
// model supports them in a result.
func (t Traits) resultPart(r model.ToolResult, images *[]llms.ContentPart) llms.ContentPart {
	text := resultText(r, func(img model.Image) string {
		if !t.sends(img) {
			return wire.Text(img)
		}
		*images = append(*images, llms.TextContent{Text: "Image of the result of " + r.Name + ":"}, t.image(img))
		return "[image: see the next user message]"
	})
	if t.NoTools {
		return llms.TextContent{Text: "[result of " + r.Name + "]\n" + text}
	}
	return llms.ToolCallResponse{ToolCallID: wireID(r.CallID), Name: r.Name, Content: text}
}
