package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// TestReleaseConfiguration compares .goreleaser.yaml with goreleaser's schema, which
// refuses unknown keys and values of a wrong type.
func TestReleaseConfiguration(t *testing.T) {
	data, err := os.ReadFile("testdata/goreleaser/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var config any
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(config)
	}
	if err := validate(string(text)); err != nil {
		t.Errorf(".goreleaser.yaml: %v", err)
	}
	for from, to := range map[string]string{
		"  name_template: checksums.txt": "  name_templates: checksums.txt",
		"goos: [linux, darwin, windows]": "goos: linux",
		"version: 2":                     "version: two",
	} {
		if wrong := strings.Replace(string(text), from, to, 1); wrong == string(text) || validate(wrong) == nil {
			t.Errorf("%q instead of %q is accepted", to, from)
		}
	}
}

// TestReleaseWorkflow looks for the steps that make the release: the SBOMs need syft,
// the attestations need the checksums, and goreleaser is the version of the schema.
func TestReleaseWorkflow(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(top, ".github/workflows/release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		Uses string
		With map[string]any
	}
	var workflow struct {
		Jobs map[string]struct {
			Permissions map[string]string
			Steps       []step
		}
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	job := workflow.Jobs["release"]
	for _, name := range []string{"contents", "id-token", "attestations"} {
		if job.Permissions[name] != "write" {
			t.Errorf("permission %s is %q, want write", name, job.Permissions[name])
		}
	}
	at := 0
	for _, want := range []struct{ uses, key, value string }{
		{"actions/checkout@", "fetch-depth", "0"},
		{"actions/setup-go@", "go-version-file", "go.mod"},
		{"anchore/sbom-action/download-syft@", "", ""},
		{"goreleaser/goreleaser-action@", "args", "check"},
		{"goreleaser/goreleaser-action@", "args", "release --clean"},
		{"actions/attest-build-provenance@", "subject-checksums", "dist/checksums.txt"},
	} {
		i := slices.IndexFunc(job.Steps[at:], func(s step) bool { return strings.HasPrefix(s.Uses, want.uses) })
		if i < 0 {
			t.Fatalf("no step uses %s after step %d", want.uses, at)
		}
		s := job.Steps[at+i]
		at += i + 1
		if want.key != "" && scalar(s.With[want.key]) != want.value {
			t.Errorf("%s: %s is %v, want %s", s.Uses, want.key, s.With[want.key], want.value)
		}
		if strings.HasPrefix(s.Uses, "goreleaser/") && scalar(s.With["version"]) != "v2.15.1" {
			t.Errorf("%s: version %v; the schema in testdata/goreleaser is that of v2.15.1", s.Uses, s.With["version"])
		}
	}
}

func scalar(v any) string {
	text, _ := yaml.Marshal(v)
	return strings.TrimSpace(string(text))
}
