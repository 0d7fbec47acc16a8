package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// tool is a tool of the plugin.
type tool struct {
	spec   *toolproto.Tool
	schema *jsonschema.Resolved
	call   func(*Context, json.RawMessage) (any, error)
	err    error // of its making
}

// ToolOption says more about a tool.
type ToolOption func(*toolproto.Tool)

// ReadOnly says that the tool changes nothing.
func ReadOnly() ToolOption { return func(t *toolproto.Tool) { t.ReadOnly = true } }

// Timeout bounds each call, without the time that a person takes to answer.
// Without it the host's own limit holds.
func Timeout(d time.Duration) ToolOption {
	return func(t *toolproto.Tool) { t.TimeoutMs = d.Milliseconds() }
}

// Schema replaces the inferred schema of the arguments.
func Schema(schema json.RawMessage) ToolOption {
	return func(t *toolproto.Tool) { t.InputSchema = schema }
}

// Reads says that a call reads the paths that stand at a JSON pointer in its
// arguments, such as "/path": a string or an array of strings. The host asks
// for permission by it.
func Reads(pointer string) ToolOption { return accesses("fs-read", pointer, false) }

// ReadsTree is Reads for all that lies under the paths.
func ReadsTree(pointer string) ToolOption { return accesses("fs-read", pointer, true) }

// Writes says which paths a call writes. See Reads.
func Writes(pointer string) ToolOption { return accesses("fs-write", pointer, false) }

// Deletes says which paths a call removes. See Reads.
func Deletes(pointer string) ToolOption { return accesses("fs-delete", pointer, false) }

// Connects says which hosts or URLs in the arguments a call reaches. See Reads.
func Connects(pointer string) ToolOption { return accesses("network", pointer, false) }

// ConnectsTo says that each call reaches a host.
func ConnectsTo(host string) ToolOption {
	return func(t *toolproto.Tool) {
		t.Access = append(t.Access, &toolproto.Access{Scope: "network", Resource: host})
	}
}

func accesses(scope, pointer string, recursive bool) ToolOption {
	return func(t *toolproto.Tool) {
		t.Access = append(t.Access, &toolproto.Access{Scope: scope, Arg: pointer, Recursive: recursive})
	}
}

// Tool offers a tool to the model. In is a struct; see the package about its
// tags and about results. The function may run any number of times at once and
// must return soon after its context is done.
func Tool[In, Out any](name, description string, run func(*Context, In) (Out, error), options ...ToolOption) Extension {
	t := &tool{spec: &toolproto.Tool{Name: name, Description: description}}
	for _, o := range options {
		o(t.spec)
	}
	if t.schema, t.err = schemaOf[In](t.spec); t.err != nil {
		return t
	}
	if run == nil {
		return t
	}
	t.call = func(ctx *Context, raw json.RawMessage) (any, error) {
		var in In
		if err := t.decode(raw, &in); err != nil {
			return nil, err
		}
		return run(ctx, in)
	}
	return t
}

func (t *tool) title() string { return t.spec.Name }

func (t *tool) register(o *offer) error {
	if err := checkExtension("tool", t.spec.Name, t.spec.Description, t.err == nil && t.call == nil, o.tools); err != nil {
		return err
	}
	if t.err != nil {
		return fmt.Errorf("tool %q: %w", t.spec.Name, t.err)
	}
	o.tools = append(o.tools, t)
	return nil
}

// decode checks arguments, completes them and decodes them. Numbers keep all
// their digits.
func (t *tool) decode(raw json.RawMessage, in any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	var values map[string]any
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return Errorf(Validation, "the arguments are not a JSON object")
	}
	given := len(values)
	if err := t.schema.ApplyDefaults(&values); err != nil {
		return Errorf(Validation, "defaults: %v", err)
	}
	if err := t.schema.Validate(values); err != nil {
		return Errorf(Validation, "invalid arguments: %v", err)
	}
	if len(values) > given || nested(values) {
		completed, err := complete(raw, values)
		if err != nil {
			return Errorf(Validation, "%v", err)
		}
		raw = completed
	}
	if err := json.Unmarshal(raw, in); err != nil {
		return Errorf(Validation, "invalid arguments: %v", err)
	}
	return nil
}

// nested reports whether defaults may have been set further down.
func nested(values map[string]any) bool {
	for _, v := range values {
		if _, ok := v.(map[string]any); ok {
			return true
		}
	}
	return false
}

// complete adds to a raw object the members that only values has, so that what
// was given stays as it was to the digit.
func complete(raw json.RawMessage, values map[string]any) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	for name, v := range values {
		was, ok := object[name]
		inner, isObject := v.(map[string]any)
		var err error
		switch {
		case !ok:
			object[name], err = json.Marshal(v)
		case isObject:
			object[name], err = complete(was, inner)
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}
