package wire

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzEvents feeds a stream to the reader at once and byte by byte.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", "data:{}\r\n\r\n: ping\n\nevent: error\ndata: x\n\n",
		"data: {\ndata: }\n\n", "data: {}\ndata: {}\n", "data: [DO", "id: 1\nretry: 2\n\n\n\n", strings.Repeat("data: long\n", 5000),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		read := func(r io.Reader) (events []string) {
			e := newEventReader(r)
			for {
				data, err := e.next()
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatalf("error %v", err)
					}
					return events
				}
				if len(data) == 0 {
					t.Fatal("an event without data")
				}
				events = append(events, e.kind+" "+string(data))
			}
		}
		whole := read(strings.NewReader(stream))
		if split := read(iotest.OneByteReader(strings.NewReader(stream))); !reflect.DeepEqual(whole, split) {
			t.Errorf("%q at once, %q byte by byte", whole, split)
		}
	})
}
