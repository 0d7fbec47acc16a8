package modeltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// CheckSchema returns why a service rejects the schema of a tool for a model, nil if
// it does not. It knows the rejections that users of the services report. Chat
// Completions with a model not of OpenAI are those of any other service: it is as
// strict as the strictest.
func CheckSchema(api API, model string, raw json.RawMessage) error {
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		return fmt.Errorf("the schema is not an object: %w", err)
	}
	c := &schemaCheck{api: api, root: root, other: api == ChatCompletions && !strings.HasPrefix(model, "gpt-")}
	for _, name := range []string{"oneOf", "anyOf", "allOf", "enum", "const", "not"} {
		if _, has := root[name]; has && (api != Messages || strings.HasSuffix(name, "Of")) {
			return fmt.Errorf("schema must have type 'object' and not have '%s' at the top level", name)
		}
	}
	_, properties := root["properties"].(map[string]any)
	switch {
	case root["type"] != "object":
		return fmt.Errorf("schema must be a JSON Schema of 'type: \"object\"', got 'type: %v'", root["type"])
	case !properties && (api == Responses || api == ChatCompletions):
		return fmt.Errorf("in context=(), object schema missing properties")
	}
	return c.schema(root, "", 1)
}

// schemaCheck checks one schema.
type schemaCheck struct {
	api    API
	other  bool // a service other than OpenAI's with its API
	root   map[string]any
	values int // of enums
}

var (
	jsonTypes    = []string{"string", "number", "integer", "boolean", "object", "array", "null"}
	openAIFormat = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
	geminiFormat = []string{"enum", "date-time", "float", "double", "int32", "int64"}
	geminiWords  = strings.Fields("type format title description enum items minItems maxItems minimum maximum minLength maxLength pattern properties required anyOf")
	chatWords    = strings.Fields("type format title description default enum items minItems maxItems minimum maximum properties required additionalProperties anyOf")
	lookaround   = regexp.MustCompile(`\(\?[=!<]|\\[1-9kpPuc]`)
	repetition   = regexp.MustCompile(`\{\d*,?\d{4,}\}`)
	propertyKey  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func (c *schemaCheck) schema(v any, at string, depth int) error {
	s, ok := v.(map[string]any)
	fail := func(format string, args ...any) error {
		return fmt.Errorf("in context=(%s), %s", at, fmt.Sprintf(format, args...))
	}
	if !ok {
		return fail("%v is not of type 'object'", v)
	}
	if depth > 40 {
		return fail("exceeds the maximum nesting depth")
	}
	for _, check := range []func(map[string]any) string{c.words, c.types, c.numbers, c.text, c.lists} {
		if why := check(s); why != "" {
			return fail("%s", why)
		}
	}
	return c.below(s, at, depth)
}

// words checks which keywords there are.
func (c *schemaCheck) words(s map[string]any) string {
	var allowed []string
	switch {
	case c.api == Gemini:
		allowed = geminiWords
	case c.other:
		allowed = chatWords
	}
	for name := range s {
		if allowed != nil && !slices.Contains(allowed, name) {
			return fmt.Sprintf("unknown name %q: cannot find field", name)
		}
	}
	if _, union := s["anyOf"]; union && c.api == Gemini && len(s) > 1 {
		return "schema specified other fields alongside any_of. When using any_of, it must be the only field set"
	}
	if ref, has := s["$ref"].(string); has && !c.resolves(ref) {
		return fmt.Sprintf("reference to component '%s' which was not found in the schema", ref)
	}
	if _, has := s["items"].(map[string]any); s["type"] == "array" && !has && c.api != Messages {
		return "array schema missing items"
	}
	return ""
}

func (c *schemaCheck) resolves(ref string) bool {
	if ref == "#" {
		return true
	}
	at := any(c.root)
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, _ := at.(map[string]any)
		at = m[part]
	}
	_, ok := at.(map[string]any)
	return ok && strings.HasPrefix(ref, "#/")
}

func (c *schemaCheck) types(s map[string]any) string {
	switch t := s["type"].(type) {
	case nil:
		if _, has := s["type"]; has {
			return "None is not valid under any of the given schemas"
		}
	case string:
		if !slices.Contains(jsonTypes, t) {
			return fmt.Sprintf("'%s' is not valid under any of the given schemas", t)
		}
	case []any:
		if c.api == Gemini || c.other {
			return "Proto field is not repeating, cannot start list"
		}
		for _, one := range t {
			if name, ok := one.(string); !ok || !slices.Contains(jsonTypes, name) {
				return fmt.Sprintf("%v is not a type", one)
			}
			if _, has := s["items"].(map[string]any); one == "array" && !has && c.api != Messages {
				return "array schema missing items"
			}
		}
	default:
		return fmt.Sprintf("%v is not valid under any of the given schemas", t)
	}
	return ""
}

