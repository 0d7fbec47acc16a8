package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/mcp"
)

// BenchmarkStartUp creates and reads the toolsets of 20 configured servers with 20
// tools each. The target is 2 ms.
func BenchmarkStartUp(b *testing.B) {
	dir, web := b.TempDir(), newWebServer(b)
	web.tools = manyTools(20)
	var servers []mcp.Configured
	for i := range 20 {
		servers = append(servers, mcp.Configured{Name: fmt.Sprintf("s%d", i), Server: mcp.Server{URL: fmt.Sprintf("%s/%d", web.URL, i), Headers: map[string]string{"X-Key": "${KEY:-k}"}}})
	}
	h := mcp.NewHost(mcp.HostOptions{Servers: servers, Dir: dir})
	for _, s := range servers {
		if _, err := h.Refresh(b.Context(), s.Name); err != nil {
			b.Fatal(err)
		}
	}
	_ = h.Close()
	b.ReportAllocs()
	for b.Loop() {
		h := mcp.NewHost(mcp.HostOptions{Servers: servers, Dir: dir})
		n := 0
		for _, set := range h.Toolsets() {
			tools, err := set.Tools(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			n += len(tools)
		}
		if n != 400 {
			b.Fatalf("%d tools", n)
		}
		_ = h.Close()
	}
}

// BenchmarkConfigured is the cost of 20 configured servers for a command that uses
// no tools.
func BenchmarkConfigured(b *testing.B) {
	var servers []mcp.Configured
	for i := range 20 {
		servers = append(servers, mcp.Configured{Name: fmt.Sprintf("s%d", i), Server: mcp.Server{Command: "server", Args: []string{fmt.Sprint(i)}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = mcp.NewHost(mcp.HostOptions{Servers: servers}).Close()
	}
}

// BenchmarkCall is a tool call over stdio, including the server's own time
// (BenchmarkRaw).
func BenchmarkCall(b *testing.B) {
	h := newHost(b, scriptedServer(b, ""), "")
	refreshed(b, h)
	tool := toolNamed(b, h, "echo")
	call := &core.Call{Args: json.RawMessage(`{"text":"hello"}`), Progress: func(core.Progress) {}}
	b.ReportAllocs()
	for b.Loop() {
		if res, err := tool.Run(b.Context(), call); err != nil || res.Code != "" {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkRaw is the server's own time for a call: the same bytes over pipes.
func BenchmarkRaw(b *testing.B) {
	s := scriptedServer(b, "")
	cmd := exec.Command(s.Command)
	cmd.Env = append(os.Environ(), modeEnv+"=")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = cmd.Wait()
	}()
	answers := bufio.NewReader(out)
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":"p1"}}}` + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := answers.ReadBytes('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefresh rereads a list of 100 known tools.
func BenchmarkRefresh(b *testing.B) {
	web := newWebServer(b)
	web.tools = manyTools(100)
	h := newHost(b, mcp.Server{URL: web.URL}, b.TempDir())
	refreshed(b, h)
	b.ReportAllocs()
	for b.Loop() {
		if st := refreshed(b, h); len(st.Tools) != 100 || len(st.Blocked) > 0 {
			b.Fatal(st)
		}
	}
}

// manyTools returns a server's list of n tools.
func manyTools(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"tool_%d","description":"Does something with the thing that it is given, and says what came of it.","inputSchema":%s}`, i, oddSchema))
	}
	return strings.Join(list, ",")
}
