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

// Member is a member of the JSON object of a request body.
type Member struct {
	Name  string
	Value any
}

// Options returns the request's options for this provider, which are members of
// the body. It is an error to set one of the fixed members, which come from the
// request itself.
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

// AppendMembers begins a JSON object: it writes the members in order, then the
// options, which replace members of the same name. Members that are nil are left
// out. The caller may write more, and closes the object.
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

// Marshal is json.Marshal without escapes for <, > and &.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// AppendField appends a member with a string value. The name must need no
// escapes.
func AppendField(b []byte, name, value string) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	return AppendString(b, value)
}

// BodySize estimates the length of a request body in bytes.
func BodySize(messages []model.Message) int {
	n := 64 << 10
	for _, m := range messages {
		n += 5 * m.Parts.EstimateTokens()
	}
	return n
}

// Object returns the arguments of an earlier call for an API that requires an
// object. Anything else is wrapped in one.
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

// CallID returns the ID of a call for an API that accepts only letters, digits,
// _ and -, up to a length. Any other ID, such as one of another provider, is
// replaced, always by the same one.
func CallID(id, prefix string, maxLength int) string {
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if id != "" && len(id) <= maxLength && !strings.ContainsFunc(id, func(r rune) bool { return !allowed(r) }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return prefix + hex.EncodeToString(sum[:12])
}

// CallName returns the name of an earlier call for APIs that accept only letters,
// digits, _ and -. Others, which a model made up, get _ for the rest.
func CallName(name string) string {
	const maxLength = 64
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), maxLength)]
}

// Text returns the text that stands for a part where an API accepts only text.
// It is empty for parts that are never sent as text, such as reasoning.
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
