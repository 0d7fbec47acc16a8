package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/mcp"
)

const serversKey = "mcp.servers"

// SetServer writes an MCP server into a settings file, in place of one of its
// name. All else in the file stays as it stands there.
func (t Target) SetServer(ctx context.Context, name string, s mcp.Server) error {
	text, err := encodeServer(name, s)
	if err != nil {
		return err
	}
	return t.update(ctx, func(doc []byte, _ *Settings) ([]byte, error) {
		return setMember(doc, []string{"mcp", "servers", name}, text), nil
	})
}

// RemoveServer removes an MCP server from a settings file and reports whether it
// stood there.
func (t Target) RemoveServer(ctx context.Context, name string) (removed bool, err error) {
	err = t.update(ctx, func(doc []byte, _ *Settings) ([]byte, error) {
		doc, removed = removeMember(doc, []string{"mcp", "servers", name})
		return doc, nil
	})
	return removed, err
}

// EnableServer has an MCP server left alone, or not any more. It reports whether
// that is new.
func (t Target) EnableServer(ctx context.Context, name string, on bool) (changed bool, err error) {
	err = t.update(ctx, func(doc []byte, in *Settings) ([]byte, error) {
		list := in.MCP.Disabled
		switch at := slices.Index(list, name); {
		case on && at >= 0:
			list = slices.Delete(slices.Clone(list), at, at+1)
		case !on && at < 0:
			list = append(slices.Clone(list), name)
		default:
			return doc, nil
		}
		changed = true
		if len(list) == 0 {
			doc, _ = removeMember(doc, []string{"mcp", "disabled"})
			return doc, nil
		}
		text, err := encode(list)
		return setMember(doc, []string{"mcp", "disabled"}, text), err
	})
	return changed, err
}

// encodeServer checks a server and returns its JSON.
func encodeServer(name string, s mcp.Server) (string, error) {
	if err := errors.Join(mcp.CheckName(name), s.Check()); err != nil {
		return "", &Error{Key: serversKey, Err: err, CommandLine: true}
	}
	return encode(s)
}

// ProjectServers reads the MCP servers that a directory names in its .mcp.json.
// What is wrong there is an error beside the servers that are right; none is
// there without the file.
func ProjectServers(dir string) (servers map[string]mcp.Server, warnings []string, err error) {
	path := filepath.Join(dir, mcp.ProjectFile)
	data, err := privatefile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return mcp.ParseFile(path, data)
}

// SetProjectServer writes an MCP server into a directory's .mcp.json.
func SetProjectServer(ctx context.Context, home, dir, name string, s mcp.Server) error {
	text, err := encodeServer(name, s)
	if err != nil {
		return err
	}
	_, err = updateProject(ctx, home, dir, func(doc []byte) ([]byte, bool) {
		return setMember(doc, []string{"mcpServers", name}, text), true
	})
	return err
}

// RemoveProjectServer removes an MCP server from a directory's .mcp.json and
// reports whether it stood there.
func RemoveProjectServer(ctx context.Context, home, dir, name string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, mcp.ProjectFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return updateProject(ctx, home, dir, func(doc []byte) ([]byte, bool) {
		doc, removed := removeMember(doc, []string{"mcpServers", name})
		if _, ok := removeMember(doc, []string{"mcpServers"}); !ok { // the last server took it along, but the file must have it
			doc = setMember(doc, []string{"mcpServers"}, "{}")
		}
		return doc, removed
	})
}

// updateProject changes the text of a .mcp.json. One that is no JSON object with
// servers is left as it is.
func updateProject(ctx context.Context, home, dir string, change func(doc []byte) ([]byte, bool)) (changed bool, err error) {
	path, fresh := filepath.Join(dir, mcp.ProjectFile), false
	err = privatefile.Update(ctx, path, filepath.Join(home, "settings.json.lock"), func(old []byte) ([]byte, error) {
		doc := bytes.TrimPrefix(old, []byte("\ufeff"))
		if fresh = old == nil; fresh {
			doc = []byte("{\n  \"mcpServers\": {}\n}\n")
		} else if servers, _, err := mcp.ParseFile(path, old); err != nil && servers == nil {
			return nil, err
		}
		var next []byte
		next, changed = change(doc)
		return next, nil
	})
	if err != nil {
		return false, &Error{Err: err}
	}
	if fresh { // it is for others, too
		err = os.Chmod(path, 0o644)
	}
	return changed, err
}
