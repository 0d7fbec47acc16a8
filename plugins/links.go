package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins/bundles"
)

// InPlace is the plugin in a folder, before [Store.Link] uses it in place.
type InPlace struct {
	Spec   Spec
	Bundle *bundles.Bundle
	// New is what it runs, reads or reaches that the user has not approved with an
	// earlier link; nil if the folder was not linked before.
	New []string

	dir string
}

// Look reads the plugin in a folder, of any format, to link it.
func (s *Store) Look(ctx context.Context, dir string) (*InPlace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	p := &InPlace{dir: sandbox.Resolve(dir)}
	if p.Spec, p.Bundle, err = readFolder(p.dir); err != nil {
		return nil, err
	}
	if _, err := s.files.Entry(ctx, p.Spec.Name); !errors.Is(err, bundle.ErrNotInstalled) {
		return nil, &Error{p.Spec.Name, errors.Join(errors.New("it is installed: remove it first"), err)}
	}
	links, err := readLinks(s.home)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(links, func(l link) bool { return l.Name == p.Spec.Name && l.Dir == p.dir }); i >= 0 {
		p.New = links[i].beyond(p.Spec, p.Bundle)
	}
	return p, nil
}

// readFolder reads a plugin of any format, which need not have a program.
func readFolder(dir string) (Spec, *bundles.Bundle, error) {
	b, err := bundles.Read(dir, "", nil)
	if err != nil {
		if _, spec := ReadSpec(dir); !errors.Is(spec, errNoSpec) {
			err = cmp.Or(spec, err)
		}
		return Spec{}, nil, err
	}
	if !b.Program {
		return Spec{Name: b.Name, Version: b.Version, Summary: b.Summary}, b, nil
	}
	l, err := read(dir)
	return l.spec, b, err
}

// Link uses a plugin in place, without pinning its files. It must not ask for more than
// it did when it was looked at.
func (s *Store) Link(ctx context.Context, p *InPlace) error {
	return s.changeLinks(ctx, func(links map[string]link) {
		l := link{Name: p.Spec.Name, Dir: p.dir, Terms: &linkTerms{NoProgram: !p.Bundle.Program, Powers: p.Bundle.Powers(), Hooked: p.Bundle.HookPoints()}}
		if p.Bundle.Program {
			l.Manifest = &p.Spec.Manifest
		}
		links[l.Name] = l
	})
}

// Linked reports whether a folder is linked, with all that its plugin asks for.
func (s *Store) Linked(dir string) bool {
	dir = sandbox.Resolve(dir)
	spec, b, err := readFolder(dir)
	if err != nil {
		return false
	}
	links, err := readLinks(s.home)
	return err == nil && slices.ContainsFunc(links, func(l link) bool {
		return l.Dir == dir && l.Name == spec.Name && len(l.beyond(spec, b)) == 0
	})
}

// link is a plugin that is used in place.
type link struct {
	Name, Dir string
	Manifest  *Manifest  // of its program, as approved; nil in a file of an older version
	Terms     *linkTerms // likewise
}

// linkTerms are what the user approved with a link besides the manifest.
type linkTerms struct {
	NoProgram bool     `json:"noProgram,omitempty"`
	Powers    []string `json:"powers"`           // see [bundles.Bundle.Powers]
	Hooked    []string `json:"hooked,omitempty"` // events that its files have hooks for
}

// program reports whether the link is one of a plugin with a program.
func (l link) program() bool { return l.Terms == nil || !l.Terms.NoProgram }

// beyond returns what a plugin asks for in addition to what was approved.
func (l link) beyond(spec Spec, b *bundles.Bundle) (more []string) {
	if b.Program {
		switch {
		case !l.program():
			more = append(more, "run a program")
		case l.Manifest != nil:
			more = spec.Manifest.beyond(*l.Manifest)
		}
	}
	var approved []string
	if l.Terms != nil {
		approved = l.Terms.Powers
	}
	for _, p := range b.Powers() {
		if !slices.Contains(approved, p) {
			what, _, _ := strings.Cut(p, "\t")
			more = append(more, what)
		}
	}
	return more
}

// linkedBundles returns the bundles of the linked folders.
func linkedBundles(home string, choices map[string]Choices) (list []Installed, failed []error) {
	links, err := readLinks(home)
	if err != nil {
		return nil, []error{err}
	}
	for _, l := range links {
		if l.Terms == nil {
			continue // of an older version: only its program is used
		}
		spec, b, err := readFolder(l.Dir)
		switch {
		case err != nil && l.program():
			continue // its program reports it
		case err != nil:
		case spec.Name != l.Name:
			err = fmt.Errorf("its name is %q, expected %q: link %s again", spec.Name, l.Name, l.Dir)
		default:
			if more := l.beyond(spec, b); len(more) > 0 {
				err = asksForMore(more, l.Dir)
			}
		}
		if err != nil {
			failed = append(failed, &brokenBundle{&Error{l.Name, err}, l.Terms.Hooked})
			continue
		}
		list = append(list, Installed{Bundle: b, Linked: true, Source: l.Dir, Choices: choices[l.Name], data: DataDir(home, l.Name), home: home})
	}
	return list, failed
}

// asksForMore is the error of a linked plugin that asks for more than was approved.
func asksForMore(more []string, dir string) error {
	return fmt.Errorf("it asks for more than you approved (%s): review it with 'agent plugins add --link %s'",
		shorten(cleanLine(strings.Join(more, ", ")), 300), dir)
}

// linksFile is the file in the agent's home that lists the links.
const linksFile = "plugin-links.json"

// linksDocument is the format of the links file.
type linksDocument struct {
	Version int               `json:"version"`
	Links   map[string]string `json:"links"`
	// Manifests and Terms are what the user approved, by name.
	Manifests map[string]*Manifest  `json:"manifests,omitempty"`
	Terms     map[string]*linkTerms `json:"terms,omitempty"`
}

// readLinks reads the list of linked plugins.
func readLinks(home string) ([]link, error) {
	file := filepath.Join(home, linksFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var doc linksDocument
	if err := jsonpos.Decode(file, data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != 1 {
		return nil, fmt.Errorf("%s has the unknown version %d: update agent", file, doc.Version)
	}
	var list []link
	for _, name := range slices.Sorted(maps.Keys(doc.Links)) {
		list = append(list, link{name, doc.Links[name], doc.Manifests[name], doc.Terms[name]})
	}
	return list, nil
}

// changeLinks updates the list of links. It is safe with several processes.
func (s *Store) changeLinks(ctx context.Context, change func(map[string]link)) error {
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		return err
	}
	file := filepath.Join(s.home, linksFile)
	lock := flock.New(file + ".lock")
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("%s: %w", lock.Path(), err)
	}
	defer lock.Close()
	list, err := readLinks(s.home)
	if err != nil {
		return err
	}
	links := map[string]link{}
	for _, l := range list {
		links[l.Name] = l
	}
	before := maps.Clone(links)
	if change(links); reflect.DeepEqual(before, links) {
		return nil
	}
	doc := linksDocument{Version: 1, Links: map[string]string{}, Manifests: map[string]*Manifest{}, Terms: map[string]*linkTerms{}}
	for name, l := range links {
		doc.Links[name] = l.Dir
		if l.Manifest != nil {
			doc.Manifests[name] = l.Manifest
		}
		if l.Terms != nil {
			doc.Terms[name] = l.Terms
		}
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(data, '\n'), 0o600)
}
