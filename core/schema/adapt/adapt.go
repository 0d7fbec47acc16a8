package adapt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Adapt returns a tool's schema in a dialect, and why it differs from the
// original; without a difference, the original bytes. The result is always a
// schema of an object. It depends on nothing but the arguments.
func Adapt(d Dialect, raw json.RawMessage) (adapted json.RawMessage, changes []string) {
	a := &adapter{}
	decoded, err := decode(raw)
	root, ok := decoded.(*object)
	switch {
	case len(raw) == 0:
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	case err != nil || !ok:
		a.note("not a JSON Schema object: any arguments", "")
		root = newObject()
		root.set("type", "object")
	}
	before := encode(root)
	for _, r := range tables[d] {
		r.step(a, root)
	}
	after := encode(root)
	if ok && string(before) == string(after) {
		return raw, nil
	}
	return after, a.changes()
}

// Adapter adapts schemas to a dialect and remembers the results. It is safe for
// concurrent use.
type Adapter struct {
	dialect Dialect
	mu      sync.RWMutex
	known   map[string]json.RawMessage // by the original
}

// maxKnown limits the remembered schemas.
const maxKnown = 4096

// New returns an adapter.
func New(d Dialect) *Adapter { return &Adapter{dialect: d, known: map[string]json.RawMessage{}} }

// Schema returns the adapted schema; see [Adapt]. The caller must not change it.
func (a *Adapter) Schema(raw json.RawMessage) json.RawMessage {
	a.mu.RLock()
	adapted, ok := a.known[string(raw)]
	a.mu.RUnlock()
	if ok {
		return adapted
	}
	adapted, _ = Adapt(a.dialect, raw)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxKnown {
		clear(a.known)
	}
	a.known[string(raw)] = adapted
	return adapted
}

// adapter collects what changed in one schema.
type adapter struct {
	reasons []string
	places  map[string][]string // of each reason
}

// note records a change at a place, such as "filter.email".
func (a *adapter) note(reason, at string) {
	if a.places == nil {
		a.places = map[string][]string{}
	}
	if _, known := a.places[reason]; !known {
		a.reasons = append(a.reasons, reason)
	}
	if at != "" && !slices.Contains(a.places[reason], at) {
		a.places[reason] = append(a.places[reason], at)
	} else if a.places[reason] == nil {
		a.places[reason] = []string{}
	}
}

// changes describes the changes, one text per reason.
func (a *adapter) changes() []string {
	const most = 3
	list := make([]string, 0, len(a.reasons))
	for _, reason := range a.reasons {
		places := a.places[reason]
		if more := len(places) - most; more > 0 {
			places = append(slices.Clone(places[:most]), fmt.Sprintf("%d more", more))
		}
		if len(places) > 0 {
			reason += " (" + strings.Join(places, ", ") + ")"
		}
		list = append(list, reason)
	}
	return list
}

// The keywords whose values contain schemas.
var (
	oneSchema   = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// each calls f for a schema and then for those in it, in their order.
func each(o *object, at string, f func(o *object, at string)) {
	f(o, at)
	for _, name := range slices.Clone(o.names) {
		switch value := o.get(name).(type) {
		case *object:
			switch {
			case slices.Contains(oneSchema, name):
				each(value, at+mark(name), f)
			case slices.Contains(schemaMaps, name):
				for _, key := range slices.Clone(value.names) {
					if s := value.object(key); s != nil {
						each(s, place(at, name, key), f)
					}
				}
			}
		case []any:
			if slices.Contains(schemaLists, name) {
				for _, v := range value {
					if s, ok := v.(*object); ok {
						each(s, at, f)
					}
				}
			}
		}
	}
}

// place returns the place of a member of a map of schemas.
func place(at, keyword, key string) string {
	if keyword == "$defs" || keyword == "definitions" {
		return key
	}
	return strings.TrimPrefix(at+"."+key, ".")
}

// mark returns what a place has after the name of an array.
func mark(keyword string) string {
	if keyword == "items" {
		return "[]"
	}
	return ""
}

// describe adds what a schema no longer says to its description.
func describe(o *object, text string) {
	const most = 400 // bytes; long enums and conditions are cut off
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if old := strings.TrimSpace(o.text("description")); old != "" {
		text = old + " (" + text + ")"
	}
	o.set("description", text)
}
