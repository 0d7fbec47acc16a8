package chat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core/jsonpos"
)

// readKeys reads the user's key bindings, keys.json in the agent's directory.
func readKeys(home string) (tui.Keys, error) {
	path := filepath.Join(home, "keys.json")
	data, err := os.ReadFile(path)
	if home == "" || errors.Is(err, fs.ErrNotExist) {
		return tui.Keys{}, nil
	}
	var bindings map[string]string
	if err == nil {
		err = jsonpos.Decode(path, data, &bindings)
	}
	if err != nil {
		return tui.Keys{}, &config.Error{Err: err}
	}
	keys, err := tui.ParseKeys(bindings)
	if err != nil {
		return tui.Keys{}, &config.Error{Err: fmt.Errorf("%s: %w", path, err)}
	}
	return keys, nil
}
