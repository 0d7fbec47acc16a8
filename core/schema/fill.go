package schema

import (
	"encoding/json"
	"fmt"
)

// Fill adds the defaults of a form to the user's values and validates them. Values
// that the form does not have are dropped.
func Fill(form, values json.RawMessage) (map[string]any, error) {
	var shape struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(form, &shape); err != nil {
		return nil, fmt.Errorf("invalid form: %w", err)
	}
	given := map[string]json.RawMessage{}
	if len(values) > 0 {
		if err := json.Unmarshal(values, &given); err != nil {
			return nil, fmt.Errorf("invalid answer: %w", err)
		}
	}
	filled := map[string]any{}
	for name, p := range shape.Properties {
		switch value, ok := given[name]; {
		case ok:
			filled[name] = value
		case p.Default != nil:
			filled[name] = p.Default
		}
	}
	s, err := Parse(form)
	if err != nil {
		return nil, fmt.Errorf("invalid form: %w", err)
	}
	data, err := json.Marshal(filled)
	if err != nil {
		return nil, fmt.Errorf("invalid answer: %w", err)
	}
	if err := s.Validate(data); err != nil {
		return nil, fmt.Errorf("the answer does not match the form: %w", err)
	}
	return filled, nil
}
