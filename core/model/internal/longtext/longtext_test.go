package longtext_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/model/internal/longtext"
)

func TestText(t *testing.T) {
	for _, piece := range []string{"", "a", "päce", strings.Repeat("0123456789", 1000), strings.Repeat("x", 3<<20)} {
		var text longtext.Text
		var want strings.Builder
		for range 5 {
			text.Add(piece)
			want.WriteString(piece)
		}
		if text.String() != want.String() || text.Len() != want.Len() {
			t.Errorf("%d bytes, want %d", text.Len(), want.Len())
		}
	}
}
