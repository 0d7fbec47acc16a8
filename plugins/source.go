package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/skills"
)

// The kinds of sources besides those of skills.
const (
	kindGo  = "go"
	kindNPM = "npm"
)

// remote reports whether a source is to be fetched: a repository, the URL of an
// archive, or npm:NAME.
func remote(source string) bool {
	return strings.HasPrefix(source, "npm:") || strings.Contains(source, "://") || strings.HasPrefix(source, "git@") || shorthand().MatchString(source)
}

var shorthand = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*(/[^@]+)?(@.+)?$`)

// fetch fills the stage from a source that remote reports.
func (c *Candidate) fetch(ctx context.Context, source string) error {
	if name, ok := strings.CutPrefix(source, "npm:"); ok {
		return c.fromNPM(ctx, name)
	}
	o, err := parseRemote(source)
	if err != nil {
		return err
	}
	commit, err := skills.Fetch(ctx, c.stage, o, "", nil)
	if err != nil {
		return err
	}
	c.Source = bundle.Source{Kind: string(o.Kind), Location: o.Location, Path: o.Path, Ref: o.Ref, Commit: commit}
	return nil
}

// parseRemote parses owner/repo[/PATH][@REF], or the URL of an archive or of a
// repository with #SUBDIR or @REF.
func parseRemote(source string) (skills.Origin, error) {
	rest, sub, _ := strings.Cut(source, "#")
	o, err := skills.ParseSource(rest, "", "")
	if err != nil {
		return o, err
	}
	if o.Kind == skills.SourceWellKnown { // any other URL is a repository
		o.Kind = skills.SourceGit
	}
	if sub != "" {
		sub = strings.Trim(strings.TrimPrefix(sub, "./"), "/")
		if !filepath.IsLocal(filepath.FromSlash(sub)) || strings.Contains(sub, `\`) {
			return o, fmt.Errorf("the folder %q leads out of the source", sub)
		}
		o.Path = sub
	}
	return o, nil
}

var npmName = lazy.Regexp(`^(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*$`)

// Registry of npm packages.
const npmRegistry = "https://registry.npmjs.org"

// maxMetadata bounds the description of an npm package, in bytes.
const maxMetadata = 8 << 20

// fromNPM unpacks NAME[@VERSION] of an npm registry, without its scripts. The
// archive must have the hash that the registry gives.
func (c *Candidate) fromNPM(ctx context.Context, spec string) error {
	name, version := spec, "latest"
	if i := strings.LastIndexByte(spec, '@'); i > 0 {
		name, version = spec[:i], spec[i+1:]
	}
	if !npmName().MatchString(name) || version == "" || strings.ContainsAny(version, "/\\?# ") {
		return fmt.Errorf("invalid npm package %q: expected NAME[@VERSION]", spec)
	}
	registry := strings.TrimSuffix(cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"), npmRegistry), "/")
	address := registry + "/" + strings.Replace(name, "/", "%2f", 1) + "/" + url.PathEscape(version)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	data, err := skills.Download(ctx, http.DefaultClient, address, "")
	if err != nil {
		return fmt.Errorf("npm package %s: %w", spec, err)
	}
	defer os.Remove(data)
	var meta struct {
		Version string
		Dist    struct{ Tarball, Integrity string }
	}
	if err := decodeFile(data, &meta); err != nil {
		return fmt.Errorf("%s does not describe an npm package: %w", address, err)
	}
	if meta.Dist.Integrity == "" {
		return fmt.Errorf("npm package %s: the registry gives no integrity hash", spec)
	}
	file, err := skills.Download(ctx, http.DefaultClient, meta.Dist.Tarball, meta.Dist.Integrity)
	if err != nil {
		return fmt.Errorf("npm package %s: %w", spec, err)
	}
	defer os.Remove(file)
	if err := c.stage.AddArchive(ctx, file); err != nil {
		return err
	}
	c.Source = bundle.Source{Kind: kindNPM, Location: name, Ref: version, Path: ""}
	return c.stage.Unwrap()
}

func decodeFile(file string, into any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewDecoder(io.LimitReader(f, maxMetadata)).Decode(into)
}

// sourceText returns a source in the form that Prepare takes.
func sourceText(s bundle.Source) string {
	switch s.Kind {
	case kindGo:
		return s.Location + "@" + s.Ref
	case kindNPM:
		return "npm:" + s.Location + "@" + s.Ref
	case string(skills.SourceGit):
		text := s.Location
		if s.Ref != "" {
			text += "@" + s.Ref
		}
		if s.Path != "" {
			text += "#" + s.Path
		}
		return text
	}
	return s.Location
}

// restage copies what the stage holds into another one without links and the like,
// which are refused one by one, and not with everything else.
func (c *Candidate) restage(ctx context.Context) error {
	if len(c.stage.Refused()) == 0 {
		return nil
	}
	clean, err := c.store.files.Stage(ctx)
	if err != nil {
		return err
	}
	if err := clean.AddFolder(ctx, c.stage.Root()); err != nil {
		return errors.Join(err, clean.Close())
	}
	inside, err := filepath.Rel(c.stage.Dir(), c.stage.Root())
	if err != nil {
		return errors.Join(err, clean.Close())
	}
	for _, r := range c.stage.Refused() {
		if rel, err := filepath.Rel(inside, filepath.FromSlash(r.Path)); err == nil && filepath.IsLocal(rel) {
			c.LeftOut = append(c.LeftOut, bundle.RefusedError{Path: filepath.ToSlash(rel), Reason: r.Reason})
		}
	}
	old := c.stage
	c.stage = clean
	return old.Close()
}

// nameOf returns the name of a plugin whose manifest has none: that of its folder,
// archive, package or repository.
func nameOf(s bundle.Source) string {
	if s.Kind == kindMarketplace {
		name, _, _ := strings.Cut(s.Location, "@")
		return name
	}
	name := path.Base(cmp.Or(s.Path, filepath.ToSlash(s.Location)))
	for _, ending := range []string{".git", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2"} {
		if short, ok := strings.CutSuffix(name, ending); ok {
			return short
		}
	}
	return name
}
