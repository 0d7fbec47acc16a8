package event

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/internal/quickjson"
	"github.com/seed-009c0928/agent/core/model"
)

// full is an envelope with all fields set.
func full(body Body) Event {
	return Event{
		V: Version, Seq: 7, ID: "s-7", Time: time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC), Session: "s", Parent: "p",
		Iteration: 2, Tokens: 345, Trace: "0af7", Span: "b7ad", Call: "c1", Required: true, Body: body,
	}
}

// fill sets every field in v to a non-zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(`{"k":[1,"<&>"]}`))
		return
	case model.Parts:
		v.Set(reflect.ValueOf(model.Parts{
			model.Text{Text: "text"},
			model.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"type":"hologram","n":1}`)},
		}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("<text> & \"more\"")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(42)
	case reflect.Uint64:
		v.SetUint(42)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(t, elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("fill does not know %s", v.Type())
	}
}

// zeroBodies returns a body of every type.
func zeroBodies(t *testing.T) []Body {
	t.Helper()
	var bodies []Body
	for _, b := range bodyTypes {
		body, err := b.decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// filled returns a body of every type, all their fields set.
func filled(t *testing.T) []Body {
	t.Helper()
	bodies := zeroBodies(t)
	for i, b := range bodies {
		v := reflect.New(reflect.TypeOf(b)).Elem()
		fill(t, v)
		bodies[i] = v.Interface().(Body)
	}
	return bodies
}

func TestEveryTypeRoundTrips(t *testing.T) {
	for _, body := range filled(t) {
		t.Run(body.Type(), func(t *testing.T) {
			want := full(body)
			data, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var got Event
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			// RawMessages may come back with other escapes, so the events are
			// compared as Go values without them, and once more as JSON.
			again, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again, data) {
				t.Errorf("second encoding differs:\n got %s\nwant %s", again, data)
			}
			if reflect.TypeOf(got.Body) != reflect.TypeOf(body) {
				t.Errorf("came back as %T", got.Body)
			}
			unescape(reflect.ValueOf(&got.Body).Elem())
			if !reflect.DeepEqual(got, want) {
				t.Errorf("changed by the round trip:\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

// unescape replaces v, a body, by one whose raw JSON is without the HTML escapes
// of encoding/json.
func unescape(v reflect.Value) {
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	cp := reflect.New(v.Elem().Type()).Elem()
	cp.Set(v.Elem())
	for i := range cp.NumField() {
		switch raw := cp.Field(i).Interface().(type) {
		case json.RawMessage:
			cp.Field(i).SetBytes([]byte(plain.Replace(string(raw))))
		case map[string]json.RawMessage:
			for k, r := range raw {
				raw[k] = json.RawMessage(plain.Replace(string(r)))
			}
		case []Question:
			for j := range raw {
				raw[j].Schema = json.RawMessage(plain.Replace(string(raw[j].Schema)))
			}
		}
	}
	v.Set(cp)
}

func TestZeroBodiesRoundTrip(t *testing.T) {
	for _, body := range zeroBodies(t) {
		data, err := json.Marshal(Event{V: Version, Seq: 1, Session: "s", Body: body})
		if err != nil {
			t.Errorf("%s: %v", body.Type(), err)
			continue
		}
		var got Event
		if err := json.Unmarshal(data, &got); err != nil || reflect.TypeOf(got.Body) != reflect.TypeOf(body) {
			t.Errorf("%s came back as %T, %v\n%s", body.Type(), got.Body, err, data)
		}
	}
}

// TestGolden checks the JSON form, on which files and other programs rely. A
// difference breaks the contract: think before you run with -update.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	for _, body := range filled(t) {
		data, err := json.Marshal(full(body))
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(data, '\n'))
	}
	goldentest.Check(t, "testdata/events.jsonl", got.Bytes())
}

// TestEveryTypeIsListed compares the methods in the source with bodyTypes.
func TestEveryTypeIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, 0) // has the methods of all
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Recv != nil && fn.Name.Name == "Type" {
			declared = append(declared, fn.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	listed, kinds := []string{"Unknown"}, map[string]bool{}
	for _, body := range zeroBodies(t) {
		listed = append(listed, reflect.TypeOf(body).Name())
		if kinds[body.Type()] {
			t.Errorf("two types are named %q", body.Type())
		}
		kinds[body.Type()] = true
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if !slices.Equal(declared, listed) {
		t.Errorf("types with a Type method:\n%v\nbodyTypes and Unknown:\n%v", declared, listed)
	}
}

// A member of a body that has an envelope's name would overwrite it.
func TestBodiesLeaveTheEnvelopeAlone(t *testing.T) {
	taken := map[string]bool{"type": true}
	for _, name := range jsonNames(reflect.TypeFor[Event]()) {
		taken[strings.ToLower(name)] = true
	}
	for _, body := range zeroBodies(t) {
		for _, name := range jsonNames(reflect.TypeOf(body)) {
			if taken[strings.ToLower(name)] {
				t.Errorf("%s has a member %q, which is the envelope's", body.Type(), name)
			}
		}
	}
}

func jsonNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// The envelope must be encoded as its struct tags say.
func TestEnvelopeIsWhatItsTagsSay(t *testing.T) {
	type envelope Event
	weird := full(nil)
	weird.ID, weird.Session, weird.Parent = "a\"\\b", "<&>\u2028", "é\x00\x7f\xff"
	weird.Time = time.Date(1999, 12, 31, 23, 59, 59, 1, time.FixedZone("x", -5*3600))
	for name, e := range map[string]Event{
		"full": full(nil), "weird": weird, "zero": {ID: "x"}, "negative": {V: -1, ID: "x", Iteration: -2, Tokens: -3},
	} {
		want, err := json.Marshal(envelope(e))
		if err != nil {
			t.Fatal(err)
		}
		e.Body = MessageStart{}
		got, err := e.appendEnvelope(nil)
		if err != nil {
			t.Fatal(err)
		}
		wantText := strings.TrimSuffix(string(want), "}") + `,"type":"message_start"`
		if string(got) != wantText {
			t.Errorf("%s:\n got %s\nwant %s", name, got, wantText)
		}
	}
}

func TestEnvelopeID(t *testing.T) {
	data, err := json.Marshal(Event{V: 1, Seq: 12, Session: "abc", Body: Idle{State: "idle", Stop: "end"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"seq":12,"id":"abc-12","time":"0001-01-01T00:00:00Z","session":"abc","type":"idle","state":"idle","stop":"end"}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestUnknownTypesKeepTheirBytes(t *testing.T) {
	for _, in := range []string{
		`{"v":1,"seq":3,"id":"s-3","time":"2026-01-02T03:04:05Z","session":"s","required":true,"type":"hologram","z":1e2,"a":[{"b":null}]}`,
		`{ "type" : "hologram" , "v" : 1, "session": "s", "html": "<&>", "seq": 3, "big": 12345678901234567890 }`,
		`{"v":2,"seq":3,"session":"s","type":"message_delta","text":{"from":"the future"}}`,
	} {
		var e Event
		if err := json.Unmarshal([]byte(in), &e); err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		if _, ok := e.Body.(Unknown); !ok || e.Seq != 3 || e.Session != "s" || e.IsDelta() {
			t.Errorf("read as %+v", e)
		}
		out, err := e.MarshalJSON()
		if err != nil || string(out) != in {
			t.Errorf("got  %s, %v\nwant %s", out, err, in)
		}
	}
}

func TestMarshalErrors(t *testing.T) {
	for want, e := range map[string]Event{
		"event 4 has no body":      {Seq: 4},
		`unknown type "x"`:         {Seq: 4, Body: Unknown{Kind: "x"}},
		"event message_start: ":    {Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), Body: MessageStart{}},
		"event user: ":             {Body: User{Content: model.Parts{nil}}},
		"event tool_result: json:": {Body: ToolResult{Structured: json.RawMessage("{")}},
	} {
		if out, err := e.MarshalJSON(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %s, %v; want an error with %q", out, err, want)
		}
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for in, want := range map[string]string{
		`[]`:                                   "event: ",
		`null`:                                 `"v" or "type" is missing`,
		`{"type":"idle"}`:                      `"v" or "type" is missing`,
		`{"v":1}`:                              `"v" or "type" is missing`,
		`{"v":-1,"type":"idle"}`:               `"v" or "type" is missing`,
		`{"v":1,"seq":-1,"type":"idle"}`:       "event: ",
		`{"v":1,"type":"idle","state":7}`:      "event idle: ",
		`{"v":1,"type":"user","content":[{}]}`: `message part 0: missing "type"`,
		`{"v":1,"type":"idle","time":"yesterday"}`: "event: ",
	} {
		var e Event
		if err := json.Unmarshal([]byte(in), &e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", in, err, want)
		}
	}
}

func TestOutputOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]*Output{"short": {Text: "short"}, "from the file": {Path: path}} {
		r, err := o.Open()
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if _, err := got.ReadFrom(r); err != nil || got.String() != want {
			t.Errorf("got %q, %v; want %q", got.String(), err, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEnvelopeIsReadAsItIsDecoded: the fast path returns the same as the general
// one, accepts every line that this package writes, and rejects others.
func TestEnvelopeIsReadAsItIsDecoded(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile(filepath.Join("testdata", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	sparse, err := json.Marshal(Event{V: 1, Seq: 1, Time: time.Unix(1, 5).In(time.FixedZone("", 3600)), Body: User{}})
	if err != nil {
		t.Fatal(err)
	}
	lines := append(slices.Collect(bytes.Lines(golden)), sparse)
	for _, line := range lines {
		line = bytes.TrimSpace(line)
		want, kind, err := decodeEnvelope(line)
		if err != nil {
			t.Fatal(err)
		}
		r := quickjson.New(line)
		got, gotKind, ok := readEnvelope(&r)
		if strings.HasPrefix(string(line), `{"v":1,"seq":`) != ok {
			t.Errorf("taken: %v: %s", ok, line)
		}
		if !ok {
			continue
		}
		if members := object(r.Rest()); !reflect.DeepEqual(got, want) || string(gotKind) != kind || !json.Valid(members) {
			t.Errorf("%s\nreads  %+v %q %s\nwanted %+v %q", line, got, gotKind, members, want, kind)
		}
	}
	for _, line := range []string{
		``, `{`, `{"v":1`, `{"v":01,"seq":1`, `{"v":-1,"seq":1`, `{"v":1,"seq":1e3`, `{"v":1, "seq":1`,
		`{"v":1,"seq":1,"id":"a\u0041","time":"2026-03-04T05:06:07Z","session":"s","type":"idle"}`,
		`{"v":1,"seq":1,"id":"a","time":"noon","session":"s","type":"idle"}`,
		`{"v":1,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","required":false,"type":"idle"}`,
		`{"v":1,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"hologram","required":true}`,
		`{"v":1,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"idle"`,
		`{"v":1,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"idle"x`,
		`{"v":1,"seq":99999999999999999999,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"idle"}`,
	} {
		r := quickjson.New([]byte(line))
		if e, kind, ok := readEnvelope(&r); ok {
			if _, ok := quickBody(kind, r); ok || json.Valid(object(r.Rest())) && !misplaced(r.Rest()) {
				t.Errorf("%s is read as %+v", line, e)
			}
		}
	}
	for _, line := range []string{
		`{"v":1,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"idle","state":}`,
		`{"v":1,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"hologram",}`,
		`{"v":2,"seq":1,"id":"a","time":"2026-03-04T05:06:07Z","session":"s","type":"idle","x":}`,
	} {
		var e Event
		if err := e.UnmarshalJSON([]byte(line)); err == nil {
			t.Errorf("%s is read as %+v", line, e)
		}
	}
}

// FuzzUnmarshal: what can be read can be written, and reads back the same.
func FuzzUnmarshal(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "events.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(golden) {
		f.Add(bytes.TrimSpace(line))
	}
	f.Add([]byte(`{"v":9,"type":"hologram","x":1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var first, second Event
		if json.Unmarshal(in, &first) != nil {
			return
		}
		once, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("read, but not written: %v", err)
		}
		if err := json.Unmarshal(once, &second); err != nil {
			t.Fatalf("written, but not read: %v\n%s", err, once)
		}
		twice, err := json.Marshal(second)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
	})
}

func BenchmarkMarshalDelta(b *testing.B) {
	e := full(MessageDelta{Text: "word "})
	e.ID, e.Call = "", ""
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalToolResult(b *testing.B) {
	e := full(ToolResult{Name: "shell", Content: model.TextParts(strings.Repeat("a line of output\n", 1000))})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	data, err := json.Marshal(full(MessageDelta{Text: "word "}))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var e Event
		if err := json.Unmarshal(data, &e); err != nil {
			b.Fatal(err)
		}
	}
}
