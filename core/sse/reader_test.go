package sse

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// event is an event with what the reader knows after it.
type event struct{ kind, data, id string }

// readAll reads a stream; incomplete reports whether it ended within an event,
// which is left out as the standard has it.
func readAll(t *testing.T, r *Reader) (events []event, incomplete bool) {
	t.Helper()
	for {
		ev, err := r.Next()
		switch {
		case err == nil:
			events = append(events, event{ev.Type, string(ev.Data), r.LastEventID})
		case errors.Is(err, ErrIncomplete):
			incomplete = true
		case errors.Is(err, io.EOF):
			return events, incomplete
		default:
			t.Fatalf("error %v", err)
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream     string
		want       []event
		incomplete bool
	}{
		// The examples of the standard.
		"two lines of data":        {stream: "data: YHOO\ndata: +2\ndata: 10\n\n", want: []event{{data: "YHOO\n+2\n10"}}},
		"ids and a comment":        {stream: ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", want: []event{{data: "first event", id: "1"}, {data: "second event"}, {data: " third event"}}},
		"empty data":               {stream: "data\n\ndata\ndata\n\ndata:", want: []event{{}, {data: "\n"}}, incomplete: true},
		"with and without a space": {stream: "data:test\n\ndata: test\n\n", want: []event{{data: "test"}, {data: "test"}}},

		"CR":                       {stream: "data: a\rdata: b\r\revent: x\rdata: c\r\r", want: []event{{data: "a\nb"}, {kind: "x", data: "c"}}},
		"CRLF":                     {stream: "data: a\r\ndata: b\r\n\r\n", want: []event{{data: "a\nb"}}},
		"mixed line ends":          {stream: "data: a\r\n\rdata: b\n\r\ndata: c\r\n\n", want: []event{{data: "a"}, {data: "b"}, {data: "c"}}},
		"byte order mark":          {stream: "\ufeffdata: a\n\n", want: []event{{data: "a"}}},
		"only one byte order mark": {stream: "\ufeff\ufeffdata: a\n\ndata: b\n\n", want: []event{{data: "b"}}},
		"mark on a later line":     {stream: "\n\ufeffdata: a\n\ndata: b\n\n", want: []event{{data: "b"}}},

		"type":                    {stream: "event: a\nevent: b\ndata: 1\n\ndata: 2\n\n", want: []event{{kind: "b", data: "1"}, {data: "2"}}},
		"type without data":       {stream: "event: a\n\ndata: 1\n\n", want: []event{{data: "1"}}},
		"id without data":         {stream: "id: 7\n\ndata: 1\n\n", want: []event{{data: "1", id: "7"}}},
		"id stays":                {stream: "id: 7\ndata: 1\n\ndata: 2\n\n", want: []event{{data: "1", id: "7"}, {data: "2", id: "7"}}},
		"id with NUL":             {stream: "id: 7\ndata: 1\n\nid: a\x00b\ndata: 2\n\n", want: []event{{data: "1", id: "7"}, {data: "2", id: "7"}}},
		"unknown fields":          {stream: "foo: 1\nDATA: 2\n data: 3\n:data: 4\ndata: 5\n\n", want: []event{{data: "5"}}},
		"colons in the value":     {stream: "data: a: b: c\n\n", want: []event{{data: "a: b: c"}}},
		"cut before a blank line": {stream: "data: 1\n\nid: 3\ndata: 2\n", want: []event{{data: "1"}}, incomplete: true},
		"cut within a line":       {stream: "data: 1\n\ndata: 2", want: []event{{data: "1"}}, incomplete: true},
		"nothing":                 {stream: ""},
		"comments only":           {stream: ":\n: ping\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, r := range map[string]io.Reader{"at once": strings.NewReader(tt.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.stream))} {
				got, incomplete := readAll(t, NewReader(r, 1<<10))
				if !reflect.DeepEqual(got, tt.want) || incomplete != tt.incomplete {
					t.Errorf("%s: %q, incomplete %v; want %q, %v", how, got, incomplete, tt.want, tt.incomplete)
				}
			}
		})
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"0": 0, "1500": 1500 * time.Millisecond, "-1": time.Hour, "1s": time.Hour, "": time.Hour, "99999999999": time.Hour} {
		r := NewReader(strings.NewReader("retry: "+value+"\n"), 1<<10)
		r.Retry = time.Hour
		if _, err := r.Next(); !errors.Is(err, io.EOF) || r.Retry != want {
			t.Errorf("retry %q: %v, error %v; want %v", value, r.Retry, err, want)
		}
	}
}

