package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// field is a property of a form, which is a flat object of strings, numbers,
// booleans and enums.
type field struct {
	name     string
	required bool
	schema   fieldSchema
}

type fieldSchema struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	Default     json.RawMessage `json:"default"`
	MinLength   int             `json:"minLength"`
	MaxLength   *int            `json:"maxLength"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
}

// parseForm returns the fields of a JSON Schema, in order. It returns an error
// if the schema is not flat.
func parseForm(schema json.RawMessage) ([]field, error) {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, fmt.Errorf("the schema is not a JSON object: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(object.Properties))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the schema has no properties")
	}
	var fields []field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("invalid schema: %w", err)
		}
		f := field{name: fmt.Sprint(name)}
		if err := dec.Decode(&f.schema); err != nil {
			return nil, fmt.Errorf("field %q: unsupported schema: %w", f.name, err)
		}
		switch f.schema.Type {
		case "string", "number", "integer", "boolean":
		default:
			return nil, fmt.Errorf("field %q: unsupported type %q: expected string, number, integer or boolean", f.name, f.schema.Type)
		}
		f.required = slices.Contains(object.Required, f.name)
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		return nil, errors.New("the schema has no properties")
	}
	return fields, nil
}

// label describes the field and its possible values.
func (f field) label() string {
	name := f.name
	if f.schema.Title != "" {
		name = f.schema.Title
	}
	if f.schema.Description != "" {
		name += ": " + f.schema.Description
	}
	switch {
	case len(f.schema.Enum) > 0:
		var list []string
		for i, e := range f.schema.Enum {
			list = append(list, fmt.Sprintf("%d %s", i+1, e))
		}
		name += " [" + strings.Join(list, ", ") + "]"
	case f.schema.Type == "boolean":
		name += " [y/n]"
	case f.schema.Type != "string":
		name += " [" + f.schema.Type + "]"
	}
	switch {
	case len(f.schema.Default) > 0:
		name += " (default: " + string(f.schema.Default) + ")"
	case !f.required:
		name += " (optional)"
	}
	return display.Visible(name)
}

// parse converts the entered text to JSON, "" if the field is to be omitted.
func (f field) parse(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		switch {
		case len(f.schema.Default) > 0:
			return string(f.schema.Default), nil
		case !f.required:
			return "", nil
		}
		return "", fmt.Errorf("%s is required", f.name)
	}
	switch {
	case len(f.schema.Enum) > 0:
		return f.pick(text)
	case f.schema.Type == "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			return "true", nil
		case "n", "no", "false":
			return "false", nil
		}
		return "", errors.New("enter y or n")
	case f.schema.Type == "string":
		return f.text(text)
	}
	return f.number(text)
}

func (f field) pick(text string) (string, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.schema.Enum) {
		text = f.schema.Enum[n-1]
	}
	if !slices.Contains(f.schema.Enum, text) {
		return "", fmt.Errorf("enter one of the values, or a number from 1 to %d", len(f.schema.Enum))
	}
	return quoted(text), nil
}

func (f field) text(text string) (string, error) {
	n := len([]rune(text))
	if n < f.schema.MinLength {
		return "", fmt.Errorf("enter at least %d characters", f.schema.MinLength)
	}
	if most := f.schema.MaxLength; most != nil && n > *most {
		return "", fmt.Errorf("enter at most %d characters", *most)
	}
	return quoted(text), nil
}

func (f field) number(text string) (string, error) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !json.Valid([]byte(text)):
		return "", errors.New("enter a number")
	case f.schema.Type == "integer" && n != float64(int64(n)):
		return "", errors.New("enter a whole number")
	case f.schema.Minimum != nil && n < *f.schema.Minimum:
		return "", fmt.Errorf("enter a number of at least %g", *f.schema.Minimum)
	case f.schema.Maximum != nil && n > *f.schema.Maximum:
		return "", fmt.Errorf("enter a number of at most %g", *f.schema.Maximum)
	}
	return text, nil
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a string always marshals
	return string(b)
}

// formValues returns the object of all values that are not "".
func formValues(fields []field, values []string) json.RawMessage {
	var b strings.Builder
	for i, v := range values {
		if v == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoted(fields[i].name) + ":" + v)
	}
	return json.RawMessage("{" + b.String() + "}")
}
