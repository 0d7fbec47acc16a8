package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Store are the plugins in an agent's home: it adds and removes them. Adding
// goes in steps: Prepare puts the files together, without running any of them;
// the person looks at the [Candidate] and agrees; Install has the plugin say
// what it offers and puts it into its place, or leaves all as it was.
type Store struct {
	home       string
	files      *bundle.Store
	supervisor *proc.Supervisor
}

// OpenStore returns the store of a home, which need not exist. The supervisor
// runs the go command.
func OpenStore(home string, s *proc.Supervisor) *Store {
	return &Store{home, bundle.Open(StoreDir(home), bundle.Options{}), s}
}

// Candidate is a plugin that may be added. Close gives up what was not
// installed.
type Candidate struct {
	Spec    Spec
	Source  bundle.Source
	Tree    bundle.Tree
	Before  *Spec           // what is installed under the name; nil if nothing is
	Changes []bundle.Change // of the files, since then

	store *Store
	stage *bundle.Stage
}

// Prepare puts a plugin together from a folder, an archive, or the path of a
// Go package, PATH[@VERSION]. A folder that is a Go module is built with the go
// command, which runs nothing of it.
func (s *Store) Prepare(ctx context.Context, source string) (_ *Candidate, err error) {
	c := &Candidate{store: s}
	if c.stage, err = s.files.Stage(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	info, statErr := os.Stat(source)
	switch {
	case statErr == nil && info.IsDir():
		err = c.fromFolder(ctx, source)
	case statErr == nil:
		err = c.fromArchive(ctx, source)
	case looksLikePackage(source):
		err = c.fromPackage(ctx, source)
	case strings.Contains(source, "://"):
		err = fmt.Errorf("%s: nothing is downloaded here: fetch the archive yourself and add the file", source)
	default:
		err = fmt.Errorf("%s: there is no such folder or archive, and it is no path of a Go package such as example.org/weather@latest", source)
	}
	if err != nil {
		return nil, err
	}
	return c, c.examine(ctx)
}

func (c *Candidate) fromFolder(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	spec, err := ReadSpec(dir)
	if err != nil {
		return err
	}
	c.Source = bundle.Source{Kind: "folder", Location: dir}
	if err := c.stage.AddFolder(ctx, dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return nil
	}
	argv, err := spec.argv(c.stage.Root())
	if err != nil {
		return err
	}
	if !filepath.IsAbs(argv[0]) {
		return nil
	}
	return c.store.runGo(ctx, dir, "build", buildTags, "-trimpath", "-o", argv[0], ".")
}

func (c *Candidate) fromArchive(ctx context.Context, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	c.Source = bundle.Source{Kind: "archive", Location: file}
	if err := c.stage.AddArchive(ctx, file); err != nil {
		return err
	}
	return c.stage.Unwrap()
}

// looksLikePackage reports whether text can be the path of a Go package: its
// first element is a host.
func looksLikePackage(text string) bool {
	host, rest, ok := strings.Cut(text, "/")
	return ok && rest != "" && strings.Contains(host, ".") && !strings.HasPrefix(text, ".") && !strings.Contains(text, "://")
}

// fromPackage builds a Go package and takes the plugin.json beside it.
func (c *Candidate) fromPackage(ctx context.Context, source string) error {
	pkg, version, _ := strings.Cut(source, "@")
	if version == "" {
		version = "latest"
	}
	c.Source = bundle.Source{Kind: "go", Location: pkg, Ref: version}
	work, err := os.MkdirTemp("", "agent-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mod := "module build\n"
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte(mod), 0o600); err != nil {
		return err
	}
	if err := c.store.runGo(ctx, work, "get", pkg+"@"+version); err != nil {
		return err
	}
	var listed bytes.Buffer
	if err := c.store.goCommand(ctx, work, &listed, "list", "-f", "{{.Name}} {{.Dir}}", pkg); err != nil {
		return err
	}
	name, root, _ := strings.Cut(strings.TrimSpace(listed.String()), " ")
	if name != "main" {
		return fmt.Errorf("%s is the package %s, expected a program, package main: it is no plugin", pkg, name)
	}
	data, err := os.ReadFile(filepath.Join(root, SpecFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no %s beside its main package: it is no plugin", pkg, SpecFile)
	}
	if err != nil {
		return err
	}
	spec, err := ParseSpec(pkg+"/"+SpecFile, data)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.stage.Root(), SpecFile), data, 0o644); err != nil {
		return err
	}
	argv, err := spec.argv(c.stage.Root())
	if err != nil {
		return err
	}
	if !filepath.IsAbs(argv[0]) {
		return fmt.Errorf("%s: its command is %q, expected a program in its own folder", pkg, argv[0])
	}
	return c.store.runGo(ctx, work, "build", buildTags, "-trimpath", "-o", argv[0], pkg)
}

