package mcp_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/mcp"
)

// recordFile returns the only record file in a host's directory.
func recordFile(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "[0-9a-f]*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v; want one", files, err)
	}
	return files[0]
}

func TestRecordFile(t *testing.T) {
	dir := t.TempDir()
	const a, b = `{"name":"a","description":"one\ntwo","inputSchema":{ "type" :  "object" }}`, `{"name":"b"}`
	s := withTools(t, scriptedServer(t, ""), a+","+b)
	refreshed(t, newHost(t, s, dir))
	if err := os.WriteFile(s.Env["MCP_TEST_TOOLS"], []byte(b+","+strings.Replace(a, "one", "another", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	want := refreshed(t, newHost(t, s, dir))
	got := newHost(t, s, dir).Status()[0]
	if got.Info != want.Info || !reflect.DeepEqual(got.Tools, want.Tools) || !slices.Equal(got.Blocked, []string{"a"}) {
		t.Errorf("Status = %+v; want %+v", got, want)
	}
	if tool := got.Tools[0]; tool.Description != "one\ntwo" || string(tool.Schema) != `{ "type" :  "object" }` {
		t.Errorf("tool %+v", tool)
	}
	file := recordFile(t, dir)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if err := newHost(t, s, dir).Forget(s); err != nil {
		t.Fatal(err)
	}
	if st := newHost(t, s, dir).Status()[0]; st.Known {
		t.Errorf("after Forget: %+v", st)
	}
}

func TestDamagedRecordFile(t *testing.T) {
	dir := t.TempDir()
	s := scriptedServer(t, "")
	refreshed(t, newHost(t, s, dir))
	file := recordFile(t, dir)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut": string(data[:len(data)-1]), "longer": string(data) + "x", "newer": "agent-mcp/9 known=1 resources=0 tools=0\n{}", "no JSON": "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		h := mcp.NewHost(mcp.HostOptions{Servers: []mcp.Configured{{Name: "test", Server: s}}, Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if st := h.Status()[0]; st.Known || len(st.Tools) > 0 || !strings.Contains(log.String(), filepath.Base(file)) {
			t.Errorf("%s: %+v, logged %s", name, st, &log)
		}
		_ = h.Close()
	}
	if st := refreshed(t, newHost(t, s, dir)); len(st.Tools) != 3 || len(st.Blocked) != 0 {
		t.Errorf("rewritten: %+v", st)
	}
}
