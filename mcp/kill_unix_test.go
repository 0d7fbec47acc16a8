//go:build unix

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/mcp"
)

// agentEnv makes this test binary an agent with the variable's value as cache
// directory, which calls a server that hangs.
const agentEnv = "MCP_TEST_AGENT"

func playAgent(dir string) {
	os.Unsetenv(agentEnv)
	self, _ := os.Executable()
	h := mcp.NewHost(mcp.HostOptions{
		Servers: []mcp.Configured{{Name: "test", Server: mcp.Server{Command: self, Env: map[string]string{modeEnv: "stubborn", "MCP_TEST_TOOLS": filepath.Join(dir, "tools")}}}},
		Connect: mcp.ConnectOptions{Supervisor: proc.NewSupervisor(proc.Options{})}, Dir: dir,
	})
	ctx := context.Background()
	if _, err := h.Refresh(ctx, "test"); err != nil {
		fmt.Println("error", err)
		return
	}
	run := func(name string) string {
		list, _ := h.Toolsets()[0].Tools(ctx)
		for _, tool := range list {
			if tool.Definition().Name == "test__"+name {
				res, _ := tool.Run(ctx, &core.Call{Args: json.RawMessage(`{}`)})
				return text(res)
			}
		}
		return "no tool " + name
	}
	child := run("grandchild")
	fmt.Println(h.Status()[0].PID, child)
	run("hang")
}

func gone(pid int) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return true // a zombie, to be reaped by init
		}
	}
	return false
}

func TestKilledAgentLeavesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tools"), []byte(tools("grandchild")), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(self)
	agent.Env = append(os.Environ(), agentEnv+"="+dir)
	out, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	var server, child int
	if _, err := fmt.Sscan(line, &server, &child); err != nil {
		t.Fatalf("the agent printed %q: %v", line, err)
	}
	if running, err := mcp.ListRunning(dir); err != nil || len(running) != 1 || running[0].PID != server {
		t.Errorf("before: ListRunning = %+v, %v", running, err)
	}
	_ = agent.Process.Kill()
	_ = agent.Wait()
	if !gone(server) || !gone(child) {
		_ = syscall.Kill(server, syscall.SIGKILL)
		_ = syscall.Kill(child, syscall.SIGKILL)
		t.Error("a killed agent leaves its server or the server's child")
	}
	if running, err := mcp.ListRunning(dir); err != nil || len(running) != 0 {
		t.Errorf("after: ListRunning = %+v, %v", running, err)
	}
}

func TestKilledServer(t *testing.T) {
	h := newHost(t, withTools(t, scriptedServer(t, ""), tools("pid", "grandchild")), t.TempDir())
	refreshed(t, h)
	server := pidOf(t, text(runTool(t, toolNamed(t, h, "pid"), `{}`, core.Answer{}, nil)))
	child := pidOf(t, text(runTool(t, toolNamed(t, h, "grandchild"), `{}`, core.Answer{}, nil)))
	done := make(chan core.Result, 1)
	go func() {
		res, _ := toolNamed(t, h, "hang").Run(t.Context(), &core.Call{Args: json.RawMessage(`{}`)})
		done <- res
	}()
	time.Sleep(20 * time.Millisecond) // most likely the call is in progress; otherwise it restarts the server
	_ = syscall.Kill(server, syscall.SIGKILL)
	select {
	case res := <-done:
		if res.Code != core.CodeIO || !strings.Contains(text(res), "killed by SIGKILL") {
			t.Errorf("%s %q", res.Code, text(res))
		}
	case <-time.After(time.Minute):
		t.Fatal("the call did not return")
	}
	if !gone(server) || !gone(child) {
		t.Error("a killed server is not reaped, or leaves its child")
	}
	if res := runTool(t, toolNamed(t, h, "echo"), `{"text":"back"}`, core.Answer{}, nil); text(res) != "back" {
		t.Errorf("the next call: %s %q", res.Code, text(res))
	}
}

func TestStubbornServerEnds(t *testing.T) {
	t.Parallel()
	c := connect(t, scriptedServer(t, "stubborn"), old)
	child, err := call(t, c, "grandchild", `{}`, mcp.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	pid, begin := c.PID(), time.Now()
	_ = c.Close()
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("Close took %s", took)
	}
	if !gone(pid) || !gone(pidOf(t, child.Text())) {
		t.Error("the server or its child is still running")
	}
}
