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

// maxImage bounds an image that a model gets, in bytes.
const maxImage = 10 << 20

// maxContents bounds the pieces of one result.
const maxContents = 1000

// CallResult is what came of a request: content as a model can take it.
type CallResult struct {
	Content    model.Parts
	Structured json.RawMessage // the same as data, to the byte; nil if there is none
	IsError    bool            // the server says that the call failed
}

// Text joins the texts of the content.
func (r CallResult) Text() string { return r.Content.Text() }

// decode reads the result of a call. Nothing in its content makes it fail:
// what is not known becomes text.
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
		return errors.New("it is no object")
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

// contents makes parts of content of any type.
func contents(items []json.RawMessage) model.Parts {
	var parts model.Parts
	for i, item := range items {
		if i == maxContents {
			parts = append(parts, model.Text{Text: fmt.Sprintf("[%d more pieces of content were left out]", len(items)-i)})
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
		return model.Text{Text: fmt.Sprintf("[audio %s, %d bytes, which cannot be played to a model]", cleanLine(clip(b.MIMEType, 100)), base64.StdEncoding.DecodedLen(len(b.Data)))}
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

// unknownPart shows content of an unknown type as it stands.
func unknownPart(item json.RawMessage) model.Part {
	return model.Text{Text: "[content of a type that is not known here] " + validText(string(item))}
}

// imagePart is an image, or a text that says why there is none.
func imagePart(kind, data string) model.Part {
	no := func(why string) model.Part {
		return model.Text{Text: fmt.Sprintf("[image %s: %s]", cleanLine(clip(kind, 100)), why)}
	}
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return no("of a type that models do not take")
	}
	if len(data) > base64.StdEncoding.EncodedLen(maxImage) {
		return no(fmt.Sprintf("larger than %d MiB", maxImage>>20))
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil || len(decoded) == 0 {
		return no("its data cannot be read")
	}
	return model.Image{MediaType: kind, Data: decoded, Bytes: len(decoded)}
}

// resourcePart is what a resource holds, with the words where it is from.
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
		return model.Text{Text: fmt.Sprintf("[resource %s, %s, about %d bytes that are no text]", uri, cleanLine(r.MIMEType), base64.StdEncoding.DecodedLen(len(*r.Blob)))}
	}
	return unknownPart(item)
}

// validText is a text that is valid UTF-8, without what could steer a terminal.
func validText(text string) string { return cleanLines(strings.ToValidUTF8(text, "?")) }

// resourceResult reads what came of reading a resource.
func resourceResult(text json.RawMessage) (CallResult, error) {
	var body struct {
		Contents []json.RawMessage `json:"contents"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return CallResult{}, fmt.Errorf("its resource cannot be read: %w", err)
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

// promptResult reads the messages of a prompt.
func promptResult(text json.RawMessage) (CallResult, error) {
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return CallResult{}, fmt.Errorf("its prompt cannot be read: %w", err)
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

// coreResult is the result as a session takes it.
func (r CallResult) coreResult() core.Result {
	res := core.Result{Content: r.Content, Structured: r.Structured}
	if r.IsError {
		res.Code = core.CodeUnknown
	}
	if len(res.Content) == 0 {
		text := "The tool gave no output."
		if r.IsError {
			text = "The tool failed and did not say why."
		}
		res.Content = model.TextParts(text)
	}
	return res
}
