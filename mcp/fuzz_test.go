package mcp_test

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
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/mcp"
)

// FuzzResponse responds to a call with arbitrary bytes, in which ID is replaced by
// the ID of the request.
func FuzzResponse(f *testing.F) {
	for _, r := range results {
		answer := `{"jsonrpc":"2.0","id":ID,"result":` + r + `}`
		f.Add([]byte(answer), false)
		f.Add([]byte("data: "+answer+"\n\n"), true)
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":ID,"result":{"struCturedContent":{"\xa2":0}}}`), false)
	f.Add([]byte(`[{"id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]`), false)
	f.Add([]byte("id: 1\nretry: 5\ndata:\n\nevent: message\r\ndata: {\r\ndata: }\r\n\r\n: nothing\n\ndata: last"), true)
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		m, _ := jsonrpc.Parse(body)
		var p struct {
			Args struct {
				Response []byte
				Stream   bool
			} `json:"arguments"`
		}
		_ = json.Unmarshal(m.Params, &p)
		out.Header().Set("Content-Type", map[bool]string{false: "application/json", true: "text/event-stream"}[p.Args.Stream])
		switch {
		case req.Method != http.MethodPost:
			out.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "" || !m.HasID():
			out.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		default:
			_, _ = out.Write(bytes.ReplaceAll(p.Args.Response, []byte("ID"), m.ID))
		}
	}))
	f.Cleanup(web.Close)
	c := connect(f, mcp.Server{URL: web.URL}, old)
	f.Fuzz(func(t *testing.T, response []byte, stream bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		result, err := c.Call(ctx, mcp.ToolInfo{Name: "any"}, jsonrpc.Encode(map[string]any{"Response": response, "Stream": stream}), mcp.Caller{})
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
		if err != nil {
			return
		}
		for i, p := range result.Content {
			switch p := p.(type) {
			case model.Text:
				if !utf8.ValidString(p.Text) || strings.ContainsAny(p.Text, "\x1b\x00") {
					t.Errorf("part %d is %q", i, p.Text)
				}
			case model.Image:
				if len(p.Data) == 0 {
					t.Errorf("part %d is an image without data", i)
				}
			}
		}
	})
}
