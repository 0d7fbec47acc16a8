package credential

import (
	"net/url"
	"testing"
	"time"
)

// FuzzRead reads what the programs print.
func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"accessToken":"t","expires_on":1799999999}`, `{"accessToken":"t"}`, "ya29.a0\n", "Model management service is running on http://127.0.0.1:5273/openai/status.", "https://user:pw@host:1/x", "\xff", "{"} {
		f.Add(text)
	}
	now := time.Unix(1_700_000_000, 0)
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func([]byte, time.Time) (string, time.Time, error){azure, plain} {
			if value, until, err := read([]byte(text), now); err == nil && isToken(value) && until.IsZero() {
				t.Errorf("%q is never used again", text)
			}
		}
		if address := addressIn(text); address != "" {
			u, err := url.Parse(address)
			if err != nil || u.User != nil || u.Path != "/v1" {
				t.Errorf("%q leads to %q: %v", text, address, err)
			}
		}
	})
}
