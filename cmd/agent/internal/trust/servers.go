package trust

import (
	"context"
	"maps"
)

// Servers are the MCP servers of a directory that the person trusts: the hash
// of each, which stands for its command, arguments and environment, by its
// name.
func (s *Store) Servers(dir string) (map[string]string, error) {
	r, err := s.read()
	if err != nil {
		return nil, err
	}
	return r.Servers[dir], nil
}

// TrustServer records that the person trusts an MCP server of a directory, as
// its hash says that it is now.
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

// RevokeServer forgets an MCP server of a directory, all of them for an empty
// name, and reports whether there was something to forget.
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
