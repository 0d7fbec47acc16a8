package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/seed-009c0928/agent/core"
)

// BenchmarkStartUp is what 20 configured servers, of 20 tools each, cost before
// one is used: their toolsets are made and read. The target is 2 ms.
func BenchmarkStartUp(b *testing.B) {
	dir := b.TempDir()
	var servers []Configured
	for i := range 20 {
		s := Server{Command: "server", Args: []string{fmt.Sprint(i)}, Env: map[string]string{"KEY": "${KEY}"}}
		servers = append(servers, Configured{Name: fmt.Sprintf("s%d", i), Server: s})
		var tools []ToolInfo
		for j := range 20 {
			tools = append(tools, ToolInfo{Name: fmt.Sprintf("tool_%d", j), Description: "Does something with the thing that it is given, and says what came of it.", Schema: json.RawMessage(oddSchema)})
		}
		if _, err := (records{dir}).update(b.Context(), s.Hash(), func(r *record) { r.learn(s.Hash(), tools) }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		h := NewHost(HostOptions{Servers: servers, Dir: dir})
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

// BenchmarkConfigured is what 20 configured servers cost a command that uses no
// tool.
func BenchmarkConfigured(b *testing.B) {
	var servers []Configured
	for i := range 20 {
		servers = append(servers, Configured{Name: fmt.Sprintf("s%d", i), Server: Server{Command: "server", Args: []string{fmt.Sprint(i)}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = NewHost(HostOptions{Servers: servers}).Close()
	}
}

// BenchmarkCall is a call over stdio, with the whole way of a tool. What it is
// over the server's own time is the time of BenchmarkRaw less.
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

// BenchmarkRaw is the server's own time: the same bytes through pipes alone.
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

// BenchmarkLearn is the comparison of 100 tools with what is known of them.
func BenchmarkLearn(b *testing.B) {
	var tools []ToolInfo
	for j := range 100 {
		tools = append(tools, ToolInfo{Name: fmt.Sprintf("tool_%d", j), Description: "Does something.", Schema: json.RawMessage(oddSchema)})
	}
	rec := &record{Pins: map[string]string{}}
	rec.learn("s", tools)
	b.ReportAllocs()
	for b.Loop() {
		if rec.learn("s", tools) {
			b.Fatal("it has changed")
		}
	}
}
