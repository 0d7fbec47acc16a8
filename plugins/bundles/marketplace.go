package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// marketplaceFiles are where a repository lists plugins: that of Claude Code, Codex
// and Cursor.
var marketplaceFiles = []string{".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json", ".cursor-plugin/marketplace.json"}

// Marketplace is a list of plugins.
type Marketplace struct {
	Name    string    `json:"name"`
	Summary string    `json:"summary,omitempty"`
	Plugins []Listing `json:"plugins"`
	// Unusable are entries that cannot be added.
	Unusable []Unusable `json:"unusable,omitempty"`
}

// Listing is a plugin in a marketplace.
type Listing struct {
	Name     string   `json:"name"`
	Version  string   `json:"version,omitempty"`
	Summary  string   `json:"summary,omitempty"`
	Category string   `json:"category,omitempty"`
	Keywords []string `json:"keywords,omitempty"`
	// Path is the folder in the marketplace; else Source is what 'plugins add' takes.
	Path   string `json:"path,omitempty"`
	Source string `json:"source,omitempty"`
	// Commit pins a repository, Integrity an archive: the SHA-256 in hex.
	Commit    string          `json:"commit,omitempty"`
	Integrity string          `json:"integrity,omitempty"`
	Entry     json.RawMessage `json:"-"` // in the members of a manifest
}

// ReadMarketplace reads the list of plugins in a folder. Bad entries are named and
// left out.
func ReadMarketplace(files fs.FS) (*Marketplace, error) {
	r := &reader{files: files, b: &Bundle{}}
	for _, at := range marketplaceFiles {
		data, err := r.load(at, 4*maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return parseMarketplace(at, data)
	}
	return nil, fmt.Errorf("not a marketplace: it has none of %s", strings.Join(marketplaceFiles, ", "))
}

func parseMarketplace(name string, data []byte) (*Marketplace, error) {
	doc, err := jsonpos.Parse(name, data)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := doc.Decode(&members); err != nil {
		return nil, err
	}
	var file struct {
		Name, Description string
		Metadata          struct{ PluginRoot, Description string }
		Plugins           []json.RawMessage
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m := &Marketplace{Name: file.Name, Summary: line(file.Description+" "+file.Metadata.Description, 300)}
	if !bundleName().MatchString(m.Name) {
		return nil, fmt.Errorf("%s: invalid name of a marketplace %q", name, clip(m.Name))
	}
	seen := map[string]bool{}
	for _, raw := range file.Plugins {
		l, err := parseListing(raw, file.Metadata.PluginRoot)
		if err == nil && seen[strings.ToLower(l.Name)] {
			err = errors.New("the name is taken by another entry")
		}
		if err != nil {
			m.Unusable = append(m.Unusable, Unusable{"plugin", line(l.Name, 80), line(err.Error(), 300)})
			continue
		}
		seen[strings.ToLower(l.Name)] = true
		m.Plugins = append(m.Plugins, l)
	}
	return m, nil
}

// listingSource is where a marketplace says that a plugin is.
type listingSource struct {
	Source, Repo, URL, Path, Ref, SHA, Package, Version, Registry, SHA256 string
}

func parseListing(raw json.RawMessage, root string) (Listing, error) {
	var in struct {
		Name, Version, Description, Category string
		Keywords, Tags                       []string
		Source                               json.RawMessage
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Listing{Name: text(raw)}, fmt.Errorf("the entry cannot be read: %w", err)
	}
	l := Listing{
		Name: in.Name, Version: line(in.Version, 64), Summary: line(in.Description, 300), Category: line(in.Category, 40), Keywords: append(in.Keywords, in.Tags...), Entry: raw,
	}
	if !bundleName().MatchString(l.Name) {
		return l, errors.New("invalid name")
	}
	if given := text(in.Source); given != "" {
		return l, l.within(path.Join(root, given), given)
	}
	var s listingSource
	if err := json.Unmarshal(in.Source, &s); err != nil {
		return l, errors.New("it has no source")
	}
	return l, l.from(s)
}

// within sets the path of a plugin in the marketplace's folder.
func (l *Listing) within(at, given string) error {
	if l.Path = path.Clean(strings.TrimPrefix(at, "./")); !fs.ValidPath(l.Path) || strings.Contains(given, `\`) || path.IsAbs(given) {
		return fmt.Errorf("the path %q leads out of the marketplace", clip(given))
	}
	return nil
}

// from sets the source of a plugin elsewhere.
func (l *Listing) from(s listingSource) error {
	l.Commit = s.SHA
	missing := func(key string) error { return fmt.Errorf("its source %s has no %s", s.Source, key) }
	switch s.Source {
	case "local":
		return l.within(s.Path, s.Path)
	case "github":
		if s.Repo == "" {
			return missing("repo")
		}
		l.Source = "https://github.com/" + strings.TrimSuffix(s.Repo, ".git") + ".git"
	case "url", "git", "git-subdir":
		if s.URL == "" {
			return missing("url")
		}
		l.Source = s.URL
		if !strings.Contains(s.URL, "://") && !strings.HasPrefix(s.URL, "git@") {
			l.Source = "https://github.com/" + strings.TrimSuffix(s.URL, ".git") + ".git" // OWNER/REPO
		}
	case "npm":
		if s.Package == "" {
			return missing("package")
		}
		if s.Registry != "" {
			return errors.New("its npm registry is not yours: set NPM_CONFIG_REGISTRY and add npm:" + s.Package)
		}
		l.Source = "npm:" + s.Package
		if s.Version != "" {
			l.Source += "@" + s.Version
		}
		return nil
	case "archive":
		if s.URL == "" {
			return missing("url")
		}
		l.Source, l.Integrity = s.URL, s.SHA256
		return nil
	case "command":
		return errors.New("its source is a command, which is not run")
	default:
		return fmt.Errorf("unknown kind of source %q", clip(s.Source))
	}
	if s.Ref != "" {
		l.Source += "@" + s.Ref
	}
	if s.Path != "" {
		sub := path.Clean(strings.TrimPrefix(s.Path, "./"))
		if !fs.ValidPath(sub) || !filepath.IsLocal(filepath.FromSlash(sub)) {
			return fmt.Errorf("the path %q leads out of its repository", clip(s.Path))
		}
		l.Source += "#" + sub
	}
	return nil
}

// Matches reports whether each word is in the name, summary, category or keywords.
func (l Listing) Matches(words []string) bool {
	all := strings.ToLower(strings.Join(append([]string{l.Name, l.Summary, l.Category}, l.Keywords...), " "))
	for _, word := range words {
		if !strings.Contains(all, strings.ToLower(word)) {
			return false
		}
	}
	return true
}
