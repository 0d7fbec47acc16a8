package subagent_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-009c0928/agent/core/subagent"
)

// FuzzLoad reads any file as the definition of an agent type: it is one with a
// name and a prompt, or an error that names the file.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("---\nname: reviewer\ndescription: Reviews.\ntools: [read_file]\n---\nReview the change.\n"))
	f.Add([]byte("---\nname: [\n---\nx"))
	f.Add([]byte("\ufeff---\n---\n\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, failed := subagent.Load(fstest.MapFS{"agents/x.md": {Data: data}}, "agents")
		if len(all)+len(failed) != 1 {
			t.Fatalf("%d definitions, %v", len(all), failed)
		}
		for _, d := range all {
			if d.Name == "" || strings.ContainsAny(d.Name, "\n\x1b") || strings.TrimSpace(d.Prompt) == "" {
				t.Errorf("%+v", d)
			}
		}
		for _, err := range failed {
			if !strings.Contains(err.Error(), "agents/x.md") {
				t.Errorf("%v", err)
			}
		}
	})
}
