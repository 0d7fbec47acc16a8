package trust

import (
	"context"
	"maps"
)

// Servers returns the trusted MCP servers of a directory: by name, the hash of
// the command, arguments and environment.
func (s *Store) Servers(dir string) (map[string]string, error) {
	r, err := s.read()
	if err != nil {
		return nil, err
	}
	return r.Servers[dir], nil
}

// TrustServer records that the user trusts an MCP server of a directory, in the
// form that has this hash.
func (s *Store) TrustServer(ctx context.Context, dir, name, hash string) error {
	return s.update(ctx, func(r *record) error {
		if r.Servers == nil {
			r.Servers = map[string]map[string]string{}
		}
		servers := maps.Clone(r.Servers[dir])
		if servers == nil {
			servers = map[string]string{}
		}
		servers[name] = hash
		r.Servers[dir] = servers
		return nil
	})
}

// RevokeServer revokes trust in an MCP server of a directory, in all of them for
// an empty name, and reports whether there was any.
func (s *Store) RevokeServer(ctx context.Context, dir, name string) (bool, error) {
	found := false
	err := s.update(ctx, func(r *record) error {
		servers := maps.Clone(r.Servers[dir])
		_, found = servers[name]
		delete(servers, name)
		if name == "" {
			found = len(servers) > 0
			servers = nil
		}
		if len(servers) == 0 {
			delete(r.Servers, dir)
		} else {
			r.Servers[dir] = servers
		}
		return nil
	})
	return found, err
}
