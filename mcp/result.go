package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

const (
	maxImage    = 10 << 20 // bytes
	maxContents = 1000     // content blocks of one result
)

// CallResult is the result of a request, with content in a form that models
// accept.
type CallResult struct {
	Content    model.Parts
	Structured json.RawMessage // structured content, byte for byte; nil if there is none
	IsError    bool            // the server reports that the call failed
}

// Text returns the texts of the content, joined.
func (r CallResult) Text() string { return r.Content.Text() }

// decode decodes the result of a call. Unknown content becomes text instead of an
// error.
func (r *CallResult) decode(text json.RawMessage) error {
	var body struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return err
	}
	if len(text) == 0 || text[0] != '{' {
		return errors.New("expected an object")
	}
	if s := string(body.Structured); s != "" && s != "null" {
		r.Structured = body.Structured
	}
	r.IsError = body.IsError
	var items []json.RawMessage
	if len(body.Content) > 0 && json.Unmarshal(body.Content, &items) != nil {
		items = []json.RawMessage{body.Content} // a server that forgot the brackets
	}
	r.Content = contents(items)
	if len(r.Content) == 0 && r.Structured != nil {
		r.Content = model.TextParts(strings.ToValidUTF8(string(r.Structured), "\ufffd"))
	}
	return nil
}

// contents converts content blocks of any type.
func contents(items []json.RawMessage) model.Parts {
	var parts model.Parts
	for i, item := range items {
		if i == maxContents {
			parts = append(parts, model.Text{Text: fmt.Sprintf("[%d more content blocks omitted]", len(items)-i)})
			break
		}
		parts = append(parts, contentPart(item))
	}
	return parts
}

// block is a content block of any type.
type block struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text"`
	Data        string          `json:"data"`
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Resource    json.RawMessage `json:"resource"`
}

func contentPart(item json.RawMessage) model.Part {
	var b block
	if json.Unmarshal(item, &b) != nil {
		return unknownPart(item)
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		return model.Text{Text: validText(*b.Text)}
	case b.Type == "image":
		return imagePart(b.MIMEType, b.Data)
	case b.Type == "audio":
		return model.Text{Text: fmt.Sprintf("[audio %s, %d bytes: not supported]", cleanLine(clip(b.MIMEType, 100)), base64.StdEncoding.DecodedLen(len(b.Data)))}
	case b.Type == "resource" && len(b.Resource) > 0:
		return resourcePart(b.Resource)
	case b.Type == "resource_link":
		text := fmt.Sprintf("[resource %s", cleanLine(b.URI))
		for _, more := range []string{b.Name, b.MIMEType, b.Description} {
			if more = cleanLine(more); more != "" {
				text += ", " + more
			}
		}
		return model.Text{Text: text + "]"}
	}
	return unknownPart(item)
}

// unknownPart returns content of an unknown type as text.
func unknownPart(item json.RawMessage) model.Part {
	return model.Text{Text: "[content of unknown type] " + validText(string(item))}
}

// imagePart returns an image, or a text that says why there is none.
func imagePart(kind, data string) model.Part {
	no := func(why string) model.Part {
		return model.Text{Text: fmt.Sprintf("[image %s: %s]", cleanLine(clip(kind, 100)), why)}
	}
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return no("unsupported type")
	}
	if len(data) > base64.StdEncoding.EncodedLen(maxImage) {
		return no(fmt.Sprintf("larger than %d MiB", maxImage>>20))
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil || len(decoded) == 0 {
		return no("invalid data")
	}
	return model.Image{MediaType: kind, Data: decoded, Bytes: len(decoded)}
}

// resourcePart returns the content of a resource, with its URI.
func resourcePart(item json.RawMessage) model.Part {
	var r struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     *string `json:"blob"`
	}
	if json.Unmarshal(item, &r) != nil {
		return unknownPart(item)
	}
	uri := cleanLine(r.URI)
	switch {
	case r.Text != nil:
		return model.Text{Text: fmt.Sprintf("[resource %s]\n%s", uri, validText(*r.Text))}
	case r.Blob != nil && strings.HasPrefix(r.MIMEType, "image/"):
		return imagePart(r.MIMEType, *r.Blob)
	case r.Blob != nil:
		if data, err := base64.StdEncoding.DecodeString(*r.Blob); err == nil && utf8.Valid(data) && strings.HasPrefix(r.MIMEType, "text/") {
			return model.Text{Text: fmt.Sprintf("[resource %s]\n%s", uri, data)}
		}
		return model.Text{Text: fmt.Sprintf("[resource %s, %s, about %d bytes of binary data]", uri, cleanLine(r.MIMEType), base64.StdEncoding.DecodedLen(len(*r.Blob)))}
	}
	return unknownPart(item)
}

// validText returns a text as valid UTF-8 without terminal control characters.
func validText(text string) string { return cleanLines(strings.ToValidUTF8(text, "?")) }

// resourceResult decodes the result of resources/read.
func resourceResult(text json.RawMessage) (CallResult, error) {
	var body struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return CallResult{}, fmt.Errorf("invalid resource: %w", err)
	}
	var r CallResult
	for i, item := range body.Contents {
		if i == maxContents {
			break
		}
		r.Content = append(r.Content, resourcePart(item))
	}
	if len(r.Content) == 0 {
		return r, errors.New("the resource is empty")
	}
	return r, nil
}

// promptResult decodes the result of prompts/get.
func promptResult(text json.RawMessage) (CallResult, error) {
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return CallResult{}, fmt.Errorf("invalid prompt: %w", err)
	}
	var r CallResult
	for i, m := range body.Messages {
		if i == maxContents {
			break
		}
		var several []json.RawMessage
		if json.Unmarshal(m.Content, &several) != nil {
			several = []json.RawMessage{m.Content}
		}
		parts := contents(several)
		if m.Role == "assistant" {
			parts = append(model.Parts{model.Text{Text: "Assistant:"}}, parts...)
		}
		r.Content = append(r.Content, parts...)
	}
	if len(r.Content) == 0 {
		return r, errors.New("the prompt is empty")
	}
	return r, nil
}

// coreResult converts the result for the session.
func (r CallResult) coreResult() core.Result {
	res := core.Result{Content: r.Content, Structured: r.Structured}
	if r.IsError {
		res.Code = core.CodeUnknown
	}
	if len(res.Content) == 0 {
		text := "The tool returned no output."
		if r.IsError {
			text = "The tool failed without a message."
		}
		res.Content = model.TextParts(text)
	}
	return res
}