// buildTags leave out of a plugin what gRPC has for debugging in a browser: a
// third of its size.
const buildTags = "-tags=grpcnotrace"

// runGo runs the go command. What it prints is the error's if it fails.
func (s *Store) runGo(ctx context.Context, dir string, args ...string) error {
	return s.goCommand(ctx, dir, nil, args...)
}

func (s *Store) goCommand(ctx context.Context, dir string, stdout *bytes.Buffer, args ...string) error {
	var out bytes.Buffer
	spec := proc.Spec{
		Path: "go", Args: args, Dir: dir, Stdout: &out, Stderr: &out,
		// Without cgo a build runs no program of the package's choice.
		Env: append(proc.FilterEnv(os.Environ(), proc.InheritAll), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -mod=mod", "GOWORK=off"),
	}
	if stdout != nil {
		spec.Stdout = stdout
	}
	p, err := s.supervisor.Start(ctx, spec)
	if err != nil {
		return fmt.Errorf("a Go plugin is built with the go command, which cannot be started: %w; install Go, or add a folder with the built program", err)
	}
	exit, err := p.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("%s:\n%s", describeExit(exit), strings.TrimSpace(out.String()))
	}
	if err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// examine reads what was put together, and what it would replace.
func (c *Candidate) examine(ctx context.Context) (err error) {
	root := c.stage.Root()
	if c.Spec, err = ReadSpec(root); err != nil {
		return err
	}
	argv, err := c.Spec.argv(root)
	if err == nil {
		err = checkProgram(argv[0])
	}
	if err != nil {
		return c.wrap(err)
	}
	if len(c.Spec.Checksums) > 0 {
		if err := verifySums(ctx, root, c.Spec); err != nil {
			return c.wrap(err)
		}
	}
	if c.Tree, err = c.stage.Tree(ctx); err != nil {
		return err
	}
	entry, err := c.store.files.Entry(ctx, c.Spec.Name)
	switch {
	case errors.Is(err, bundle.ErrNotInstalled):
		return c.notLinked()
	case err != nil:
		return err
	}
	c.Changes = bundle.Compare(bundle.Tree{Hash: entry.Tree, Files: entry.Files}, c.Tree)
	before, err := ReadSpec(c.store.files.Path(c.Spec.Name))
	if err != nil {
		before = Spec{Name: c.Spec.Name} // whatever it was, all of it is new
	}
	c.Before = &before
	return nil
}

func (c *Candidate) notLinked() error {
	links, err := readLinks(c.store.home)
	if err == nil && slices.ContainsFunc(links, func(l link) bool { return l.Name == c.Spec.Name }) {
		err = c.wrap(errors.New("it is linked to a folder: remove the link first"))
	}
	return err
}

func (c *Candidate) wrap(err error) error { return &Error{c.Spec.Name, err} }

// From says where the candidate comes from, as Prepare was told it.
func (c *Candidate) From() string { return sourceText(c.Source) }

// Unchanged reports whether the very same files are installed already.
func (c *Candidate) Unchanged() bool { return c.Before != nil && len(c.Changes) == 0 }

// Widens says what the candidate may do that the installed one may not.
func (c *Candidate) Widens() []string {
	if c.Before == nil {
		return nil
	}
	more := c.Spec.Manifest.beyond(c.Before.Manifest)
	if c.Spec.Context != nil && (c.Before.Context == nil || c.Before.Context.MaxTokens < c.Spec.Context.MaxTokens) {
		more = append(more, fmt.Sprintf("up to %d tokens of context", c.Spec.Context.MaxTokens))
	}
	if c.Spec.Dynamic && !c.Before.Dynamic {
		more = append(more, "change its tools at any time")
	}
	return more
}

// Install starts the plugin in the host, confined to its manifest, to learn
// what it offers, and installs it. That the person agreed is what calling it
// means. The differences are between what it offered before and offers now.
func (c *Candidate) Install(ctx context.Context, h *Host) (said *toolproto.Description, diff []string, err error) {
	trial := h.newPlugin(found{name: c.Spec.Name, scope: User, origin: &staged{c.stage.Root(), c.Tree.Hash}})
	said, err = trial.Describe(ctx)
	if err = errors.Join(err, trial.Close()); err != nil {
		return nil, nil, err
	}
	if c.Before != nil {
		if entry, err := c.store.files.Entry(ctx, c.Spec.Name); err == nil {
			if old := h.cache.load(c.Before, entry.Tree); old != nil {
				diff = differences(old, said)
			}
		}
	}
	terms, err := json.Marshal(c.Spec)
	if err != nil {
		return nil, nil, err
	}
	_, err = c.stage.Install(ctx, bundle.Install{
		Name: c.Spec.Name, Tree: c.Tree.Hash, Source: c.Source, Replace: c.Before != nil,
		Consent: &bundle.Consent{Tree: c.Tree.Hash, Given: time.Now(), Terms: terms},
	})
	return said, diff, err
}

// staged is a plugin that is about to be installed.
type staged struct{ dir, hash string }

func (*staged) stamp() string                         { return "" }
func (*staged) verify(context.Context, *loaded) error { return nil }
func (o *staged) load(context.Context) (loaded, error) {
	l, err := read(o.dir)
	l.hash = o.hash
	return l, err
}

// Close clears away what was put together.
func (c *Candidate) Close() error { return c.stage.Close() }

// Source returns where an installed plugin came from, so that it can be added
// again from there.
func (s *Store) Source(ctx context.Context, name string) (string, error) {
	entry, err := s.files.Entry(ctx, name)
	if err != nil {
		return "", &Error{name, err}
	}
	return sourceText(entry.Source), nil
}

// sourceText is a source as it is given to Prepare.
func sourceText(s bundle.Source) string {
	if s.Kind == "go" {
		return s.Location + "@" + s.Ref
	}
	return s.Location
}

// Verify reports how an installed plugin's files differ from those that were
// agreed to, as a *[ChecksumError].
func (s *Store) Verify(ctx context.Context, name string) error {
	o := &installed{s.files, name}
	_, err := o.load(ctx)
	if verr := o.verify(ctx, nil); verr != nil { // it tells more
		err = verr
	}
	if err != nil {
		return &Error{name, err}
	}
	return nil
}

// Installed returns the names of the installed plugins.
func (s *Store) Installed(ctx context.Context) ([]string, error) {
	entries, err := s.files.List(ctx)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names, err
}

// Remove removes an installed or linked plugin. The files of an installed one
// are removed, unless they were edited: that takes discardEdits.
func (s *Store) Remove(ctx context.Context, name string, discardEdits bool) error {
	entry, err := s.files.Entry(ctx, name)
	if errors.Is(err, bundle.ErrNotInstalled) {
		removed := false
		err := s.changeLinks(ctx, func(links map[string]string) {
			_, removed = links[name]
			delete(links, name)
		})
		if err == nil && !removed {
			err = fmt.Errorf("it is not installed: 'agent plugins list' shows what is")
		}
		if err != nil {
			return &Error{name, err}
		}
		return nil
	}
	if err := s.files.Remove(ctx, name, discardEdits); err != nil {
		if errors.Is(err, bundle.ErrLocalEdits) {
			err = fmt.Errorf("%w: --discard-edits removes it nonetheless", err)
		}
		return &Error{name, err}
	}
	cache{CacheDir(s.home)}.forget(entry.Tree)
	return nil
}

// Link has the plugin in a folder used where it is, whatever is built there.
func (s *Store) Link(ctx context.Context, dir string) (Spec, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Spec{}, err
	}
	l, err := read(resolved(dir))
	if err != nil {
		return l.spec, err
	}
	if _, err := s.files.Entry(ctx, l.spec.Name); !errors.Is(err, bundle.ErrNotInstalled) {
		return l.spec, &Error{l.spec.Name, errors.Join(errors.New("it is installed: remove it first"), err)}
	}
	return l.spec, s.changeLinks(ctx, func(links map[string]string) { links[l.spec.Name] = l.dir })
}

