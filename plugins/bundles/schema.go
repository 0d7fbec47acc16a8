package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// property is the JSON Schema of a setting.
type property struct {
	Type, Title, Description, Format string
	WriteOnly                        bool
	Enum                             []string
	Default                          json.RawMessage
	Minimum, Maximum                 *float64
}

// SettingsOf returns the settings that a plugin.json describes with a JSON Schema: an
// object whose properties are strings, numbers, integers or booleans. The format
// password, or writeOnly, makes one a secret; the formats directory and file are paths.
// A value is also taken from the environment variable PLUGIN_KEY.
func SettingsOf(plugin string, schema json.RawMessage) (list []Setting, err error) {
	if len(schema) == 0 {
		return nil, nil
	}
	var object struct {
		Type       string
		Properties map[string]property
		Required   []string
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, fmt.Errorf("the schema of the settings cannot be read: %w", err)
	}
	if object.Type != "object" || len(object.Properties) == 0 {
		return nil, errors.New(`the schema of the settings must have "type": "object" and properties`)
	}
	for _, key := range object.Required {
		if _, ok := object.Properties[key]; !ok {
			return nil, fmt.Errorf("the required setting %q is not among the properties", clip(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object.Properties)) {
		p := object.Properties[key]
		s := Setting{
			Key: key, Type: p.Type, Title: line(p.Title, 80), Description: line(p.Description, 300), Secret: p.WriteOnly || p.Format == "password",
			Required: slices.Contains(object.Required, key), Min: p.Minimum, Max: p.Maximum, Options: p.Enum,
			Env: strings.ToUpper(strings.ReplaceAll(plugin+"_"+key, "-", "_")),
		}
		if p.Format == "directory" || p.Format == "file" {
			s.Type = p.Format
		}
		if s.Default = text(p.Default); s.Default == "" {
			s.Default = string(p.Default) // of a number or boolean, as it is written
		}
		switch {
		case !settingKey().MatchString(key):
			return nil, fmt.Errorf("setting %q: expected a name of letters, digits and _", clip(key))
		case !slices.Contains([]string{"string", "number", "integer", "boolean"}, p.Type):
			return nil, fmt.Errorf("setting %s has the type %q: expected string, number, integer or boolean", key, clip(p.Type))
		case len(p.Enum) > 0 && p.Type != "string":
			return nil, fmt.Errorf("setting %s: only strings can have an enum", key)
		case s.Default != "" && s.Check(s.Default) != nil:
			return nil, fmt.Errorf("setting %s: its default is invalid: %w", key, s.Check(s.Default))
		case s.Default != "" && s.Secret:
			return nil, fmt.Errorf("setting %s: a secret cannot have a default", key)
		}
		list = append(list, s)
	}
	return list, nil
}

// settingsSchema reads the settings of a plugin.json of this program.
func (r *reader) settingsSchema() {
	list, err := SettingsOf(r.b.Name, r.manifest["settings"])
	if err != nil {
		r.skip("setting", "settings", "%v", err)
	}
	r.b.Settings = append(r.b.Settings, list...)
}

// Value returns a value of the setting with its type, for JSON.
func (s Setting) Value(text string) (any, error) {
	if err := s.Check(text); err != nil {
		return nil, err
	}
	switch s.Type {
	case "number", "integer":
		return json.Number(strings.TrimSpace(text)), nil
	case "boolean":
		return strconv.ParseBool(text)
	}
	return text, nil
}
