package jetstream

import (
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// TestReplicas: who comes first says how many servers have each record. Who wants another
// number is refused and changes nothing; who wants none takes it as it is.
func TestReplicas(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	first := open(t, s)
	_, err := Open(t.Context(), first.nc, Options{Replicas: 3, TempDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "stream agent-sessions: it has 1 replicas") || !strings.Contains(err.Error(), "nats stream edit agent-sessions --replicas 3") {
		t.Errorf("another number: %v", err)
	}
	for _, name := range []string{"agent-sessions", "agent-inbox", "agent-work", "OBJ_agent-objects", "KV_agent-heads", "KV_agent-index", "KV_agent-values"} {
		stream, err := first.js.Stream(t.Context(), name)
		if err != nil || stream.CachedInfo().Config.Replicas != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.Context(), first.nc, Options{Replicas: 1, TempDir: t.TempDir()}); err != nil {
		t.Errorf("the same number: %v", err)
	}
}

// TestOpenTogether: processes that set all up at the same time do not hinder each other, also
// if one has other settings.
func TestOpenTogether(t *testing.T) {
	s, _ := serve(t, t.TempDir())
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "agent-index", Description: "of another version"}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Open(t.Context(), nc, Options{TempDir: t.TempDir()}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
