package plugins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Store manages the plugins in an agent's home. Adding one takes three steps:
// Prepare assembles the files without running any of them; the user reviews and
// approves the [Candidate]; Install starts the plugin to get its description and
// installs it, or changes nothing.
type Store struct {
	home       string
	files      *bundle.Store
	supervisor *proc.Supervisor
}

// openStore returns the store of a home, which need not exist. The supervisor
// is used to run the go command.
func openStore(home string, s *proc.Supervisor) *Store {
	return &Store{home, bundle.Open(storeDir(home), bundle.Options{}), s}
}

// Candidate is a plugin to add. Close discards it if it was not installed.
type Candidate struct {
	Spec    Spec
	Source  bundle.Source
	Tree    bundle.Tree
	Before  *Spec           // the installed plugin of that name; may be nil
	Changes []bundle.Change // of its files against Before
	// Bundle is all that the plugin holds. Without a program, Spec has only a name,
	// version and summary.
	Bundle  *bundles.Bundle
	Former  *bundles.Bundle       // of Before; may be nil
	LeftOut []bundle.RefusedError // links and the like
	Entry   json.RawMessage       // of a marketplace

	store *Store
	stage *bundle.Stage
}

// Prepare assembles a plugin from a folder, an archive, a repository (OWNER/REPO[@REF]
// or URL[#FOLDER]), npm:NAME[@VERSION], NAME@MARKETPLACE, or a Go package PATH[@VERSION]. A folder that is
// a Go module is built with the go command, which does not run any of its code.
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
	case listed().MatchString(source):
		err = c.fromMarketplace(ctx, source)
	case remote(source):
		err = c.fetch(ctx, source)
	case looksLikePackage(source):
		err = c.fromPackage(ctx, source)
	default:
		err = fmt.Errorf("%s: no such folder or archive, and no OWNER/REPO, URL, npm:NAME or Go package such as example.org/weather@latest", source)
	}
	if err == nil {
		err = c.restage(ctx)
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
	c.Source = bundle.Source{Kind: "folder", Location: dir}
	if err := c.stage.AddFolder(ctx, dir); err != nil {
		return err
	}
	program, err := goProgram(dir, c.stage.Root())
	if err != nil || program == "" {
		return err
	}
	return c.store.build(ctx, dir, program, ".")
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

// looksLikePackage reports whether text may be the path of a Go package: whether
// its first element is a host.
func looksLikePackage(text string) bool {
	host, rest, ok := strings.Cut(text, "/")
	return ok && rest != "" && strings.Contains(host, ".") && !strings.HasPrefix(text, ".") && !strings.Contains(text, "://")
}

// fromPackage builds a Go package and takes the plugin.json in its folder.
func (c *Candidate) fromPackage(ctx context.Context, source string) error {
	pkg, version, _ := strings.Cut(source, "@")
	if version == "" {
		version = "latest"
	}
	c.Source = bundle.Source{Kind: "go", Location: pkg, Ref: version}
	dir, err := sandbox.NewTempDir()
	if err != nil {
		return err
	}
	defer dir.Remove()
	work := dir.Path
	mod := "module build\n"
	if err := os.WriteFile(filepath.Join(work, "go.mod"), []byte(mod), 0o600); err != nil {
		return err
	}
	if err := c.store.runGo(ctx, work, nil, "get", pkg+"@"+version); err != nil {
		return err
	}
	var listed bytes.Buffer
	if err := c.store.runGo(ctx, work, &listed, "list", "-f", "{{.Name}} {{.Dir}}", pkg); err != nil {
		return err
	}
	name, root, _ := strings.Cut(strings.TrimSpace(listed.String()), " ")
	if name != "main" {
		return fmt.Errorf("%s is not a plugin: it is the package %s, expected package main", pkg, name)
	}
	data, err := os.ReadFile(filepath.Join(root, SpecFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not a plugin: no %s next to its main package", pkg, SpecFile)
	}
	if err != nil {
		return err
	}
	spec, err := parseSpec(pkg+"/"+SpecFile, data)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.stage.Root(), SpecFile), data, 0o644); err != nil {
		return err
	}
	program, err := spec.program(c.stage.Root())
	switch {
	case err != nil:
		return err
	case program == "":
		return fmt.Errorf("%s: its command must be a program in its folder, such as ./weather", pkg)
	}
	return c.store.build(ctx, work, program, pkg)
}

