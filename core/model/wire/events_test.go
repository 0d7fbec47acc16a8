package wire

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestEvents checks what is accepted beyond the standard, and what is not.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream string
		want   []string
	}{
		"blank lines missing":     {"data: {\"a\":1}\ndata: {\"a\":2}\ndata: [DONE]\n", []string{` {"a":1}`, ` {"a":2}`, " [DONE]"}},
		"last line end missing":   {"event: x\ndata: {}", []string{"x {}"}},
		"JSON over several lines": {"data: {\ndata: }\n\n", []string{" {\n}"}},
		"cut off":                 {"data: {}\n\ndata: {\"a\"", []string{" {}"}},
		"end mark cut off":        {"data: [DO", nil},
		"events without data":     {"event: ping\n\ndata:\n\n: comment\n\ndata: 1\n\n", []string{" 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			events := newEvents(strings.NewReader(tt.stream))
			for {
				ev, err := nextEvent(events)
				if err != nil {
					if !errors.Is(err, io.EOF) || !slices.Equal(got, tt.want) {
						t.Errorf("%q, error %v; want %q, EOF", got, err, tt.want)
					}
					return
				}
				got = append(got, ev.Type+" "+string(ev.Data))
			}
		})
	}
}