// changeLinks changes the list of links; it is safe with several processes.
func (s *Store) changeLinks(ctx context.Context, change func(map[string]string)) error {
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
	links := map[string]string{}
	for _, l := range list {
		links[l.Name] = l.Dir
	}
	before := maps.Clone(links)
	if change(links); maps.Equal(before, links) {
		return nil
	}
	data, err := json.MarshalIndent(linksDocument{Version: 1, Links: links}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(data, '\n'), 0o600)
}

// Seal writes the checksums of a plugin's files into its plugin.json, so that
// who trusts that file trusts these files and no others. It returns their
// number.
func Seal(ctx context.Context, dir string) (int, error) {
	if _, err := ReadSpec(dir); err != nil {
		return 0, err
	}
	tree, err := bundle.Scan(ctx, dir, bundle.Limits{})
	if err != nil {
		return 0, err
	}
	sums := map[string]string{}
	for _, f := range tree.Files {
		if f.Path != SpecFile {
			sums[f.Path] = f.SHA256
		}
	}
	file := filepath.Join(dir, SpecFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	sealed, err := withChecksums(file, data, sums)
	if err != nil {
		return 0, err
	}
	return len(sums), atomicfile.Write(file, sealed, 0o644)
}

// withChecksums puts checksums into the text of a plugin.json; the rest stays
// as it stands there.
func withChecksums(name string, data []byte, sums map[string]string) ([]byte, error) {
	text, err := json.MarshalIndent(sums, "  ", "  ")
	if err != nil {
		return nil, err
	}
	var members struct {
		Checksums json.RawMessage `json:"checksums"`
	}
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	if members.Checksums != nil {
		if n := bytes.Count(data, members.Checksums); n != 1 {
			return nil, fmt.Errorf("%s: remove its checksums first", name)
		}
		data = bytes.Replace(data, members.Checksums, text, 1)
	} else {
		end := bytes.LastIndexByte(data, '}')
		head := bytes.TrimRight(data[:end], " \t\r\n")
		data = slices.Concat(head, []byte(",\n  \"checksums\": "), text, []byte("\n}\n"))
	}
	if _, err := ParseSpec(name, data); err != nil {
		return nil, err
	}
	return data, nil
}

// linksDocument is the form of the list of links.
type linksDocument struct {
	Version int               `json:"version"`
	Links   map[string]string `json:"links"`
}

// link is a plugin that is used where it lies.
type link struct{ Name, Dir string }

// linksFile is the file in the agent's home that lists the links.
const linksFile = "plugin-links.json"

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
		return nil, fmt.Errorf("%s is of version %d, which is not known here: update agent", file, doc.Version)
	}
	var list []link
	for _, name := range slices.Sorted(maps.Keys(doc.Links)) {
		list = append(list, link{name, doc.Links[name]})
	}
	return list, nil
}
