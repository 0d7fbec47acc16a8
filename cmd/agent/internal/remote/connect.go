package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/sdk/service/client"
)

const (
	// Flag is the name of the flag with the address of a service.
	Flag = "on"
	// FlagUsage is its description.
	FlagUsage = "use the service at `URL`, see agent serve"
	// TokenVariable is the environment variable with the token of a service.
	TokenVariable = "AGENT_SERVICE_TOKEN"
)

// ServiceDir is the directory of the service below the agent's own.
func ServiceDir(home string) string { return filepath.Join(home, "service") }

// TokenFile is the file with the first token of a service.
func TokenFile(dir string) string { return filepath.Join(dir, "token") }

// Connect returns a client of a service. The token is that of the environment, or of
// the keyring, or that of this user's own service on this machine.
func Connect(ctx context.Context, s *cmdutil.IO, address string) (*client.Client, error) {
	if _, err := client.New(client.Options{URL: address, Token: "any"}); err != nil {
		return nil, cmdutil.Usagef("--%s: %w", Flag, err)
	}
	token, err := findToken(ctx, s, address)
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{URL: address, Token: token})
}

func findToken(ctx context.Context, s *cmdutil.IO, address string) (string, error) {
	if token := strings.TrimSpace(s.Env(TokenVariable)); token != "" {
		return token, nil
	}
	entry := KeyringEntry(address)
	if s.Keyring != nil && s.Keyring.Running() {
		token, err := s.Keyring.Get(ctx, entry)
		if err == nil {
			return token, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(s.Err, "agent: %v\n", err)
		}
	}
	if client.Local(address) {
		home, err := s.AgentHome()
		if err != nil {
			return "", err
		}
		data, err := privatefile.Read(TokenFile(ServiceDir(home)))
		if err == nil {
			return strings.TrimSpace(string(data)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("the token of the service: %w", err)
		}
	}
	return "", &config.Error{Err: fmt.Errorf("there is no token for %s: set %s to one, which agent serve token add makes there, or keep it with agent serve token keep %s", address, TokenVariable, address)}
}

// KeyringEntry is the name of the keyring's entry with the token of a service.
func KeyringEntry(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		address = u.Host
	}
	return "service:" + address
}