func (c *schemaCheck) numbers(s map[string]any) string {
	for _, name := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems"} {
		v, has := s[name]
		n, ok := v.(float64)
		switch {
		case !has:
		case !ok:
			return fmt.Sprintf("%v is not of type 'number' (%s)", v, name)
		case n < 0 && (strings.HasPrefix(name, "minL") || strings.HasPrefix(name, "maxL")):
			return fmt.Sprintf("%v is less than the minimum of 0 (%s)", v, name)
		case n > 2000 && strings.HasSuffix(name, "Length") && c.other:
			return "number of repetitions exceeds sane defaults, please reduce the number of repetitions"
		}
	}
	return ""
}

func (c *schemaCheck) text(s map[string]any) string {
	for _, name := range []string{"description", "title", "pattern", "format"} {
		if v, has := s[name]; has {
			if _, ok := v.(string); !ok {
				return fmt.Sprintf("%v is not of type 'string' (%s)", v, name)
			}
		}
	}
	if p, _ := s["pattern"].(string); p != "" {
		_, err := regexp.Compile(p)
		if lookaround.MatchString(p) || repetition.MatchString(p) || err != nil {
			return fmt.Sprintf("'%s' is not a supported regex", p)
		}
	}
	formats := map[API][]string{Responses: openAIFormat, ChatCompletions: openAIFormat, Gemini: geminiFormat}[c.api]
	if f, _ := s["format"].(string); f != "" && formats != nil && !slices.Contains(formats, f) {
		return fmt.Sprintf("'%s' is not a valid format", f)
	}
	return ""
}

func (c *schemaCheck) lists(s map[string]any) string {
	if v, has := s["enum"]; has {
		list, _ := v.([]any)
		c.values += len(list)
		switch {
		case len(list) == 0:
			return "enum: [] should be non-empty"
		case c.values > 1000 && c.api != Messages:
			return "too many enum values"
		}
		for _, v := range list {
			if _, ok := v.(string); c.api == Gemini && (!ok || v == "") {
				return fmt.Sprintf("invalid value at 'enum' (TYPE_STRING), %v", v)
			}
		}
	}
	v, has := s["required"]
	if !has {
		return ""
	}
	list, ok := v.([]any)
	properties, _ := s["properties"].(map[string]any)
	seen := map[any]bool{}
	for _, name := range list {
		text, isText := name.(string)
		_, defined := properties[text]
		if !isText || seen[name] || !defined && (c.api == Gemini || c.other) {
			return fmt.Sprintf("required[%v]: property is not defined", name)
		}
		seen[name] = true
	}
	if !ok {
		return fmt.Sprintf("%v is not of type 'array' (required)", v)
	}
	return ""
}

// below checks the schemas in a schema.
func (c *schemaCheck) below(s map[string]any, at string, depth int) error {
	for name, v := range s {
		var err error
		switch name {
		case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
			members, ok := v.(map[string]any)
			if !ok {
				return fmt.Errorf("in context=(%s), %v is not of type 'object' (%s)", at, v, name)
			}
			for key, member := range members {
				if name == "properties" && c.api == Messages && !propertyKey.MatchString(key) {
					return fmt.Errorf("properties: Property keys should match pattern '%s'", propertyKey)
				}
				if err = c.schema(member, at+"/"+key, depth+1); err != nil {
					return err
				}
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := v.([]any)
			if len(list) == 0 {
				return fmt.Errorf("in context=(%s), %s must be a non-empty array", at, name)
			}
			for i, one := range list {
				if err = c.schema(one, fmt.Sprintf("%s/%s/%d", at, name, i), depth+1); err != nil {
					return err
				}
			}
		case "items", "not", "if", "then", "else", "contains", "propertyNames":
			if off, ok := v.(bool); !ok || off || name != "items" {
				err = c.schema(v, at+"/"+name, depth+1)
			}
		case "additionalProperties":
			if _, ok := v.(bool); !ok {
				err = c.schema(v, at+"/"+name, depth+1)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
