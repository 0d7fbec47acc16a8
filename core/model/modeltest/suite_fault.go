package modeltest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// lively is an answer with everything that a stream can hold.
func lively() Turn {
	return Turn{
		Reasoning: []string{"Hm, ", "é."},
		Text:      []string{"I'll ", "read ", "\"two\" files 🙂."},
		Calls: []Call{
			{ID: "call_1", Name: "read_file", Args: []string{`{"path"`, `:"a.go"}`}},
			{ID: "call_2", Name: "read_file", Args: []string{`{"path":`, `"b.go"}`}},
		},
		Interleave: true,
	}
}

func (s *suite) testTolerated(t *testing.T) {
	for _, test := range []struct {
		name string
		turn func(*Turn)
	}{
		{"every byte on its own", func(t *Turn) { t.Split = 1 }},
		{"keep-alive comments", func(t *Turn) { t.Edits = []Edit{KeepAlives} }},
		{"carriage returns", func(t *Turn) { t.Edits = []Edit{CarriageReturns} }},
		{"no blank lines", func(t *Turn) { t.Edits = []Edit{Replace("\n\n", "\n")} }},
		{"data split over lines", func(t *Turn) { t.Edits = []Edit{Replace(`,"object":`, ",\ndata: \"object\":")} }},
		{"no space after data:", func(t *Turn) { t.Edits = []Edit{Replace("data: ", "data:")} }},
		{"a null after the finish reason", func(t *Turn) { t.Edits = []Edit{NullAfterFinish} }},
		{"no [DONE]", func(t *Turn) { t.Edits = []Edit{WithoutDone} }},
		{"other fields", func(t *Turn) { t.Edits = []Edit{Insert(2, "id: 7\nretry: 100\nevent: ping\n\n")} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			changed := lively()
			test.turn(&changed)
			r := s.start(t, 0, lively(), changed)
			want, got := r.must(hello()), r.must(hello())
			if want.ID = got.ID; !reflect.DeepEqual(got, want) {
				t.Errorf("response\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

func (s *suite) testFaults(t *testing.T) {
	with := func(change func(*Turn)) Turn {
		turn := lively()
		change(&turn)
		return turn
	}
	edit := func(edits ...Edit) Turn { return with(func(t *Turn) { t.Edits = edits }) }
	for _, test := range []struct {
		name   string
		turn   Turn
		code   model.ErrorCode
		status int
		after  time.Duration
	}{
		{"401", Unauthorized(secret), model.CodeAuthentication, 401, 0},
		{"403", Failure(403, "permission_error", "", "not for you"), model.CodeAuthentication, 403, 0},
		{"404", NoSuchModel("gpt-9"), model.CodeModelNotFound, 404, 0},
		{"400 context", ContextLength(), model.CodeContextLength, 400, 0},
		{"500 context", Failure(500, "exceed_context_size_error", "", "the request exceeds the available context size"), model.CodeContextLength, 500, 0},
		{"400", Failure(400, "invalid_request_error", "", "Invalid value: 429 is not one of the values."), model.CodeInvalidRequest, 400, 0},
		{"413", Failure(413, "", "", "Payload too large"), model.CodeContextLength, 413, 0},
		{"429", RateLimited(""), model.CodeRateLimited, 429, 0},
		{"429 with seconds", RateLimited("7"), model.CodeRateLimited, 429, 7 * time.Second},
		{"429 with milliseconds", Turn{Status: 429, Header: http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}}, model.CodeRateLimited, 429, 1500 * time.Millisecond},
		{"500", ServerError(500), model.CodeNetwork, 500, 0},
		{"503", ServerError(503), model.CodeNetwork, 503, 0},
		{"529", ServerError(529), model.CodeNetwork, 529, 0},
		{"a web page with 502", Turn{Status: 502, Body: "<html>Bad gateway</html>"}, model.CodeNetwork, 502, 0},
		{"a redirect", Turn{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/v1/chat/completions"}}}, model.CodeNotConfigured, 307, 0},
		{"bad JSON", edit(Insert(4, BadJSON())), model.CodeInvalidResponse, 0, 0},
		{"an error event", edit(Insert(4, ErrorFrame("server_error", "", "overloaded "+secret))), model.CodeNetwork, 0, 0},
		{"an error event about the context", edit(Insert(1, ErrorFrame("invalid_request_error", "context_length_exceeded", "too long"))), model.CodeContextLength, 0, 0},
		{"an event of type error", edit(Insert(3, "event: error\ndata: {\"message\":\"boom\"}\n\n")), model.CodeNetwork, 0, 0},
		{"early end", edit(CutFrames(4)), model.CodeNetwork, 0, 0},
		{"early end in a call", edit(CutFrames(-4)), model.CodeNetwork, 0, 0},
		{"an empty stream", edit(CutFrames(0)), model.CodeNetwork, 0, 0},
		{"[DONE] without a finish reason", edit(WithoutFinish), model.CodeNetwork, 0, 0},
		{"tool calls announced, none sent", Turn{Finish: "tool_calls"}, model.CodeInvalidResponse, 0, 0},
		{"an abort", with(func(t *Turn) { t.Break = &Break{After: 900, How: Abort} }), model.CodeNetwork, 0, 0},
		{"a reset", with(func(t *Turn) { t.Break = &Break{After: 900, How: Reset} }), model.CodeNetwork, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := s.start(t, 0, test.turn)
			e := r.mustFail(t.Context(), hello())
			if e.Code != test.code || e.Status != test.status || e.RetryAfter != test.after {
				t.Errorf("code %s, status %d, retry after %v; want %s, %d, %v\n%v", e.Code, e.Status, e.RetryAfter, test.code, test.status, test.after, e)
			}
			if test.status != 0 && e.RequestID == "" {
				t.Errorf("no request id: %v", e)
			}
			if n := len(r.chat.Requests()); n != 1 {
				t.Errorf("%d requests: retrying is not the provider's task", n)
			}
		})
	}
}

func (s *suite) testRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	turn := RateLimited(now.Add(90 * time.Second).Format(http.TimeFormat))
	turn.Header.Set("Date", now.Format(http.TimeFormat))
	r := s.start(t, 0, turn)
	if e := r.mustFail(t.Context(), hello()); e.RetryAfter != 90*time.Second {
		t.Errorf("retry after %v, want 90s by the server's clock", e.RetryAfter)
	}
}

func (s *suite) testNoServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	p := s.factory(t, Endpoint{URL: "http://" + address + "/v1", Key: secret, Model: testModel, Transport: transport})
	r := &rig{t, nil, p}
	e := r.mustFail(t.Context(), hello())
	if e.Code != model.CodeNetwork || !strings.Contains(e.Error(), address) {
		t.Errorf("code %s, message %q; want %s and the address", e.Code, e, model.CodeNetwork)
	}
}

func (s *suite) testIdle(t *testing.T) {
	for _, frame := range []int{-1, 3} {
		r := s.start(t, 20*time.Millisecond, func() Turn {
			turn := lively()
			turn.Gate = HoldAt(frame, nil)
			return turn
		}())
		if e := r.mustFail(t.Context(), hello()); e.Code != model.CodeTimeout {
			t.Errorf("held before frame %d: code %s, want %s: %v", frame, e.Code, model.CodeTimeout, e)
		}
	}
}

// testCutAnywhere ends the stream after each of its bytes. Either all of the
// answer arrives, or there is an error.
func (s *suite) testCutAnywhere(t *testing.T) {
	turn := Turn{Text: []string{"Reading 🙂."}, Calls: []Call{{ID: "call_1", Name: "read_file", Args: []string{`{"path":"a"}`}}}}
	size := len(strings.Join(turn.frames("chatcmpl-000000", testModel, true), ""))
	whole := s.start(t, 0, turn).must(hello())
	cut := 0
	r := s.startChat(t, 0, NewChatFunc(func(*Request) Turn {
		turn := turn
		turn.Edits = []Edit{Join}
		turn.Break = &Break{After: cut, How: Ending(cut % 2)} // End and Abort by turns
		return turn
	}))
	for ; cut < size; cut++ {
		resp, err := r.complete(t.Context(), hello())
		if err != nil {
			if e := r.checkError(resp, err); e.Code != model.CodeNetwork || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("cut after %d of %d bytes: code %s, want %s with io.ErrUnexpectedEOF: %v", cut, size, e.Code, model.CodeNetwork, err)
			}
			continue
		}
		if !reflect.DeepEqual(resp.Parts, whole.Parts) || resp.Stop != whole.Stop {
			t.Fatalf("cut after %d of %d bytes: no error, but the response %+v", cut, size, resp)
		}
	}
}

func (s *suite) testCancelAnywhere(t *testing.T) {
	deltas := s.count(t)
	for n := range deltas {
		r := s.start(t, 0, lively())
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		var last error
		for d, err := range r.provider.Stream(ctx, hello()) {
			last = err
			if seen == n {
				cancel()
			}
			if seen++; err == nil && d.Kind == model.DeltaDone && n < deltas-1 {
				t.Errorf("cancelled at delta %d: the answer still ends as if it were whole", n)
			}
		}
		cancel()
		if n < deltas-1 && !errors.Is(last, context.Canceled) {
			t.Errorf("cancelled at delta %d: error %v", n, last)
		}
		if e := model.AsError(last); e != nil && e.Retryable() {
			t.Errorf("cancelled at delta %d: the error is retryable", n)
		}
	}
}

// count returns the number of deltas of the lively turn.
func (s *suite) count(t *testing.T) int {
	t.Helper()
	r := s.start(t, 0, lively())
	n := 0
	for _, err := range r.provider.Stream(t.Context(), hello()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func (s *suite) testCancelWhileWaiting(t *testing.T) {
	turn := lively()
	for frame := -1; frame < len(turn.frames("id", testModel, true)); frame++ {
		ctx, cancel := context.WithCancel(t.Context())
		turn := lively()
		turn.Gate = func(ctx context.Context, i int) {
			if i == frame {
				cancel()
				<-ctx.Done() // the client closes the connection
			}
		}
		r := s.start(t, 0, turn)
		resp, err := r.complete(ctx, hello())
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before frame %d: error %v, response %+v", frame, err, resp)
		}
	}
	t.Run("before the request", func(t *testing.T) {
		r := s.start(t, 0, lively())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.complete(ctx, hello()); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func (s *suite) testDeadline(t *testing.T) {
	turn := lively()
	turn.Gate = HoldAt(4, nil)
	r := s.start(t, 0, turn)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if e := r.mustFail(ctx, hello()); !errors.Is(e, context.DeadlineExceeded) || e.Code != model.CodeTimeout {
		t.Errorf("code %s, error %v", e.Code, e)
	}
}

// testBreakAnywhere leaves the loop at each delta. The connection must be
// closed by then: the server, which waits for that, comes to an end.
func (s *suite) testBreakAnywhere(t *testing.T) {
	deltas := s.count(t)
	for n := range deltas {
		turn := lively()
		frames := len(turn.frames("id", testModel, true))
		turn.Gate = HoldAt(frames-1, nil)
		if n >= deltas-4 { // what comes with the end of the answer
			turn.Gate = nil
		}
		r := s.start(t, 0, turn)
		seen := 0
		for _, err := range r.provider.Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen > n {
				break
			}
		}
		r.chat.Wait()
	}
}
