package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/model"
)

// Member is a member of a request's body.
type Member struct {
	Name  string
	Value any
}

// Options returns the request's options for this provider, which are members of
// the body. It refuses those that are fixed: what the request itself says.
func (c *Client) Options(req *model.Request, fixed ...string) (map[string]json.RawMessage, error) {
	raw, ok := req.ProviderOptions[c.info.Name]
	if !ok {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, c.Wrap(model.CodeInvalidRequest, "the provider options are not a JSON object", err)
	}
	for name := range members {
		if slices.Contains(fixed, name) {
			return nil, c.Wrap(model.CodeInvalidRequest, fmt.Sprintf("the provider options may not set %q", name), nil)
		}
	}
	return members, nil
}

// AppendMembers begins a JSON object: it writes the members in their order,
// then the options, which replace members of their name. What is nil is left
// out. The caller goes on, and closes the object.
func AppendMembers(b []byte, members []Member, options map[string]json.RawMessage) ([]byte, error) {
	all := slices.DeleteFunc(slices.Clone(members), func(m Member) bool {
		_, replaced := options[m.Name]
		return replaced || m.Value == nil
	})
	for _, name := range slices.Sorted(maps.Keys(options)) {
		all = append(all, Member{name, options[name]})
	}
	sep := byte('{')
	for _, m := range all {
		value, err := Marshal(m.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		b = AppendString(append(b, sep), m.Name)
		b = append(append(b, ':'), value...)
		sep = ','
	}
	return b, nil
}

// Marshal is json.Marshal that leaves <, > and & as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// AppendField writes a member of an object that is a string. The name needs no
// escapes.
func AppendField(b []byte, name, value string) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	return AppendString(b, value)
}

// BodySize estimates the length of a request's body in bytes.
func BodySize(messages []model.Message) int {
	n := 64 << 10
	for _, m := range messages {
		n += 5 * m.Parts.EstimateTokens()
	}
	return n
}

// Object returns the arguments of an earlier call for an API that wants an
// object. What is none is wrapped.
func Object(args string) json.RawMessage {
	text := strings.TrimSpace(args)
	switch {
	case text == "":
		return json.RawMessage(`{}`)
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return append(AppendField([]byte{'{'}, "invalid_json", args), '}')
}

// CallID returns the id of a call for an API that takes letters, digits, _ and
// - only, up to a length. An id of another provider may be otherwise: it is
// replaced by the same one each time.
func CallID(id, prefix string, longest int) string {
	fine := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if id != "" && len(id) <= longest && !strings.ContainsFunc(id, func(r rune) bool { return !fine(r) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return prefix + hex.EncodeToString(sum[:12])
}

// Schema returns a tool's schema, or that of no arguments.
func Schema(d model.ToolDef) json.RawMessage {
	if len(d.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return d.Schema
}

// Text is what a model is told of a part where only text can go; empty for a
// part that is for nobody else, as reasoning is.
func Text(p model.Part) string {
	switch p := p.(type) {
	case model.Text:
		return p.Text
	case model.Image:
		return "[image, " + p.MediaType + ", not shown]"
	case model.ToolReference:
		return "The tool " + p.Name + " was found."
	case model.Unknown:
		return "[" + p.Kind + ", not shown]"
	}
	return ""
}
