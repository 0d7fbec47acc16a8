package trust_test

import (
	"maps"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
)

func TestServers(t *testing.T) {
	s, ctx := trust.Open(t.TempDir()), t.Context()
	if got, err := s.Servers("/p"); err != nil || len(got) != 0 {
		t.Errorf("Servers = %v, %v", got, err)
	}
	for name, hash := range map[string]string{"a": "1", "b": "2"} {
		if err := s.TrustServer(ctx, "/p", name, hash); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.TrustServer(ctx, "/p", "a", "3"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Servers("/p"); err != nil || !maps.Equal(got, map[string]string{"a": "3", "b": "2"}) {
		t.Errorf("Servers = %v, %v", got, err)
	}
	if found, err := s.RevokeServer(ctx, "/p", "none"); found || err != nil {
		t.Errorf("RevokeServer = %v, %v", found, err)
	}
	if found, err := s.RevokeServer(ctx, "/p", "a"); !found || err != nil {
		t.Errorf("RevokeServer = %v, %v", found, err)
	}
	if found, err := s.RevokeServer(ctx, "/p", ""); !found || err != nil {
		t.Errorf("RevokeServer of all = %v, %v", found, err)
	}
	if got, err := s.Servers("/p"); err != nil || len(got) != 0 {
		t.Errorf("Servers = %v, %v", got, err)
	}
	if _, err := s.Trust(ctx, t.TempDir(), time.Now()); err != nil {
		t.Errorf("the store is of no use any more: %v", err)
	}
}
