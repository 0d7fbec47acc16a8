package plugins

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/skills"
)

// Marketplace is an added list of plugins.
type Marketplace struct {
	*bundles.Marketplace
	Source string    `json:"source"`
	Read   time.Time `json:"read"` // from the source
}

// kindMarketplace is the source of a plugin that a marketplace lists.
const kindMarketplace = "marketplace"

// markets returns the store of the marketplaces.
func (s *Store) markets() *bundle.Store {
	return bundle.Open(filepath.Join(s.home, "marketplaces"), bundle.Options{})
}

// AddMarketplace copies the list of plugins in a folder or repository, with the
// plugins that are in it. With a name, it replaces that one. Nothing of it runs.
func (s *Store) AddMarketplace(ctx context.Context, source, name string) (_ *Marketplace, err error) {
	c := &Candidate{store: &Store{home: s.home, files: s.markets(), supervisor: s.supervisor}}
	if c.stage, err = c.store.files.Stage(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	switch info, statErr := os.Stat(source); {
	case statErr == nil && info.IsDir():
		dir, absErr := filepath.Abs(source)
		if absErr != nil {
			return nil, absErr
		}
		c.Source = bundle.Source{Kind: "folder", Location: dir}
		err = c.stage.AddFolder(ctx, dir)
	case statErr == nil:
		err = c.fromArchive(ctx, source)
	case remote(source):
		err = c.fetch(ctx, source)
	default:
		err = fmt.Errorf("%s: no such folder or archive, and no OWNER/REPO or URL", source)
	}
	if err == nil {
		err = c.restage(ctx)
	}
	if err != nil {
		return nil, err
	}
	m, err := bundles.ReadMarketplace(os.DirFS(c.stage.Root()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if name != "" && m.Name != name {
		return nil, fmt.Errorf("%s is the marketplace %q now, not %q: remove it and add it again", source, m.Name, name)
	}
	tree, err := c.stage.Tree(ctx)
	if err != nil {
		return nil, err
	}
	entry, err := c.stage.Install(ctx, bundle.Install{Name: m.Name, Tree: tree.Hash, Source: c.Source, Replace: name != ""})
	if errors.Is(err, bundle.ErrInstalled) {
		err = fmt.Errorf("there is a marketplace %q already: run 'agent plugins marketplace update %s', or remove it", m.Name, m.Name)
	}
	if err != nil {
		return nil, err
	}
	return &Marketplace{m, sourceText(c.Source), entry.Installed}, nil
}

// Marketplaces returns the added marketplaces by name.
func (s *Store) Marketplaces(ctx context.Context) (list []Marketplace, err error) {
	store := s.markets()
	entries, err := store.List(ctx)
	errs := []error{err}
	for _, e := range entries {
		m, err := s.marketplace(ctx, store, e.Name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, *m)
	}
	return list, errors.Join(errs...)
}

func (s *Store) marketplace(ctx context.Context, store *bundle.Store, name string) (*Marketplace, error) {
	entry, changes, err := store.Verify(ctx, name)
	switch {
	case errors.Is(err, bundle.ErrNotInstalled):
		return nil, fmt.Errorf("no marketplace %q: see 'agent plugins marketplace list'", name)
	case err == nil && len(changes) > 0:
		err = fmt.Errorf("its files were edited: run 'agent plugins marketplace update %s'", name)
	}
	if err != nil {
		return nil, fmt.Errorf("marketplace %s: %w", name, err)
	}
	m, err := bundles.ReadMarketplace(os.DirFS(store.Path(name)))
	if err != nil {
		return nil, fmt.Errorf("marketplace %s: %w", name, err)
	}
	return &Marketplace{m, sourceText(entry.Source), entry.Installed}, nil
}

// UpdateMarketplace reads a marketplace from its source again.
func (s *Store) UpdateMarketplace(ctx context.Context, name string) (*Marketplace, error) {
	entry, err := s.markets().Entry(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("no marketplace %q: see 'agent plugins marketplace list'", name)
	}
	return s.AddMarketplace(ctx, sourceText(entry.Source), name)
}

// RemoveMarketplace removes a marketplace. Plugins that were added from it stay.
func (s *Store) RemoveMarketplace(ctx context.Context, name string) error {
	err := s.markets().Remove(ctx, name, true)
	if errors.Is(err, bundle.ErrNotInstalled) {
		return fmt.Errorf("no marketplace %q: see 'agent plugins marketplace list'", name)
	}
	return err
}

var listed = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*$`)

// fromMarketplace takes NAME@MARKETPLACE.
func (c *Candidate) fromMarketplace(ctx context.Context, source string) error {
	name, market, _ := strings.Cut(source, "@")
	store := c.store.markets()
	m, err := c.store.marketplace(ctx, store, market)
	if err != nil {
		return err
	}
	for _, l := range m.Plugins {
		if l.Name != name {
			continue
		}
		if err := c.fromListing(ctx, l, store.Path(market)); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		c.Entry = l.Entry
		c.Source = bundle.Source{Kind: kindMarketplace, Location: source, Commit: c.Source.Commit}
		return nil
	}
	for _, u := range m.Unusable {
		if u.Name == name {
			return fmt.Errorf("%s cannot be added: %s", source, u.Reason)
		}
	}
	return fmt.Errorf("the marketplace %s has no plugin %q: see 'agent plugins search'", market, name)
}

// fromListing fills the stage with what a marketplace in a folder lists.
func (c *Candidate) fromListing(ctx context.Context, l bundles.Listing, dir string) error {
	switch {
	case l.Path != "":
		return c.stage.AddFolder(ctx, filepath.Join(dir, filepath.FromSlash(l.Path)))
	case strings.HasPrefix(l.Source, "npm:"):
		return c.fetch(ctx, l.Source)
	case l.Integrity != "":
		sum, err := hex.DecodeString(strings.TrimPrefix(l.Integrity, "sha256:"))
		if err != nil {
			return fmt.Errorf("its sha256 %q is invalid", l.Integrity)
		}
		if _, err := skills.ParseSource(l.Source, "", ""); err != nil { // the address must be encrypted
			return err
		}
		file, err := skills.Download(ctx, nil, l.Source, "sha256-"+base64.StdEncoding.EncodeToString(sum))
		if err != nil {
			return err
		}
		defer os.Remove(file)
		if err := c.stage.AddArchive(ctx, file); err != nil {
			return err
		}
		return c.stage.Unwrap()
	}
	o, err := parseRemote(l.Source)
	if err != nil {
		return err
	}
	commit, err := skills.Fetch(ctx, c.stage, o, l.Commit, nil)
	c.Source.Commit = commit
	return err
}
