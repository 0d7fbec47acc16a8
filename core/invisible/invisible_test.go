package invisible_test

import (
	"testing"

	"github.com/seed-009c0928/agent/core/invisible"
)

func TestStrip(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä 日本 𝄞\n\tx":                    "plain ä 日本 𝄞\n\tx",
		"a\x00b\x1b[1mc\r\x7f\u0085":           "ab[1mc",
		"\u202eabc\u2066\u061c\u200e":          "abc",
		"z\u200bw\u2060\ufeff\u00ad\u180e":     "zw",
		"tag \U000e0041\U000e0100\ufe00":       "tag ",
		"\u2028\u2029\u3164\u115f\uffa0\u034f": "",
		"नमस्\u200dते 👩\u200d💻 ❤\ufe0f \u0600": "नमस्\u200dते 👩\u200d💻 ❤\ufe0f \u0600",
	} {
		if got := invisible.Strip(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
