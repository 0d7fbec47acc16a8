package setup

import (
	"context"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/mcp"
)

// Trustable returns what trust in the directory would cover: files, and MCP servers
// by name. It returns an error if its settings cannot be read.
func (s *Setup) Trustable() (files []string, servers map[string]mcp.Server, err error) {
	state, err := trust.Open(s.Home).Check(s.Dir)
	if err != nil {
		return nil, nil, err
	}
	servers, _, err = config.ProjectServers(s.Dir)
	return state.Files, servers, err
}

// Trust trusts the directory with its files and MCP servers as they are now.
func (s *Setup) Trust(ctx context.Context) error {
	_, servers, err := s.Trustable()
	if err != nil {
		return err
	}
	store := trust.Open(s.Home)
	for name, server := range servers {
		if err := store.TrustServer(ctx, s.Dir, name, server.Hash()); err != nil {
			return err
		}
	}
	_, err = store.Trust(ctx, s.Dir, time.Now())
	return err
}
