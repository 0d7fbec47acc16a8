package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

var settingKey = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// userConfig reads the settings in Claude Code's form.
func (r *reader) userConfig() {
	raw := r.manifest["userConfig"]
	if raw == nil {
		return
	}
	var all map[string]struct {
		Type, Title, Description      string
		Sensitive, Required, Multiple bool
		Default                       any
		Min, Max                      *float64
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		r.skip("setting", "userConfig", "%v", err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		in := all[key]
		s := Setting{
			Key: key, Type: in.Type, Title: line(in.Title, 80), Description: line(in.Description, 300), Secret: in.Sensitive, Required: in.Required,
			Multiple: in.Multiple, Min: in.Min, Max: in.Max, Env: "CLAUDE_PLUGIN_OPTION_" + strings.ToUpper(key),
		}
		if in.Default != nil {
			s.Default = fmt.Sprint(in.Default)
		}
		switch {
		case !settingKey().MatchString(key):
			r.skip("setting", key, "invalid name: expected letters, digits and _")
		case !slices.Contains([]string{"string", "number", "boolean", "directory", "file"}, in.Type):
			r.skip("setting", key, "unknown type %q", clip(in.Type))
		case s.Default != "" && s.Check(s.Default) != nil:
			r.skip("setting", key, "its default is invalid: %v", s.Check(s.Default))
		default:
			r.b.Settings = append(r.b.Settings, s)
		}
	}
}

// Check reports why a value cannot be used for the setting.
func (s Setting) Check(value string) error {
	if strings.ContainsRune(value, 0) {
		return errors.New("it contains a NUL character")
	}
	if len(s.Options) > 0 && !slices.Contains(s.Options, value) {
		return fmt.Errorf("%q is not one of %s", clip(value), strings.Join(s.Options, ", "))
	}
	switch s.Type {
	case "number", "integer":
		n, err := strconv.ParseFloat(value, 64)
		_, whole := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0) || !json.Valid([]byte(value)):
			return fmt.Errorf("%q is not a number", clip(value))
		case s.Type == "integer" && whole != nil:
			return fmt.Errorf("%q is not a whole number", clip(value))
		case s.Min != nil && n < *s.Min:
			return fmt.Errorf("%s is less than %g", value, *s.Min)
		case s.Max != nil && n > *s.Max:
			return fmt.Errorf("%s is more than %g", value, *s.Max)
		}
	case "boolean":
		if value != "true" && value != "false" {
			return fmt.Errorf("%q is not true or false", clip(value))
		}
	case "directory", "file":
		if value != "" && !filepath.IsAbs(value) {
			return fmt.Errorf("%q is not an absolute path", clip(value))
		}
	}
	return nil
}
