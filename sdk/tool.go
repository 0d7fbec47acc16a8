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
	err    error // from creating it
}

// ToolOption is an option of [Tool]: a property, or an access of its calls.
//
// The host checks each declared access before the call, besides plugin(NAME/TOOL),
// so that the user's rules for files and hosts apply to the tool, too:
//
//	sdk.Tool("read_notes", "Read a file of notes.", readNotes, sdk.ReadOnly(), sdk.Reads("/path"))
//
// Declaring an access does not make it possible: what the process can do depends on
// the [Manifest].
type ToolOption func(*toolproto.Tool)

// ReadOnly declares that the tool changes nothing.
func ReadOnly() ToolOption { return func(t *toolproto.Tool) { t.ReadOnly = true } }

// Timeout limits each call, not counting the time that the user takes to answer.
// Without it the limit of the host applies.
func Timeout(d time.Duration) ToolOption {
	return func(t *toolproto.Tool) { t.TimeoutMs = d.Milliseconds() }
}

// Schema replaces the inferred schema of the arguments.
func Schema(schema json.RawMessage) ToolOption {
	return func(t *toolproto.Tool) { t.InputSchema = schema }
}

// Reads declares that a call reads the paths at a JSON pointer in its arguments,
// such as "/path": a string or an array of strings. The host checks permissions
// for them.
func Reads(pointer string) ToolOption { return accesses("fs-read", pointer, false) }

// ReadsTree is like Reads, for the paths and everything below them.
func ReadsTree(pointer string) ToolOption { return accesses("fs-read", pointer, true) }

// Writes declares which paths a call writes. See Reads.
func Writes(pointer string) ToolOption { return accesses("fs-write", pointer, false) }

// Deletes declares which paths a call deletes. See Reads.
func Deletes(pointer string) ToolOption { return accesses("fs-delete", pointer, false) }

// Connects declares which hosts or URLs in the arguments a call connects to. See
// Reads.
func Connects(pointer string) ToolOption { return accesses("network", pointer, false) }

// ConnectsTo declares that every call connects to a host.
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

// Tool returns an extension that offers a tool to the model. The model chooses
// tools by name and description, so the description should say what the tool does
// and when to use it.
//
// In is a struct; see the package documentation for its tags. Arguments that do not
// match its schema are rejected before run is called. Out is a string, a [Result],
// or anything that encoding/json can encode. The model reads errors that run
// returns; [Errorf] adds a code.
//
// Run may be called concurrently, and must return soon after its context is done.
// An invalid tool, such as one whose schema cannot be inferred, is an error of
// [Serve] or [NewServer].
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

// decode validates arguments, applies defaults and decodes them. Numbers keep all
// digits.
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

// nested reports whether defaults may have been set in nested objects.
func nested(values map[string]any) bool {
	for _, v := range values {
		if _, ok := v.(map[string]any); ok {
			return true
		}
	}
	return false
}

// complete adds members that only values has to a raw object, so that what was
// given stays unchanged to the digit.
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
