package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/model/facts"
	"github.com/seed-009c0928/agent/core/model/wire"
)

const (
	catalogFile  = "models.jsonl" // in the agent's directory
	maxCatalog   = 32 << 20       // bytes
	catalogTime  = time.Minute
	localWindow  = 32_768  // tokens, if it is unknown: servers on this machine have small ones
	remoteWindow = 128_000 // tokens, if it is unknown
)

// publishedNames are the names of providers in the published catalog that differ
// from ours.
var publishedNames = map[string]string{
	"gemini": "google", "github": "github-models", "together": "togetherai", "fireworks": "fireworks-ai", "moonshot": "moonshotai", "bedrock": "amazon-bedrock",
}

// loadCatalog reads the catalog of the last update, if there is one.
func (s *Setup) loadCatalog() facts.Catalog {
	if s.Home == "" {
		return facts.Catalog{}
	}
	data, err := os.ReadFile(filepath.Join(s.Home, catalogFile))
	if err != nil {
		return facts.Catalog{}
	}
	c, _ := facts.Parse(data) // a damaged one is as none; the next update replaces it
	return c
}

// UpdateModels fetches the catalog of agent.catalogUrl and stores it. If it
// fails, the stored one remains.
func (s *Setup) UpdateModels(ctx context.Context, now time.Time) (facts.Catalog, string, error) {
	source := s.Settings.Agent.CatalogURL
	if s.Home == "" {
		return facts.Catalog{}, "", errors.New("no home directory for the list of models: set HOME or AGENT_HOME")
	}
	data, err := fetchCatalog(ctx, source)
	if err != nil {
		return facts.Catalog{}, "", fmt.Errorf("cannot fetch %s: %w; the models known before stay known (agent.catalogUrl sets another address)", source, err)
	}
	names := map[string]string{}
	for _, name := range s.Settings.Providers.Names() {
		names[name] = cmp.Or(publishedNames[name], name)
	}
	c, err := facts.Convert(data, now.UTC().Format(time.DateOnly), source, names)
	if err != nil {
		return facts.Catalog{}, "", fmt.Errorf("%s: %w", source, err)
	}
	path := filepath.Join(s.Home, catalogFile)
	if err := os.MkdirAll(s.Home, 0o700); err != nil {
		return facts.Catalog{}, "", err
	}
	return c, path, atomicfile.Write(path, c.Bytes(), 0o600)
}

func fetchCatalog(ctx context.Context, source string) ([]byte, error) {
	if err := encrypted(source); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, catalogTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}
	transport := wire.NewTransport(wire.DefaultConnectTimeout)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 3 {
			return errors.New("too many redirects")
		}
		return encrypted(r.URL.String())
	}}
	resp, err := client.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		return nil, failed.Err // the rest repeats the address
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", wire.Clip(resp.Status, 100))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxCatalog+1))
	if len(data) > maxCatalog {
		return nil, fmt.Errorf("it is longer than %d MiB", maxCatalog>>20)
	}
	return data, err
}

// encrypted refuses an address that others can change on the way: wrong prices
// and limits would go unnoticed.
func encrypted(source string) error {
	u, err := url.Parse(source)
	if err != nil {
		return err
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && !ip.IsLoopback()) {
		return errors.New("expected an address that begins with https://")
	}
	return nil
}
