package modeltest

import (
	"net"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// fullTurn is an answer with everything that a stream can contain.
func fullTurn() Turn {
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

// edited is lively with edits.
func edited(edits ...Edit) Turn {
	t := fullTurn()
	t.Edits = edits
	return t
}

type toleratedTest struct {
	name string
	turn func(*Turn)
}

// checkTolerated varies the stream within the protocol: the answer must be the
// same.
func (r *rig) checkTolerated() {
	edits := func(edits ...Edit) func(*Turn) { return func(t *Turn) { t.Edits = edits } }
	tests := []toleratedTest{
		{"every byte on its own", func(t *Turn) { t.Split = 1 }},
		{"the whole stream at once", edits(joinFrames)},
		{"keep-alive comments", edits(keepAlives)},
		{"carriage returns", edits(Replace("\r\n", "\n"), carriageReturns)},
		{"line feeds", edits(Replace("\r\n", "\n"))},
		{"no space after data:", edits(Replace("data: ", "data:"))},
		{"other fields", edits(Replace("data: ", "id: 7\nretry: 100\ndata: "))},
		{"data split over lines", edits(splitData)},
		{"a byte order mark", edits(func(frames []string) []string { return append([]string{"\ufeff" + frames[0]}, frames[1:]...) })},
		{"new members", edits(Replace("data: {", `data: {"new_member":{"a":[1,"}"]},`))},
		{"new events", edits(Insert(2, "event: something_new\ndata: {\"type\":\"something_new\",\"index\":0}\n\n"))},
	}
	switch r.api {
	case Messages:
		tests = append(tests, toleratedTest{"pings", edits(Insert(1, pingFrame), Insert(3, pingFrame), Insert(6, pingFrame))})
	case ChatCompletions, Ollama, Azure:
		tests = append(tests,
			toleratedTest{"no blank lines", edits(Replace("\n\n", "\n"))},
			toleratedTest{"a null after the finish reason", edits(NullAfterFinish)},
			toleratedTest{"no [DONE]", edits(withoutDone)})
	}
	for _, test := range tests {
		r.sub(test.name, func(r *rig) {
			changed := fullTurn()
			test.turn(&changed)
			r.start(fullTurn(), changed)
			want, got := r.must(hello()), r.must(hello())
			want.ID, want.Parts, got.Parts = got.ID, shown(want.Parts), shown(got.Parts)
			if !reflect.DeepEqual(got, want) {
				r.Errorf("response\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

const pingFrame = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

// splitData puts the first member of each JSON object on a separate line.
func splitData(frames []string) []string { return Replace(`data: {`, "data: {\ndata: ")(frames) }

// spoiled cuts off the JSON of the first frame that contains a text.
func spoiled(text string) Edit {
	return func(frames []string) []string {
		out := append([]string{}, frames...)
		for i, f := range out {
			if at := strings.Index(f, text); at >= 0 {
				out[i] = f[:at] + "\n\n"
				break
			}
		}
		return out
	}
}

type faultTest struct {
	name   string
	turn   Turn
	code   model.ErrorCode
	status int // -1 means any
	after  time.Duration
}

func (r *rig) checkFaults() {
	for _, test := range append(append(r.statusFaults(), r.streamFaults()...), r.ownFaults()...) {
		r.sub(test.name, func(r *rig) {
			r.start(test.turn)
			e := r.mustFail(r.ctx, hello())
			if e.Code != test.code || e.Status != test.status && test.status >= 0 || e.RetryAfter != test.after {
				r.Errorf("code %s, status %d, retry after %v; want %s, %d, %v\n%v", e.Code, e.Status, e.RetryAfter, test.code, test.status, test.after, e)
			}
			if test.status > 0 && e.RequestID == "" && r.traits.requestIDs {
				r.Errorf("no request id: %v", e)
			}
			if n := len(r.server.Requests()); n != 1 {
				r.Errorf("%d requests: the provider must not retry", n)
			}
		})
	}
}

// statusFaults are errors with an HTTP status.
func (r *rig) statusFaults() []faultTest {
	status := func(t Turn) int {
		n, _ := r.api.protocol().fault(t.Fault)
		return n
	}
	const seconds = time.Second
	return []faultTest{
		{"wrong key", Unauthorized(secret), model.CodeAuthentication, status(Unauthorized(secret)), 0},
		{"403", Failure(403, "permission_error", "", "not for you"), model.CodeAuthentication, 403, 0},
		{"404", NoSuchModel("gpt-9"), model.CodeModelNotFound, 404, 0},
		{"400 context", ContextLength(), model.CodeContextLength, 400, 0},
		{"400", Failure(400, "invalid_request_error", "", "Invalid value: 429 is not one of the values."), model.CodeInvalidRequest, 400, 0},
		{"413", Failure(413, "", "", "Payload too large"), model.CodeContextLength, 413, 0},
		{"429", RateLimited(""), model.CodeRateLimited, 429, 0},
		{"429 with seconds", RateLimited("7"), model.CodeRateLimited, 429, 7 * seconds},
		{"429 with milliseconds", Turn{Status: 429, Header: http.Header{"Retry-After-Ms": {"1500"}, "Retry-After": {"2"}}}, model.CodeRateLimited, 429, 1500 * time.Millisecond},
		{"500", ServerError(500), model.CodeNetwork, 500, 0},
		{"503", ServerError(503), model.CodeNetwork, 503, 0},
		{"529", ServerError(529), model.CodeNetwork, 529, 0},
		{"504", ServerError(504), model.CodeTimeout, 504, 0},
		{"overloaded", Overloaded(), model.CodeNetwork, status(Overloaded()), 0},
		{"a web page with 502", Turn{Status: 502, Body: "<html>Bad gateway</html>"}, model.CodeNetwork, 502, 0},
		{"a redirect", Turn{Status: 307, Header: http.Header{"Location": {"http://127.0.0.1:1/v1/chat/completions"}}}, model.CodeNotConfigured, 307, 0},
	}
}

// streamFaults are answers that break off.
func (r *rig) streamFaults() []faultTest {
	within := r.frameWith(fullTurn(), "read ")
	broken := func(how Ending) Turn {
		t := fullTurn()
		t.Break = &Break{After: len(strings.Join(t.streamed(r.api, r.traits.model), "")) / 2, How: how}
		return t
	}
	return []faultTest{
		{"bad JSON", edited(spoiled("read ")), model.CodeInvalidResponse, 0, 0},
		{"an error event", edited(Insert(within, r.api.ErrorFrame(*Overloaded().Fault))), model.CodeNetwork, -1, 0},
		{"an error event that holds the key", edited(Insert(within, r.api.ErrorFrame(Fault{Status: 500, Type: "server_error", Message: "overloaded " + secret}))), model.CodeNetwork, -1, 0},
		{"an error event at once", edited(Insert(0, r.api.ErrorFrame(*Overloaded().Fault))), model.CodeNetwork, -1, 0},
		{"a limit in the stream", edited(Insert(within, r.api.ErrorFrame(*RateLimited("").Fault))), model.CodeRateLimited, -1, 0},
		{"early end", edited(CutFrames(within)), model.CodeNetwork, 0, 0},
		{"early end in a call", edited(CutFrames(r.frameWith(fullTurn(), "b.go"))), model.CodeNetwork, 0, 0},
		{"no last frame", edited(CutFrames(r.last(fullTurn()))), model.CodeNetwork, 0, 0},
		{"an empty stream", edited(CutFrames(0)), model.CodeNetwork, 0, 0},
		{"an abort", broken(Abort), model.CodeNetwork, 0, 0},
		{"a reset", broken(Reset), model.CodeNetwork, 0, 0},
	}
}

// last returns the index of the frame that completes an answer.
func (r *rig) last(t Turn) int {
	frames := t.streamed(r.api, r.traits.model)
	for i, f := range frames {
		if isFinish(f) {
			return i
		}
	}
	return len(frames) - 1
}

// ownFaults are errors that are specific to the API.
func (r *rig) ownFaults() []faultTest {
	within := r.frameWith(fullTurn(), "read ")
	switch r.api {
	case Responses:
		return []faultTest{
			{"response.failed", edited(Insert(within, responses{}.failedFrame(Overloaded().Fault))), model.CodeNetwork, 0, 0},
			{"response.failed with a limit", edited(Insert(within, responses{}.failedFrame(RateLimited("").Fault))), model.CodeRateLimited, 0, 0},
			{"an error event about the context", edited(Insert(1, Responses.ErrorFrame(*ContextLength().Fault))), model.CodeContextLength, -1, 0},
			{"no more credit", Failure(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."), model.CodeRateLimited, 429, 0},
		}
	case Messages:
		return []faultTest{
			{"402", Failure(402, "billing_error", "", "Your credit balance is too low."), model.CodeRateLimited, 402, 0},
			{"request_too_large", Failure(413, "request_too_large", "", "Request exceeds the maximum size"), model.CodeContextLength, 413, 0},
			{"message_stop without a stop reason", edited(withoutEvent("message_delta")), model.CodeNetwork, 0, 0},
		}
	case Gemini, Vertex:
		limited := RateLimited("")
		limited.Fault.RetryAfter = 34500 * time.Millisecond
		return []faultTest{
			{"RetryInfo", limited, model.CodeRateLimited, 429, 34500 * time.Millisecond},
			{"RetryInfo in the stream", edited(Insert(within, r.api.ErrorFrame(*limited.Fault))), model.CodeRateLimited, -1, 34500 * time.Millisecond},
		}
	}
	return append(r.chatFaults(), faultTest{"tool calls announced, none sent", Turn{Finish: "tool_calls"}, model.CodeInvalidResponse, 0, 0})
}

func (r *rig) chatFaults() []faultTest {
	tests := []faultTest{
		{"500 context", Failure(500, "exceed_context_size_error", "", "the request exceeds the available context size"), model.CodeContextLength, 500, 0},
		{"an error event about the context", edited(Insert(1, ErrorFrame("invalid_request_error", "context_length_exceeded", "too long"))), model.CodeContextLength, 0, 0},
		{"an event of type error", edited(Insert(3, "event: error\ndata: {\"message\":\"boom\"}\n\n")), model.CodeNetwork, 0, 0},
		{"early end before the usage", edited(CutFrames(-4)), model.CodeNetwork, 0, 0},
		{"[DONE] without a finish reason", edited(withoutFinish), model.CodeNetwork, 0, 0},
	}
	if r.api == Azure {
		tests = append(tests, faultTest{"a filtered prompt", PromptFiltered(), model.CodeInvalidRequest, 400, 0})
	}
	return tests
}

// withoutEvent drops the events of that type.
func withoutEvent(name string) Edit {
	return func(frames []string) []string {
		return without(frames, func(f string) bool { return strings.HasPrefix(f, "event: "+name+"\n") })
	}
}

// checkRetryAfter uses a date by the server's clock. checkFaults has the other
// forms.
func (r *rig) checkRetryAfter() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	turn := RateLimited(now.Add(90 * time.Second).Format(http.TimeFormat))
	turn.Header.Set("Date", now.Format(http.TimeFormat))
	r.start(turn)
	if e := r.mustFail(r.ctx, hello()); e.RetryAfter != 90*time.Second {
		r.Errorf("retry after %v, want 90s by the server's clock", e.RetryAfter)
	}
}

func (r *rig) checkNoServer() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatalf("%v", err)
	}
	address := ln.Addr().String()
	if err := ln.Close(); err != nil {
		r.Fatalf("%v", err)
	}
	r.provider = r.factory(r.tb, Endpoint{URL: "http://" + address + r.api.base(), Key: secret, Model: r.traits.model, Transport: &http.Transport{}})
	e := r.mustFail(r.ctx, hello())
	if e.Code != model.CodeNetwork || !strings.Contains(e.Error(), address) {
		r.Errorf("code %s, message %q; want %s and the address", e.Code, e, model.CodeNetwork)
	}
}

func (r *rig) checkIdle() {
	for _, frame := range []int{-1, 3} {
		turn := fullTurn()
		turn.Gate = HoldAt(frame, nil)
		r.use(New(r.api, turn), 20*time.Millisecond)
		if e := r.mustFail(r.ctx, hello()); e.Code != model.CodeTimeout {
			r.Errorf("held before frame %d: code %s, want %s: %v", frame, e.Code, model.CodeTimeout, e)
		}
	}
}
