package root

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHugeAnswer checks that an answer of 100 MB is cut off with an error, at
// bounded memory, whatever the API.
func TestHugeAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 100 MB for each API")
	}
	t.Parallel()
	const most = 300 << 10 // KiB
	piece := strings.Repeat("a long text, ", 5000)
	messages := `{"type":"message_start","message":{"id":"m","model":"m","usage":{"input_tokens":1}}}` + "\n\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	for _, test := range []struct{ api, first, next string }{
		{"chat", `{"choices":[]}`, `{"choices":[{"index":0,"delta":{"content":%q}}]}`},
		{"responses", `{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"i","delta":%q}`},
		{"anthropic", messages, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`},
		{"gemini", `{"candidates":[]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]}}]}`},
	} {
		t.Run(test.api, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", test.first)
				for sent := 0; sent < 100<<20; sent += len(piece) {
					if _, err := fmt.Fprintf(w, "data: "+test.next+"\n\n", piece); err != nil {
						return // cut off
					}
				}
			}))
			defer server.Close()
			home, dir := t.TempDir(), t.TempDir()
			settings := fmt.Sprintf(`{"version":1,"providers":{"default":"huge","huge":{"api":%q,"baseUrl":"%s/v1","apiKey":"key-Zx81kQm44TtLw902","model":"m"}},"retry":{"enabled":false}}`, test.api, server.URL)
			if err := os.MkdirAll(filepath.Join(home, ".agent"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, ".agent", "settings.json"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "agent", "exec", "Hello")
			var stderr bytes.Buffer
			cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "HOME="+home), &stderr
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(stderr.String(), "the answer was cut off: it exceeds the limit of 64 MiB") {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; peak > most {
				t.Errorf("at its peak the process took %d MiB, at most %d are allowed", peak>>10, most>>10)
			} else {
				t.Logf("peak: %d MiB", peak>>10)
			}
		})
	}
}
