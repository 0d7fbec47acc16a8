package tools_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
)

// TestBackgroundJobs: a background command is listed, read and killed only by its
// session, and ends with it.
func TestBackgroundJobs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	where, err := env.NewLocal(env.LocalOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = where.Close() })
	set := tools.Builtin(tools.Options{})
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	list, err := set.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call := func(session, name string, in args) string {
		t.Helper()
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list {
			if tool.Definition().Name == name {
				result, err := tool.Run(t.Context(), &core.Call{Name: name, Args: raw, Env: where, Session: core.SessionInfo{ID: session}})
				if err != nil {
					t.Fatal(err)
				}
				return model.Parts(result.Content).Text()
			}
		}
		t.Fatalf("no tool %s", name)
		return ""
	}
	says := func(got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("answered %q, want %q", got, w)
			}
		}
	}
	job := func(action, id string) args { return args{"action": action, "id": id} }

	says(call("1", "job", args{"action": "list"}), "No background commands.")
	says(call("1", "shell", args{"command": "echo ready; cat; sleep 1000", "background": true}), "job-1 is running in the background")
	says(call("1", "shell", args{"command": "echo broken; exit 3", "background": true}), "has already ended (ended with exit code 3)", "broken")
	says(call("1", "shell", args{"command": "echo started", "background": true}), "has already ended (ended with exit code 0)", "started")
	raw := json.RawMessage(`{"command":"true","background":true}`)
	for _, tool := range list {
		if tool.Definition().Name != "shell" {
			continue
		}
		result, err := tool.Run(t.Context(), &core.Call{Name: "shell", Args: raw, Env: where, Session: core.SessionInfo{ID: "1"}})
		if err != nil || result.Code != "" {
			t.Errorf("a background command that ends with 0: %+v, %v", result, err)
		}
	}
	says(call("1", "shell", args{"command": "no-such-program-here", "background": true}), "exit code 127")
	says(call("1", "job", args{"action": "list"}), "job-1, running", "echo ready; cat; sleep 1000")
	read := ""
	for deadline := time.Now().Add(coretest.Patience); !strings.Contains(read, "ready") && time.Now().Before(deadline); {
		read = call("1", "job", job("read", "job-1"))
	}
	says(read, "ready\n[job-1 running]")
	says(call("1", "job", job("read", "job-1")), "(nothing new)\n[job-1 running]")
	says(call("2", "job", job("read", "job-1")), `No job "job-1". No background commands.`)
	says(call("1", "job", job("kill", "job-1")), "[job-1 killed]")
	says(call("1", "job", job("read", "job-1")), "No job ")
	says(call("1", "job", job("stop", "job-1")), "it must be list, read or kill")

	says(call("2", "shell", args{"command": "sleep 1000", "background": true}), "is running in the background")
	set.End("2")
	says(call("2", "job", args{"action": "list"}), "No background commands.")
	says(call("3", "shell", args{"command": "yes; sleep 1000", "background": true}), "is running") // Close ends it
	if _, text := run(t, tools.Shell(), where, args{"command": "true", "background": true}); !strings.Contains(text, "Background commands are not available here") {
		t.Errorf("outside of a toolset: %q", text)
	}
}
