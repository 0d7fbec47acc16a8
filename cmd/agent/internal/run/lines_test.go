package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/agent"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/host/hosttest"
)

// protocolSchema returns the schema of the lines of a host and of the replies.
func protocolSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	opts := &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, reflect.TypeFor[time.Time](): {Type: "string", Format: "date-time"},
		reflect.TypeFor[[]byte](): {Type: "string", ContentEncoding: "base64"},
	}}
	of := func(typ reflect.Type) *jsonschema.Schema {
		s, err := jsonschema.ForType(typ, opts)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		withoutNull(s)
		return s
	}
	command, reply := of(reflect.TypeFor[Request]()), of(reflect.TypeFor[Reply]())
	for member, values := range map[string][]any{
		"type":  {"hello", "now", "open", "input", "continue", "answer", "cancel", "set", "compact", "rewind", "end", "detach", "close"},
		"when":  {"", "next", "steer", "keep"},
		"reach": {"", "model", "tools"},
	} {
		command.Properties[member].Enum = values
	}
	reply.Properties["type"] = &jsonschema.Schema{Const: jsonschema.Ptr[any]("reply")}
	reply.AdditionalProperties = nil // later versions may add some
	return &jsonschema.Schema{
		Schema: "https://json-schema.org/draft/2020-12/schema", Title: fmt.Sprintf("The host protocol of agent exec, version %d", Protocol),
		Description: "command is a line on stdin. A line on stdout is a reply or an event; events.schema.json describes those.",
		Defs:        map[string]*jsonschema.Schema{"command": command, "reply": reply},
		AnyOf:       []*jsonschema.Schema{{Ref: "#/$defs/command"}, {Ref: "#/$defs/reply"}},
	}
}

// withoutNull removes "null" from the types, which encoding never writes there.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	withoutNull(s.Items)
}

// TestProtocolSchema compares the published schema with the Go types.
func TestProtocolSchema(t *testing.T) {
	t.Parallel()
	data, err := json.MarshalIndent(protocolSchema(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	goldentest.Check(t, filepath.Join("..", "..", "..", "..", "docs", "host-protocol.schema.json"), append(data, '\n'))
}

func resolve(t *testing.T, s *jsonschema.Schema) *jsonschema.Resolved {
	t.Helper()
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lineDriver drives a session as a host does, by lines, and holds each against its schema.
type lineDriver struct {
	t               *testing.T
	lines           *lines
	mu              sync.Mutex
	out             bytes.Buffer
	command, answer *jsonschema.Resolved
	event           *jsonschema.Resolved
}

func (d *lineDriver) check(schema *jsonschema.Resolved, line []byte) {
	d.t.Helper()
	var value any
	if err := json.Unmarshal(line, &value); err != nil {
		d.t.Fatalf("%v: %s", err, line)
	}
	if err := schema.Validate(value); err != nil {
		d.t.Errorf("%v: %s", err, line)
	}
}

// ask sends a line and returns the reply.
func (d *lineDriver) ask(r Request) Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.ID = "x"
	line, err := json.Marshal(r)
	if err != nil {
		d.t.Fatal(err)
	}
	d.out.Reset()
	d.lines.handle(context.Background(), line)
	d.check(d.answer, d.out.Bytes())
	var reply Reply
	if err := json.Unmarshal(d.out.Bytes(), &reply); err != nil || reply.ID != "x" {
		d.t.Fatalf("reply %s: %v", d.out.Bytes(), err)
	}
	if reply.Error == nil || reply.Error.Code != host.CodeInvalid {
		d.check(d.command, line)
	}
	return reply
}

func (d *lineDriver) Do(_ context.Context, c host.Command) (string, error) {
	reply := d.ask(Request{Command: c})
	if reply.Error != nil {
		return "", reply.Error
	}
	return reply.Run, nil
}

func (d *lineDriver) Now() host.Now {
	return *d.ask(Request{Command: host.Command{Type: "now"}}).Now
}

func (d *lineDriver) Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return d.checked(d.lines.session.Events(ctx, after))
}

func (d *lineDriver) AllEvents(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return d.checked(d.lines.session.AllEvents(ctx, after))
}

// checked passes events on as lines.
func (d *lineDriver) checked(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			line, jerr := json.Marshal(e)
			if err != nil || jerr != nil {
				yield(e, err)
				return
			}
			d.check(d.event, line)
			var got event.Event
			if err := json.Unmarshal(line, &got); !yield(got, err) {
				return
			}
		}
	}
}

