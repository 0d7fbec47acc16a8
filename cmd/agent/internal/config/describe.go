package config

import "strings"

// Describe returns what a key means and which values it takes, as Markdown.
func Describe(key string) string {
	all := fields()
	if f, ok := namedField(key); ok {
		all = append(all, f)
	}
	for _, f := range all {
		if f.key != key {
			continue
		}
		text := f.tag.Get("doc")
		if values := f.enum(); len(values) > 0 {
			text += " One of `" + strings.Join(values, "`, `") + "`."
		}
		if d := f.tag.Get("default"); d != "" {
			text += " Default: `" + d + "`."
		}
		return text
	}
	return ""
}