// build builds a Go package. The tag omits gRPC's debugging pages, which are a
// third of a plugin's size, and the flags what only debuggers read: all of it is
// compared with its checksum before the plugin starts.
func (s *Store) build(ctx context.Context, dir, program, pkg string) error {
	return s.runGo(ctx, dir, nil, "build", "-tags=grpcnotrace", "-trimpath", "-ldflags=-s -w", "-o", program, pkg)
}

// downloadNames are variables that the go command needs to download modules. They
// may contain a password.
var downloadNames = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "GOPROXY"}

// runGo runs the go command. If it fails, the error contains its output.
func (s *Store) runGo(ctx context.Context, dir string, stdout io.Writer, args ...string) error {
	var out bytes.Buffer
	spec := proc.Spec{
		Path: "go", Args: args, Dir: dir, Stdout: &out, Stderr: &out,
		// Without cgo, a build runs no program that the package chooses.
		Env: append(proc.FilterEnv(os.Environ(), proc.InheritAll, downloadNames...), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -mod=mod", "GOWORK=off"),
	}
	if stdout != nil {
		spec.Stdout = stdout
	}
	p, err := s.supervisor.Start(ctx, spec)
	if err != nil {
		return fmt.Errorf("cannot start the go command, which builds Go plugins: %w; install Go, or add a folder with the built program", err)
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

// examine reads the assembled plugin, and the one that it would replace.
func (c *Candidate) examine(ctx context.Context) (err error) {
	root := c.stage.Root()
	if c.Bundle, err = bundles.Read(root, nameOf(c.Source), c.Entry); err != nil {
		if _, spec := ReadSpec(root); errors.Is(err, bundles.ErrNone) || !errors.Is(spec, errNoSpec) {
			err = cmp.Or(spec, err)
		}
		return errors.New(strings.NewReplacer(root+string(filepath.Separator), "", root, c.From()).Replace(err.Error()))
	}
	for _, r := range c.LeftOut {
		c.Bundle.Unusable = append(c.Bundle.Unusable, bundles.Unusable{Kind: "file", Name: r.Path, Reason: r.Reason})
	}
	if c.Spec, err = c.program(ctx); err != nil {
		return err
	}
	if c.Tree, err = c.stage.Tree(ctx); err != nil {
		return err
	}
	entry, edits, err := c.store.files.Verify(ctx, c.Spec.Name)
	_, gone := os.Lstat(c.store.files.Path(c.Spec.Name))
	former := bundle.Tree{Hash: entry.Tree, Files: entry.Files}
	switch {
	case errors.Is(err, bundle.ErrNotInstalled):
		return c.notLinked()
	case err != nil:
		return err
	case errors.Is(gone, fs.ErrNotExist):
		former = bundle.Tree{}
	case len(edits) > 0:
		return c.wrap(&ChecksumError{Plugin: c.Spec.Name, Changes: edits})
	}
	c.Changes = bundle.Compare(former, c.Tree)
	t := termsOf(entry)
	c.Former, _ = bundles.Read(c.store.files.Path(c.Spec.Name), c.Spec.Name, t.Entry) // if it is unreadable, everything is new
	before, err := ReadSpec(c.store.files.Path(c.Spec.Name))
	if err != nil {
		before = Spec{Name: c.Spec.Name, Version: t.Version} // it is unreadable: treat everything as new
	}
	c.Before = &before
	return nil
}

// program reads and checks the plugin's program, if it has one.
func (c *Candidate) program(ctx context.Context) (Spec, error) {
	root, b := c.stage.Root(), c.Bundle
	if !b.Program {
		return Spec{Name: b.Name, Version: b.Version, Summary: b.Summary}, nil
	}
	spec, err := ReadSpec(root)
	if err != nil {
		return spec, err
	}
	argv, err := spec.argv(root)
	if err == nil {
		err = checkProgram(argv[0])
	}
	if err == nil && len(spec.Checksums) > 0 {
		err = verifySums(ctx, root, spec)
	}
	if err != nil {
		return spec, &Error{spec.Name, err}
	}
	return spec, nil
}

func (c *Candidate) notLinked() error {
	links, err := readLinks(c.store.home)
	if err == nil && slices.ContainsFunc(links, func(l link) bool { return l.Name == c.Spec.Name }) {
		err = c.wrap(errors.New("it is linked to a folder: remove the link first"))
	}
	return err
}

func (c *Candidate) wrap(err error) error { return &Error{c.Spec.Name, err} }

// Visible returns the directories that the plugin reads besides what its manifest
// says: the installation of its program.
func (c *Candidate) Visible(home string) []string {
	if !c.Bundle.Program {
		return nil
	}
	return c.Spec.Visible(c.stage.Root(), home)
}

// From returns the source, in the form that Prepare takes.
func (c *Candidate) From() string { return sourceText(c.Source) }

// Unchanged reports whether the same files are already installed.
func (c *Candidate) Unchanged() bool { return c.Before != nil && len(c.Changes) == 0 }

// NewPermissions returns what the candidate may do in addition to the installed
// plugin.
func (c *Candidate) NewPermissions() []string {
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

// Install starts the plugin in the host, confined to its manifest, to get its
// description, and installs it. Call it only after the user approved. It also
// returns how the description differs from the previous one.
func (c *Candidate) Install(ctx context.Context, h *Host) (desc *toolproto.Description, diff []string, err error) {
	if !c.Bundle.Program {
		return nil, nil, c.place(ctx)
	}
	trial := h.newPlugin(found{name: c.Spec.Name, scope: User, origin: &staged{c.stage.Root(), c.Tree.Hash}})
	desc, err = trial.describe(ctx)
	if err = errors.Join(err, trial.Close()); err != nil {
		return nil, nil, err
	}
	if c.Before != nil {
		if entry, err := c.store.files.Entry(ctx, c.Spec.Name); err == nil {
			if old := h.cache.load(c.Before, entry.Tree); old != nil {
				diff = differences(old, desc)
			}
		}
	}
	return desc, diff, c.place(ctx)
}

// place installs the files with the user's consent.
func (c *Candidate) place(ctx context.Context) error {
	text, err := json.Marshal(terms{Spec: c.Spec, Pieces: true, NoProgram: !c.Bundle.Program, Entry: c.Entry, Hooked: c.Bundle.HookPoints()})
	if err != nil {
		return err
	}
	_, err = c.stage.Install(ctx, bundle.Install{
		Name: c.Spec.Name, Tree: c.Tree.Hash, Source: c.Source, Replace: c.Before != nil,
		Consent: &bundle.Consent{Tree: c.Tree.Hash, Given: time.Now(), Terms: text},
	})
	return err
}

// staged is the origin of a plugin that is being installed.
type staged struct{ dir, hash string }

func (*staged) stamp() string                         { return "" }
func (*staged) verify(context.Context, *loaded) error { return nil }
func (o *staged) load(context.Context) (loaded, error) {
	l, err := read(o.dir)
	l.hash = o.hash
	return l, err
}

// Close removes the assembled files.
func (c *Candidate) Close() error { return c.stage.Close() }

// Source returns where an installed plugin came from, in the form that Prepare
// takes.
func (s *Store) Source(ctx context.Context, name string) (string, error) {
	entry, err := s.files.Entry(ctx, name)
	if err != nil {
		return "", &Error{name, err}
	}
	return sourceText(entry.Source), nil
}

// Remove removes an installed plugin with its files, or the link to a linked
// one. Edited files are only removed if discardEdits is set.
func (s *Store) Remove(ctx context.Context, name string, discardEdits bool) error {
	entry, err := s.files.Entry(ctx, name)
	if errors.Is(err, bundle.ErrNotInstalled) {
		removed := false
		err := s.changeLinks(ctx, func(links map[string]link) {
			_, removed = links[name]
			delete(links, name)
		})
		if err == nil && !removed {
			err = fmt.Errorf("it is not installed: see 'agent plugins list'")
		}
		if err != nil {
			return &Error{name, err}
		}
		return nil
	}
	if err := s.files.Remove(ctx, name, discardEdits); err != nil {
		if errors.Is(err, bundle.ErrLocalEdits) {
			err = fmt.Errorf("%w: use --discard-edits to remove it anyway", err)
		}
		return &Error{name, err}
	}
	cache{cacheDir(s.home)}.forget(entry.Tree)
	return nil
}

// Seal writes the checksums of a plugin's files into its plugin.json, so that
// trust in that file covers exactly these files. It returns their number.
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

// withChecksums sets the checksums in the text of a plugin.json and leaves the
// rest unchanged.
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
			return nil, fmt.Errorf("%s: cannot replace the checksums: remove them first", name)
		}
		data = bytes.Replace(data, members.Checksums, text, 1)
	} else {
		end := bytes.LastIndexByte(data, '}')
		head := bytes.TrimRight(data[:end], " \t\r\n")
		data = slices.Concat(head, []byte(",\n  \"checksums\": "), text, []byte("\n}\n"))
	}
	if _, err := parseSpec(name, data); err != nil {
		return nil, err
	}
	return data, nil
}
