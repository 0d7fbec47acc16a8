package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\r\t\x00\x1f\x7f", "é\u2028<&>", "\xff\xc3", "\xe2\x82"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(AppendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\xff"); strings.ReplaceAll(got, "\uFFFD", "") != strings.ReplaceAll(strings.ReplaceAll(want, "\xff", ""), "\uFFFD", "") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
