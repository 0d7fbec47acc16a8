package root

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/permissions"
)

// block returns the first block of a language on a page.
func block(t *testing.T, page, language string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "\n```"+language+"\n")
	text, _, closed := strings.Cut(after, "\n```\n")
	if !ok || !closed {
		t.Fatalf("the page has no block of %s", language)
	}
	return text + "\n"
}

func permissionsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(docs("permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestPermissionsPageExamples loads the rules that the page shows, and runs its
// table of cases and its commands with them.
func TestPermissionsPageExamples(t *testing.T) {
	page, home, dir := permissionsPage(t), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for path, text := range map[string]string{
		filepath.Join(home, ".agent", "settings.json"): block(t, page, "json"),
		filepath.Join(dir, "cases.yaml"):               block(t, page, "yaml"),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	line := regexp.MustCompile(`\s+#.*`)
	for _, command := range strings.Split(strings.TrimSpace(block(t, page, "sh")), "\n") {
		command = line.ReplaceAllString(command, "")
		if strings.Contains(command, " log") || strings.Contains(command, " replay") {
			continue // there is no session yet
		}
		args := strings.Fields(command)
		if before, quoted, ok := strings.Cut(command, "'"); ok {
			args = append(strings.Fields(before), strings.TrimSuffix(quoted, "'"))
		}
		var out, errs bytes.Buffer
		s := &cmdutil.IO{In: strings.NewReader(""), Out: &out, Err: &errs, Env: os.Getenv, Cwd: dir}
		if code := execute(t.Context(), args[1:], s); code != cmdutil.ExitDone {
			t.Errorf("%s: exit code %d\n%s%s", command, code, out.String(), errs.String())
		}
	}
}

// TestPermissionsPageModes compares the page's table of modes with the policy.
func TestPermissionsPageModes(t *testing.T) {
	const ws = "/home/ann/work"
	memory := env.NewMemory(ws, map[string]string{"a.go": ""})
	file := func(scope core.Scope, path string) core.Access {
		return core.Access{Scope: scope, Resource: path, Inside: strings.HasPrefix(path, ws)}
	}
	command := func(line string) core.Access { return core.Access{Scope: core.ScopeShell, Resource: line} }
	leaves := command("make")
	leaves.Unconfined = true
	rows := map[string][]core.Access{
		"read a file in the workspace":            {file(core.ScopeRead, ws+"/a.go")},
		"read a file elsewhere":                   {file(core.ScopeRead, "/etc/hosts")},
		"write a file in the workspace":           {file(core.ScopeWrite, ws+"/a.go")},
		"write a file elsewhere":                  {file(core.ScopeWrite, "/srv/a")},
		"delete a file":                           {file(core.ScopeDelete, ws+"/a.go")},
		"a command that only reads the workspace": {command("cat a.go | head -3")},
		"another command, with a sandbox":         {command("make")},
		"another command, without a sandbox":      {command("make")},
		"a command that is to leave the sandbox":  {leaves},
		"the network, an MCP tool, a plugin's tool, a skill's script": {
			{Scope: core.ScopeNetwork, Resource: "a.test"},
			{Scope: core.ScopeMCP, Resource: "a/b"},
			{Scope: core.ScopePlugin, Resource: "a/b"},
			{Scope: core.ScopeSkillScript, Resource: "/s/x.sh"},
		},
		"a subagent":                      {{Scope: core.ScopeSubagent, Resource: "x"}},
		"a file that may hold secrets":    {file(core.ScopeRead, ws+"/.env"), command("cat .env")},
		"write a protected file":          {file(core.ScopeWrite, ws+"/.git/config"), command("cat a.go > .git/config")},
		"remove /, sudo, write to a disk": {command("rm -rf /"), command("sudo ls"), file(core.ScopeWrite, "/dev/sda")},
	}
	lines := regexp.MustCompile(`(?m)^\| (.*) \|$`).FindAllStringSubmatch(permissionsPage(t), -1)
	modes := regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(lines[0][1], -1)
	if len(modes) != len(permissions.Modes()) {
		t.Fatalf("the table has %d modes", len(modes))
	}
	for _, m := range lines[2:] {
		cells := strings.Split(m[1], " | ")
		accesses, ok := rows[cells[0]]
		if len(cells) != len(modes)+1 {
			break // the next table
		}
		if !ok {
			t.Errorf("what does the row %q mean?", cells[0])
		}
		delete(rows, cells[0])
		for i, mode := range modes {
			p, err := permissions.New(permissions.Options{
				Mode: permissions.Mode(mode[1]), Home: "/home/ann", Workspace: []string{ws}, Env: memory, Shell: "bash",
				Sandboxed: func() bool { return !strings.HasSuffix(cells[0], "without a sandbox") },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range accesses {
				d := p.Decide(t.Context(), core.PermissionRequest{Tool: "t", Session: core.SessionInfo{Dir: ws}, Accesses: []core.Access{a}})
				if d.Verdict.String() != cells[i+1] {
					t.Errorf("%s, %s: the page says %s, the policy %s: %s", cells[0], mode[1], cells[i+1], d.Verdict, d.Reason)
				}
			}
		}
	}
	for row := range rows {
		t.Errorf("the table lacks %q", row)
	}
}
