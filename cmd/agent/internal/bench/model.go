package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// modelName is the model that contestants request; the fake model ignores it.
const modelName = "bench"

// fakeModel is an OpenAI-compatible chat endpoint that streams the answers of
// a scenario without latency and records when each request arrived.
type fakeModel struct {
	server *http.Server
	url    string
	served chan struct{} // closed when the server has stopped

	mu       sync.Mutex
	scenario *scenario
	seen     traffic
}

// traffic is what the model saw in one run.
type traffic struct {
	arrivals  []time.Time
	firstSize int  // bytes of the first request's body
	proven    bool // the last request carried the scenario's proof
}

// startModel listens on a port of the loopback interface. The caller must call
// Close.
func startModel() (*fakeModel, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fake model: %w", err)
	}
	m := &fakeModel{url: "http://" + listener.Addr().String(), served: make(chan struct{})}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(listener) // returns after Close; an earlier return fails the current run
	}()
	return m, nil
}

// Close ends all connections and waits for the server to stop.
func (m *fakeModel) Close() error {
	err := m.server.Close()
	<-m.served
	return err
}

// endpoint is the base URL to configure.
func (m *fakeModel) endpoint() string { return m.url + "/v1" }

// play makes s the scenario of the next run.
func (m *fakeModel) play(s *scenario) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scenario, m.seen = s, traffic{}
}

// observed returns what was seen since play.
func (m *fakeModel) observed() traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, n, ok := m.note(arrived, body.Bytes())
	if !ok {
		// A status that no client retries, so that the run ends at once.
		http.Error(w, fmt.Sprintf("request %d is not part of the scenario", n+1), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{w: w, id: fmt.Sprintf("chatcmpl-%d", n)}
	if n < s.calls {
		out.call(fmt.Sprintf("call_%d", n), s.tool, s.arguments(n))
		out.finish("tool_calls")
		return
	}
	for range s.deltas {
		out.text("word ")
	}
	out.finish("stop")
}

// note records a request and returns its number, counted from 0; ok is false
// for one that the scenario does not expect.
func (m *fakeModel) note(arrived time.Time, body []byte) (s *scenario, n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = len(m.seen.arrivals)
	if m.scenario == nil || n > m.scenario.calls {
		return nil, n, false
	}
	m.seen.arrivals = append(m.seen.arrivals, arrived)
	if n == 0 {
		m.seen.firstSize = len(body)
	}
	if n == m.scenario.calls {
		m.seen.proven = bytes.Contains(body, []byte(m.scenario.proof))
	}
	return m.scenario, n, true
}

// stream writes chat completion chunks, each flushed separately like a model's.
// A failed write means that the client is gone, which its exit status shows.
type stream struct {
	w       http.ResponseWriter
	id      string
	started bool
}

type object = map[string]any

func (s *stream) text(text string) { s.delta(object{"content": text}) }

func (s *stream) call(id, name, arguments string) {
	s.delta(object{"tool_calls": []object{{
		"index": 0, "id": id, "type": "function",
		"function": object{"name": name, "arguments": arguments},
	}}})
}

// finish sends the stop reason, the usage and the end mark.
func (s *stream) finish(reason string) {
	s.send(object{"choices": []object{{"index": 0, "delta": object{}, "finish_reason": reason}}})
	s.send(object{
		"choices": []object{},
		"usage":   object{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
	})
	s.write([]byte("[DONE]"))
}

func (s *stream) delta(delta object) {
	if !s.started {
		delta["role"] = "assistant"
		s.started = true
	}
	s.send(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": nil}}})
}

func (s *stream) send(chunk object) {
	chunk["id"] = s.id
	chunk["object"] = "chat.completion.chunk"
	chunk["created"] = 0
	chunk["model"] = modelName
	data, err := json.Marshal(chunk)
	if err != nil {
		panic(http.ErrAbortHandler) // unreachable: the chunks hold plain values
	}
	s.write(data)
}

func (s *stream) write(data []byte) {
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	_ = http.NewResponseController(s.w).Flush()
}
