package root

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// TestFirstRequestIsSmall: prompt and tools are paid for with every request of
// every session.
func TestFirstRequestIsSmall(t *testing.T) {
	const most = 9_500
	var body atomic.Pointer[[]byte]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		body.CompareAndSwap(nil, &data)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}`, "\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	home, dir := filepath.Join(t.TempDir(), ".agent"), t.TempDir()
	cmd := exec.CommandContext(t.Context(), "agent", "exec", "--provider", "local", "--model", "bench",
		"--set", "providers.local.baseUrl="+server.URL+"/v1", "--permission-mode", "bypass", "Hello")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "AGENT_HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := body.Load()
	if first == nil {
		t.Fatal("no request")
	}
	if n := len(*first) - len(dir); n > most {
		t.Errorf("the first request has %d bytes without the directory's name: keep it at %d, see docs/performance.md", n, most)
	} else {
		t.Logf("%d bytes", n)
	}
}
