package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/wire"
)

const secret = "sk-ant-test-5f1d0c9be7a24e6c"

// server answers with the transcripts in turn, and keeps the requests.
type server struct {
	t *testing.T

	mu       sync.Mutex
	answers  []string
	requests []request
}

type request struct {
	header http.Header
	body   string
	Model  string
	Tools  []map[string]any
	System []map[string]any

	MaxTokens    int `json:"max_tokens"`
	Messages     []said
	Thinking     map[string]any
	OutputConfig map[string]any `json:"output_config"`
	ToolChoice   map[string]any `json:"tool_choice"`
	Temperature  *float64
	TopK         int `json:"top_k"`
}

type said struct {
	Role    string
	Content []map[string]any
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := request{header: r.Header, body: string(body)}
	if err := json.Unmarshal(body, &got); err != nil || r.URL.Path != "/v1/messages" {
		s.t.Errorf("%s %s: %v in %s", r.Method, r.URL, err, body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, got)
	w.Header().Set("Request-Id", "req_1")
	if len(s.answers) == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, s.answers[0])
	s.answers = s.answers[1:]
}

func start(t *testing.T, change func(*Config), answers ...string) (*server, model.Provider) {
	t.Helper()
	s := &server{t: t, answers: answers}
	web := httptest.NewServer(s)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		web.Close()
	})
	cfg := Config{Config: wire.Config{BaseURL: web.URL + "/v1", APIKey: secret, Model: "claude-sonnet-4-5", Transport: transport}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// stream writes events as the API does; the type of each stands in its data too.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		var head struct{ Type string }
		if err := json.Unmarshal([]byte(e), &head); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, e)
	}
	return b.String()
}

// The shapes are those of the API's documentation:
// https://platform.claude.com/docs/en/build-with-claude/streaming
const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":40,"output_tokens":1}}}`
	ping  = `{"type":"ping"}`
	end   = `{"type":"message_stop"}`
)

func stopped(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":30,"output_tokens_details":{"thinking_tokens":12}}}`
}

func blockStart(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func piece(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func blockStop(index int) string {
	return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)
}

// whole is an answer with every kind of block.
func whole() string {
	return stream(
		begin, ping,
		blockStart(0, `{"type":"thinking","thinking":"","signature":""}`),
		piece(0, `{"type":"thinking_delta","thinking":"Let me "}`), piece(0, `{"type":"thinking_delta","thinking":"think."}`),
		piece(0, `{"type":"signature_delta","signature":"c2ln"}`), blockStop(0),
		blockStart(1, `{"type":"redacted_thinking","data":"ZGF0YQ=="}`), blockStop(1),
		blockStart(2, `{"type":"text","text":""}`), piece(2, `{"type":"text_delta","text":"Hel"}`), ping, piece(2, `{"type":"text_delta","text":"lo"}`), blockStop(2),
		blockStart(3, `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`),
		piece(3, `{"type":"input_json_delta","partial_json":""}`),
		piece(3, `{"type":"input_json_delta","partial_json":"{\"n\": 12345678901234567890, "}`),
		piece(3, `{"type":"input_json_delta","partial_json":"\"s\":\"\\u00e9\"}"}`), blockStop(3),
		blockStart(4, `{"type":"tool_use","id":"toolu_2","name":"list","input":{}}`), blockStop(4),
		stopped("tool_use"), end,
	)
}
