package langchain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// canned answers every request with the same recorded stream, without a
// network.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(c)), Request: r,
	}, nil
}

// record returns the stream of the fake server for turn.
func record(tb testing.TB, turn modeltest.Turn) canned {
	tb.Helper()
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`
	w := httptest.NewRecorder()
	modeltest.NewChat(turn).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
	return canned(w.Body.Bytes())
}

func textTurn(deltas int) modeltest.Turn {
	turn := modeltest.Turn{Text: make([]string, deltas)}
	for i := range turn.Text {
		turn.Text[i] = fmt.Sprintf(" word%d", i)
	}
	return turn
}

func local(tb testing.TB, transport http.RoundTripper) model.Provider {
	tb.Helper()
	p, err := langchain.Local(wire.Config{Transport: transport})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func benchmarkStream(b *testing.B, p model.Provider) {
	req := &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("hi")}}}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range p.Stream(context.Background(), req) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 5002 {
			b.Fatalf("%d deltas", n)
		}
	}
}

func BenchmarkStream5000Deltas(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkStream(b, local(b, record(b, textTurn(5000)))) })
	b.Run("with server and sockets", func(b *testing.B) {
		turn := textTurn(5000)
		transport := &http.Transport{}
		b.Cleanup(transport.CloseIdleConnections)
		p, err := langchain.Local(wire.Config{BaseURL: modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn { return turn }).Serve(b), Transport: transport})
		if err != nil {
			b.Fatal(err)
		}
		benchmarkStream(b, p)
	})
	b.Run("every chunk differs", func(b *testing.B) {
		lines := strings.SplitAfter(string(record(b, textTurn(5000))), "\n\n")
		for i := range lines {
			lines[i] = strings.Replace(lines[i], `"usage":null}`, fmt.Sprintf(`"usage":null,"obfuscation":"x%d"}`, i), 1)
		}
		benchmarkStream(b, local(b, canned(strings.Join(lines, ""))))
	})
}

func BenchmarkRequestEncode(b *testing.B) {
	req := conversation(50, 10_000)
	p := local(b, record(b, modeltest.Turn{Text: []string{"ok"}}))
	size, err := json.Marshal(req.Messages)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(size)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.Complete(context.Background(), p, req); err != nil {
			b.Fatal(err)
		}
	}
}

// conversation returns a request of n rounds with a tool result of that many
// bytes in each.
func conversation(n, bytes int) *model.Request {
	line := "\tif err := run(ctx, \"name\"); err != nil && n < 3 {\n"
	output := strings.Repeat(line, bytes/len(line)+1)[:bytes]
	req := &model.Request{
		System:   strings.Repeat("Be helpful. ", 100),
		Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("read all")}},
		Tools:    []model.ToolDef{{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}},
	}
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			model.Message{Role: model.RoleAssistant, Parts: model.Parts{model.ToolCall{ID: id, Name: "read_file", Args: `{"path":"a.go"}`}}},
			model.Message{Role: model.RoleTool, Parts: model.Parts{model.ToolResult{CallID: id, Name: "read_file", Content: model.TextParts(output)}}})
	}
	return req
}
