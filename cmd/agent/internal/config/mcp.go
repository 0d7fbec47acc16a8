package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/mcp"
)

const serversKey = "mcp.servers"

// SetServer writes an MCP server into a settings file, replacing one with the
// same name. The rest of the file is unchanged.
func (t Target) SetServer(ctx context.Context, name string, s mcp.Server) error {
	text, err := encodeServer(name, s)
	if err != nil {
		return err
	}
	return t.update(ctx, func(doc *jsonpos.Document, _ *Settings) ([]byte, error) {
		return doc.Set([]string{"mcp", "servers", name}, text), nil
	})
}

// RemoveServer removes an MCP server from a settings file and reports whether it
// was there.
func (t Target) RemoveServer(ctx context.Context, name string) (removed bool, err error) {
	err = t.update(ctx, func(doc *jsonpos.Document, _ *Settings) (text []byte, err error) {
		text, removed = doc.Remove("mcp", "servers", name)
		return text, nil
	})
	return removed, err
}

// EnableServer enables or disables an MCP server and reports whether that
// changed anything.
func (t Target) EnableServer(ctx context.Context, name string, on bool) (changed bool, err error) {
	err = t.update(ctx, func(doc *jsonpos.Document, in *Settings) ([]byte, error) {
		at := slices.Index(in.MCP.Disabled, name)
		changed = on == (at >= 0)
		switch {
		case !changed:
			return nil, nil
		case on:
			text, _ := doc.Remove("mcp", "disabled", strconv.Itoa(at))
			return text, nil
		}
		text, err := encode(name)
		return doc.Append([]string{"mcp", "disabled"}, text), err
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

// ProjectServers reads the MCP servers in a directory's .mcp.json, which may be
// missing. Invalid servers are reported in the error, next to the valid ones.
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
	_, err = updateProject(ctx, home, dir, func(doc *jsonpos.Document) ([]byte, bool) {
		return doc.Set([]string{"mcpServers", name}, text), true
	})
	return err
}

// RemoveProjectServer removes an MCP server from a directory's .mcp.json and
// reports whether it was there.
func RemoveProjectServer(ctx context.Context, home, dir, name string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, mcp.ProjectFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return updateProject(ctx, home, dir, func(doc *jsonpos.Document) ([]byte, bool) {
		text, removed := doc.Remove("mcpServers", name)
		// Without the last server the file must still have the member.
		left, err := jsonpos.Parse(mcp.ProjectFile, text)
		if err != nil {
			return text, removed
		}
		if line, _ := left.Position("/mcpServers"); line == 0 {
			text = left.Set([]string{"mcpServers"}, "{}")
		}
		return text, removed
	})
}

// updateProject changes the text of a .mcp.json. An invalid file is left
// unchanged.
func updateProject(ctx context.Context, home, dir string, change func(*jsonpos.Document) ([]byte, bool)) (changed bool, err error) {
	path, fresh := filepath.Join(dir, mcp.ProjectFile), false
	err = privatefile.Update(ctx, path, filepath.Join(home, "settings.json.lock"), func(old []byte) ([]byte, error) {
		text := old
		if fresh = old == nil; fresh {
			text = []byte("{\n  \"mcpServers\": {}\n}\n")
		} else if servers, _, err := mcp.ParseFile(path, old); err != nil && servers == nil {
			return nil, err
		}
		doc, err := jsonpos.Parse(path, text)
		if err != nil {
			return nil, err
		}
		text, changed = change(doc)
		return text, nil
	})
	if err != nil {
		return false, &Error{Err: err}
	}
	if fresh { // unlike the user's files, it is meant to be shared
		err = os.Chmod(path, 0o644)
	}
	return changed, err
}
