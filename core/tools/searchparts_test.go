package tools

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestSearchParts: a file that is searched in parts has the results of one that is
// searched as a whole, whatever it contains.
func TestSearchParts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"needle", "a", " ", "\n", "\n", "\r\n", "я", "世界", strings.Repeat("long ", 30), "\uFEFF"}
	for i := range 2000 {
		var text strings.Builder
		for range random.IntN(120) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		file := text.String()
		switch i % 10 {
		case 0:
			file += "caf\xe9 needle\n"
		case 1:
			file = "\xff\xfe" + file
		case 2:
			file += "\x00\nneedle"
		}
		for _, q := range []grepArgs{{Pattern: "needle"}, {Pattern: "^.*a$", MaxResults: 3}, {Pattern: "needle|я", OutputMode: modeCount}, {Pattern: "a", OutputMode: modeFiles}} {
			query, err := newGrepQuery(q)
			if err != nil {
				t.Fatal(err)
			}
			whole := newFileSearcher(query, maxGrepFile)
			want, wantErr := whole.findIn(t.Context(), []byte(file))
			parts := newFileSearcher(query, maxGrepFile)
			parts.part = 16 + random.IntN(200)
			got, err := parts.searchParts(t.Context(), bytes.NewReader([]byte(file)), len(file))
			if errors.Is(err, errWhole) && (!validUTF8([]byte(file)) || strings.Contains(file, "\x00")) {
				continue
			}
			if !errors.Is(err, wantErr) || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s in %q: %+v, %v, want %+v, %v", q.Pattern, file, got, err, want, wantErr)
			}
		}
	}
}
