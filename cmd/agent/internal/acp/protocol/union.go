package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
)

//go:generate sh -c "go run ./gen < schema.json > types.go"

// encodeUnion returns the JSON of a variant with its tag. An empty tag adds none.
func encodeUnion(member, tag string, value any) ([]byte, error) {
	if value == nil {
		value = struct{}{}
	}
	data, err := json.Marshal(value)
	if err != nil || tag == "" {
		return data, err
	}
	if len(data) < 2 || data[0] != '{' {
		return nil, fmt.Errorf("%s %q holds %T: expected an object", member, tag, value)
	}
	out := fmt.Appendf(nil, "{%q:%q", member, tag)
	if rest := data[1:]; rest[0] != '}' {
		out = append(append(out, ','), rest...)
	} else {
		out = append(out, '}')
	}
	return out, nil
}

// decodeUnion decodes the variant that the tag of an object names. Variants that
// are not known are kept as they are, as a json.RawMessage.
func decodeUnion(data []byte, member string, variant func(tag string) any) (tag string, value any, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return "", nil, err
	}
	if raw, ok := members[member]; ok {
		if err := json.Unmarshal(raw, &tag); err != nil {
			return "", nil, fmt.Errorf("%s: %w", member, err)
		}
	}
	if value = variant(tag); value == nil {
		return tag, json.RawMessage(bytes.Clone(data)), nil
	}
	return tag, value, json.Unmarshal(data, value)
}