// drivenBy returns lines that drive an open session.
func drivenBy(streams *cmdutil.IO, h *host.Host, s *host.Session, out io.Writer) *lines {
	shared := &sharing{sessions: map[string]*driven{}}
	l := &lines{Task: &Task{IO: streams}, shared: shared, session: s, driven: &driven{host: h, session: s, drivers: map[*lines]bool{}}, out: json.NewEncoder(out)}
	shared.join(l.driven, l)
	return l
}

// TestLinesPassTheSuite drives sessions by lines of JSON.
func TestLinesPassTheSuite(t *testing.T) {
	schema := protocolSchema(t)
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "events.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var events jsonschema.Schema
	if err := json.Unmarshal(data, &events); err != nil {
		t.Fatal(err)
	}
	hosttest.Run(t, func(t *testing.T, p model.Provider, tools ...core.Tool) func() hosttest.Driver {
		h := host.New("", func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
			a, err := agent.Open(ctx, agent.Options{Dir: t.TempDir(), Tools: tools, Policy: hosttest.Policy{}})
			if err != nil {
				return host.Opened{}, err
			}
			s, err := a.NewSession(ctx, agent.SessionOptions{Provider: p, Asker: asker})
			return host.Opened{Session: s, Close: a.Close}, err
		})
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
		s, err := h.Open(t.Context(), host.Open{})
		if err != nil {
			t.Fatal(err)
		}
		return func() hosttest.Driver {
			d := &lineDriver{t: t, command: resolve(t, schema.Defs["command"].CloneSchemas()), answer: resolve(t, schema.Defs["reply"].CloneSchemas()), event: resolve(t, events.CloneSchemas())}
			d.lines = drivenBy(&cmdutil.IO{Err: os.Stderr}, h, s, &d.out)
			return d
		}
	})
}

// TestLinesThatAreNoCommands: each is answered, and none ends the session.
func TestLinesThatAreNoCommands(t *testing.T) {
	h := host.New("", func(ctx context.Context, _ host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: t.TempDir(), NoBuiltins: true, Policy: hosttest.Policy{}})
		if err != nil {
			return host.Opened{}, err
		}
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: coretest.Model(coretest.Say("Hello.")), Asker: asker})
		return host.Opened{Session: s, Close: a.Close}, err
	})
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	in := "\n{\n[]\n{\"type\":7}\n{\"type\":\"input\",\"colour\":1}\n{\"type\":\"now\",\"id\":\"a\"}\x00\n" +
		strings.Repeat("x", maxLine+1) + "\n{\"type\":\"now\",\"id\":\"half\"}"
	l := drivenBy(&cmdutil.IO{In: strings.NewReader(in), Err: os.Stderr}, h, s, &out)
	l.read(t.Context())
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	replies := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(replies) != 7 || strings.Count(out.String(), `"code":"invalid"`) != 6 || !strings.Contains(replies[5], "longer than 64 MiB") || !strings.Contains(replies[6], `"id":"half","now"`) {
		t.Errorf("%d replies: %s", len(replies), out.String())
	}
}

// broken is a stdout that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestClosedStdout: the session of a host that has gone is not aborted, but can be resumed
// where it was.
func TestClosedStdout(t *testing.T) {
	home, reached := t.TempDir(), make(chan struct{})
	h := host.New(home, func(ctx context.Context, o host.Open, asker core.Asker) (host.Opened, error) {
		a, err := agent.Open(ctx, agent.Options{Dir: t.TempDir(), Home: home, NoBuiltins: true, Policy: hosttest.Policy{}})
		if err != nil {
			return host.Opened{}, err
		}
		p := coretest.Model(coretest.Turn{Text: "never", Hook: func(*model.Request) { close(reached) }, Block: make(chan struct{})})
		s, err := a.NewSession(ctx, agent.SessionOptions{Provider: p, Asker: asker, Resume: o.ID})
		return host.Opened{Session: s, Close: a.Close}, err
	})
	s, err := h.Open(t.Context(), host.Open{})
	if err != nil {
		t.Fatal(err)
	}
	l := drivenBy(&cmdutil.IO{Err: os.Stderr}, h, s, broken{})
	if _, err := s.Do(t.Context(), host.Command{Type: "input", Content: []host.Part{{Type: "text", Text: "go"}}}); err != nil {
		t.Fatal(err)
	}
	<-reached
	l.write(Reply{Type: "reply"})
	for range s.Events(t.Context(), 0) { // until it is closed here
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := h.Open(t.Context(), host.Open{ID: s.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if state := again.Now().State; state != core.StateUnfinished {
		t.Errorf("the resumed session is %s", state)
	}
}