// TestIncompleteEvent checks that the last event is returned, and its ID is not.
func TestIncompleteEvent(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader("id: 2\nevent: x\ndata: a\ndata: b"), 1<<10)
	r.LastEventID = "1"
	ev, err := r.Next()
	if !errors.Is(err, ErrIncomplete) || ev.Type != "x" || string(ev.Data) != "a\nb" || r.LastEventID != "1" {
		t.Errorf("event %q %q, error %v, last ID %q", ev.Type, ev.Data, err, r.LastEventID)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("then error %v, want EOF", err)
	}
}

// TestResumed checks that the ID of an earlier stream lasts until a new one.
func TestResumed(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader("data: 1\n\nid: 8\ndata: 2\n\n"), 1<<10)
	r.LastEventID = "7"
	if got, _ := readAll(t, r); !reflect.DeepEqual(got, []event{{data: "1", id: "7"}, {data: "2", id: "8"}}) {
		t.Errorf("events %q", got)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	r := NewReader(strings.NewReader("event: x\ndata: {\ndata: }\ndata: {}\ndata: {}\n\ndata: {}\n\n"), 1<<10)
	r.Complete = func(data []byte) bool { return strings.HasSuffix(string(data), "}") }
	got, _ := readAll(t, r)
	if want := []event{{kind: "x", data: "{\n}"}, {data: "{}"}, {data: "{}"}, {data: "{}"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	const limit = 100 << 10 // more than the buffer
	fits := strings.Repeat("x", limit-len("data:"))
	for name, tt := range map[string]struct {
		stream string
		want   error
	}{
		"longest line":        {"data:" + fits + "\n\n", nil},
		"line too long":       {"data:x" + fits + "\n\n", ErrTooLong},
		"comment without end": {":" + strings.Repeat("x", 2*limit), ErrTooLong},
		"event too long":      {strings.Repeat("data: xxxxxxxx\n", limit/9+1) + "\n", ErrTooLong},
		"many events":         {strings.Repeat("data:"+fits[:limit/2]+"\n\n", 4), io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := NewReader(strings.NewReader(tt.stream), limit)
			_, err := r.Next()
			for range 4 {
				if err == nil && errors.Is(tt.want, io.EOF) {
					_, err = r.Next()
				}
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestNoWait checks that an event is returned before anything follows its last
// line end, even if that is a CR.
func TestNoWait(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r", "\r\n"} {
		in, out := io.Pipe()
		go func() { _, _ = out.Write([]byte("data: 1" + end + end)) }() // and nothing more
		if ev, err := NewReader(in, 1<<10).Next(); err != nil || string(ev.Data) != "1" {
			t.Errorf("%q: event %q, error %v", end, ev.Data, err)
		}
		in.Close()
	}
}

func TestReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(broken)), 1<<10)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if ev, err := r.Next(); !errors.Is(err, broken) || ev.Data != nil {
		t.Errorf("event %q, error %v", ev.Data, err)
	}
}

// FuzzReader compares the reader, given the stream at once and byte by byte,
// with the standard's algorithm on the whole text.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", "data:{}\r\n\r\n: ping\n\nevent: error\rdata: x\r\r", "\ufeffid: 1\nretry: 2\n\n\n\ndata",
		"data: {\ndata: }\n\n", "id: \x00\ndata\n\n", "retry: +1\nretry: 1_0\n", strings.Repeat("data: long\n", 5000) + "\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		want, retry := reference(stream)
		for how, src := range map[string]io.Reader{"at once": strings.NewReader(stream), "byte by byte": iotest.OneByteReader(strings.NewReader(stream))} {
			r := NewReader(src, 1<<30)
			if got, _ := readAll(t, r); !reflect.DeepEqual(got, want) || r.Retry != retry {
				t.Errorf("%s: %q, retry %v; want %q, %v", how, got, r.Retry, want, retry)
			}
		}
	})
}

// reference is section 9.2.6 of the standard, step by step.
func reference(stream string) (events []event, retry time.Duration) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data, kind, id string
	for i, line := range lines {
		if line == "" && i < len(lines)-1 {
			if data != "" {
				events = append(events, event{kind, strings.TrimSuffix(data, "\n"), id})
			}
			data, kind = "", ""
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "event":
			kind = value
		case name == "data":
			data += value + "\n"
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		case name == "retry":
			if ms, err := strconv.ParseInt(value, 10, 64); err == nil && strings.Trim(value, "0123456789") == "" && ms < 1<<31 {
				retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return events, retry
}

func ExampleReader() {
	r := NewReader(strings.NewReader("event: greeting\nid: 1\ndata: hello\n\n"), 1<<20)
	for {
		ev, err := r.Next()
		if err != nil { // io.EOF at the end of the stream
			break
		}
		fmt.Println(r.LastEventID, ev.Type, string(ev.Data))
	}
	// Output: 1 greeting hello
}
