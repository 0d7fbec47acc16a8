package frontmatter_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/frontmatter"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, description, body, err string }{
		{"plain", "---\ndescription: d\n---\nb\n", "d", "b\n", ""},
		{"Windows", "\ufeff---\r\ndescription: d\r\n---\r\nb\r\n", "d", "b\n", ""},
		{"none", "b\n", "", "b\n", ""},
		{"empty", "---\n---\nb", "", "b", ""},
		{"a colon", "---\ndescription: Use it: when asked. user: \"hi\"\n---\nb", `Use it: when asked. user: "hi"`, "b", ""},
		{"open", "---\ndescription: d\n", "", "", "not closed"},
		{"broken", "---\ndescription: {\n---\nb", "", "", "front matter: line "},
		{"another type", "---\ndescription: {a: b}\n---\nb", "", "", "front matter: "},
	} {
		var head struct{ Description string }
		body, err := frontmatter.Parse([]byte(tt.text), &head)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || body != tt.body || head.Description != tt.description {
			t.Errorf("%s: %q, %q, %v", tt.name, head.Description, body, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("---\na: &a [*a]\n---\nb"))
	f.Add([]byte("---\na: b: c\n\td: |\n  x\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v map[string]any
		body, err := frontmatter.Parse(data, &v)
		if err == nil && !strings.HasSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), body) {
			t.Errorf("the body %q is not the end of %q", body, data)
		}
	})
}
