package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

const secret = "sk-ant-test-5f1d0c9be7a24e6c"

// server records the requests.
type server struct {
	*modeltest.Transcript
	t *testing.T
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

// request returns request i.
func (s *server) request(i int) request {
	s.t.Helper()
	r := s.Requests()[i]
	got := request{header: r.Header, body: r.Body}
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil || r.Path != "/v1/messages" {
		s.t.Errorf("%s %s: %v in %s", r.Method, r.Path, err, r.Body)
	}
	return got
}

func start(t *testing.T, answers ...string) (*server, model.Provider) {
	t.Helper()
	s := &server{modeltest.NewTranscript(answers...), t}
	url, transport := s.Serve(t)
	return s, open(t, url, transport)
}

func open(t *testing.T, url string, transport http.RoundTripper) model.Provider {
	t.Helper()
	p, err := New(Config{Config: wire.Config{BaseURL: url + "/v1", APIKey: secret, Model: "claude-sonnet-4-5", Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func canned(t *testing.T, transport http.RoundTripper) model.Provider {
	t.Helper()
	return open(t, "http://unused.invalid", transport)
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
	return modeltest.Events(
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
