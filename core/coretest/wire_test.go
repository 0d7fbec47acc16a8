package coretest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	var buf bytes.Buffer
	sent := []frame{
		{Kind: kindCancel, ID: "7"},
		{Kind: kindOutput, ID: "7", payload: []byte("two\nlines and \xff bytes")},
		{Kind: kindResult, ID: "8", payload: bytes.Repeat([]byte("x"), 1<<20)},
	}
	for _, f := range sent {
		if err := writeFrame(&buf, f); err != nil {
			t.Fatal(err)
		}
	}
	r := newFrameReader(&buf)
	for i, want := range sent {
		got, err := r.next()
		if err != nil || got.Kind != want.Kind || got.ID != want.ID || !bytes.Equal(got.payload, want.payload) {
			t.Errorf("frame %d came back as %q %q with %d bytes (error: %v)", i, got.Kind, got.ID, len(got.payload), err)
		}
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v, expected io.EOF", err)
	}
}

func TestBadFrames(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"no JSON":               {"hello\n", "is not a frame"},
		"JSON of another kind":  {"[1,2]\n", "is not a frame"},
		"no kind":               {"{}\n", `kind ""`},
		"negative size":         {`{"kind":"output","bytes":-1}` + "\n", "announces -1 bytes"},
		"huge size":             {`{"kind":"output","bytes":99999999999}` + "\n", "announces 99999999999 bytes"},
		"endless line":          {strings.Repeat("x", 3*maxLine), "longer than 4096 bytes"},
		"end within a line":     {`{"kind":"out`, "ends within a frame's line"},
		"end within a payload":  {`{"kind":"output","bytes":10}` + "\nabc", "ends within a payload of 10 bytes"},
		"end before a payload":  {`{"kind":"output","bytes":10}` + "\n", "ends within a payload of 10 bytes"},
		"garbage after payload": {`{"kind":"output","bytes":1}` + "\nabc\n", "is not a frame"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFrameReader(strings.NewReader(c.in))
			var err error
			for err == nil {
				_, err = r.next()
			}
			if errors.Is(err, io.EOF) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, expected one that says %q", err, c.want)
			}
		})
	}
}

func TestTooLargePayloadIsNotSent(t *testing.T) {
	if _, err := jsonFrame(kindResult, "1", strings.Repeat("x", maxPayload)); err == nil {
		t.Error("a payload over the limit was accepted")
	}
}

// FuzzFrames feeds any bytes to the reader: it must end with an error or EOF,
// and what it takes for a frame must survive being written again.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"kind":"output","id":"1","bytes":3}` + "\nabc" + `{"kind":"cancel","id":"1"}` + "\n"))
	f.Add([]byte(`{"kind":"result","bytes":-1}` + "\n"))
	f.Add([]byte("{\"kind\":\"\xff\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newFrameReader(bytes.NewReader(data))
		for {
			got, err := r.next()
			if err != nil {
				return
			}
			var buf bytes.Buffer
			if writeFrame(&buf, got) != nil {
				continue // escaping can make the line too long
			}
			again, err := newFrameReader(&buf).next()
			if err != nil || again.Kind != got.Kind || again.ID != got.ID || !bytes.Equal(again.payload, got.payload) {
				t.Fatalf("%+v came back as %+v (error: %v)", got, again, err)
			}
		}
	})
}

func TestTail(t *testing.T) {
	var w tail
	for _, s := range []string{strings.Repeat("a", 1000), "é", " the end\n"} {
		if n, err := io.WriteString(&w, s); n != len(s) || err != nil {
			t.Fatalf("Write returned %d, %v", n, err)
		}
	}
	if got := w.String(); len(got) > tailBytes || !strings.HasSuffix(got, "aé the end") {
		t.Errorf("tail is %q", got)
	}
}
