package root

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// TestSevenProviders lets each provider work through agent exec with its own
// protocol: a tool call, its result, an answer, and the usage.
func TestSevenProviders(t *testing.T) {
	const key = "key-0123456789abcdef"
	for _, test := range []struct {
		name string
		api  modeltest.API
		sets []string // with URL for the server's address
	}{
		{"local", modeltest.Ollama, []string{"providers.local.baseUrl=URL", "providers.local.model=llama3.3", "providers.local.apiKey=KEY"}},
		{"openai", modeltest.Responses, []string{"providers.openai.baseUrl=URL", "providers.openai.apiKey=KEY"}},
		{"openai", modeltest.ChatCompletions, []string{"providers.openai.baseUrl=URL", "providers.openai.apiKey=KEY", "providers.openai.api=chat"}},
		{"anthropic", modeltest.Messages, []string{"providers.anthropic.baseUrl=URL", "providers.anthropic.apiKey=KEY"}},
		{"gemini", modeltest.Gemini, []string{"providers.gemini.baseUrl=URL", "providers.gemini.apiKey=KEY"}},
		{"gemini", modeltest.Vertex, []string{"providers.gemini.baseUrl=URL", "providers.gemini.apiKey=KEY", "providers.gemini.useVertexai=true"}},
		{"github", modeltest.ChatCompletions, []string{"providers.github.endpoint=URL", "providers.github.token=KEY"}},
		{"azure", modeltest.Azure, []string{"providers.azure.endpoint=URL", "providers.azure.apiKey=KEY", "providers.azure.deployment=dep", "providers.azure.apiVersion=2024-10-21"}},
		{"foundry", modeltest.Ollama, []string{"providers.foundry.baseUrl=URL"}},
	} {
		t.Run(test.name+"/"+test.api.String(), func(t *testing.T) {
			server := modeltest.New(
				test.api,
				modeltest.Turn{Text: []string{"I'll look."}, Calls: []modeltest.Call{{ID: "call_1", Name: "read_file", Args: []string{`{"file_path":`, `"hello.txt"}`}}}},
				modeltest.Turn{Text: []string{"It says ", "hello."}},
			)
			if test.name != "foundry" {
				server.Key = key
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"exec", "--provider", test.name}
			url := server.Serve(t)
			for _, set := range test.sets {
				args = append(args, "--set", strings.NewReplacer("URL", url, "KEY", key).Replace(set))
			}
			option, sent := `{"top_p":0.25}`, `"top_p":0.25`
			if test.name == "gemini" {
				option, sent = `{"generationConfig":{"topP":0.25}}`, `"topP":0.25`
			}
			args = append(args, "--set", "providers."+test.name+".options="+option)
			home := t.TempDir()
			ask := func(args []string) {
				t.Helper()
				var stdout, stderr bytes.Buffer
				code := execute(context.Background(), append(args, "What does hello.txt say?"), &cmdutil.IO{
					In: strings.NewReader(""), Out: &stdout, Err: &stderr, Cwd: dir,
					Env: func(name string) string {
						return map[string]string{"AGENT_HOME": home, "PATH": os.Getenv("PATH")}[name]
					},
				})
				if code != cmdutil.ExitDone || strings.TrimSpace(stdout.String()) != "It says hello." || !strings.Contains(stderr.String(), "done, 1 tool round") {
					t.Errorf("exit %d\n%s%s", code, stdout.String(), stderr.String())
				}
				if strings.Contains(stderr.String()+stdout.String(), key) {
					t.Error("the key is shown")
				}
			}
			tape := filepath.Join(t.TempDir(), "tape.yaml")
			ask(append(args[:len(args):len(args)], "--record", tape))
			requests := server.Requests()
			if len(requests) != 2 || !strings.Contains(string(requests[1].Body), "hello from a file") || !strings.Contains(string(requests[0].Body), sent) {
				t.Errorf("%d requests: %s", len(requests), requests[len(requests)-1].Body)
			}

			// Played back, nothing is reached and no key is needed.
			args = slices.DeleteFunc(args, func(arg string) bool { return strings.HasSuffix(arg, "="+key) })
			for i := 0; i+1 < len(args); i++ { // a --set that has lost its value
				if args[i] == "--set" && args[i+1] == "--set" {
					args = slices.Delete(args, i, i+1)
				}
			}
			ask(append(args, "--replay", tape))
			if n := len(server.Requests()); n != 2 {
				t.Errorf("the service was asked %d times", n)
			}
			if text, err := os.ReadFile(tape); err != nil || strings.Contains(string(text), key) {
				t.Errorf("the tape holds the key, %v", err)
			}
		})
	}
}
