package jetstream

import (
	"strings"
	"testing"
)

// TestRedact: no error shows a password.
func TestRedact(t *testing.T) {
	for servers, want := range map[string]string{
		"nats://h:4222":                        "nats://h:4222",
		"tls://me:p@ss@h:4222,nats://token@h2": "tls://h:4222,nats://h2",
		"me:secret@h":                          "h",
	} {
		if got := Redact(servers); got != want {
			t.Errorf("%s is shown as %s", servers, got)
		}
	}
	_, err := Connect(ConnectOptions{URL: "nats://me:secret@127.0.0.1:1"})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}
