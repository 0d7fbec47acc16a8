package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/bundle"
)

// Installer installs skills into a folder, exactly as the user approved them,
// and maintains its lock file, see [bundle.Store]. It is safe for concurrent
// use, also by several processes.
type Installer struct {
	dir    string
	store  *bundle.Store
	client *http.Client
}

// skillLimits bound an installed skill.
var skillLimits = bundle.Limits{Files: 2000, Bytes: 100 << 20, FileBytes: 50 << 20}

// NewInstaller returns an installer for a folder, which need not exist. A nil
// client means [http.DefaultClient].
func NewInstaller(dir string, client *http.Client) *Installer {
	if client == nil {
		client = http.DefaultClient
	}
	return &Installer{dir, bundle.Open(dir, bundle.Options{Limits: skillLimits}), client}
}

// Dir returns the folder.
func (in *Installer) Dir() string { return in.dir }

// LockFile returns the path of the lock file.
func (in *Installer) LockFile() string { return in.store.LockFile() }

// Offer is a skill to install, with what the user has to approve.
type Offer struct {
	Skill    *Skill
	Origin   Origin // including the path of this skill
	Commit   string // if it comes from a repository
	Tree     bundle.Tree
	Scripts  []string
	Findings []Diagnostic          // of the scan; an empty list proves nothing
	LeftOut  []bundle.RefusedError // links, odd names and duplicates in its folder

	Before    *bundle.Entry   // the installed skill of that name, if any
	Changes   []bundle.Change // against Before
	MovedFrom string          // the commit of the tag when it was installed, if it moved

	dir string // the staged folder
}

// Batch is the offers of one source.
type Batch struct {
	Offers   []*Offer // by name
	Problems []Problem
	stage    *bundle.Stage
}

// Close removes the fetched files.
func (b *Batch) Close() error { return b.stage.Close() }

// Fetch downloads a source to a private directory and returns the skills in it.
// The caller closes the batch.
func (in *Installer) Fetch(ctx context.Context, o Origin) (*Batch, error) {
	return in.fetchAt(ctx, o, "")
}

func (in *Installer) fetchAt(ctx context.Context, o Origin, commit string) (_ *Batch, err error) {
	f, err := in.fetch(ctx, o, commit)
	if err != nil {
		return nil, err
	}
	b := &Batch{stage: f.stage}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	found, err := staged(f, b)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		offer, err := in.offer(ctx, f, s)
		if err != nil {
			return nil, err
		}
		b.Offers = append(b.Offers, offer)
	}
	if len(b.Offers) == 0 {
		if len(b.Problems) > 0 {
			return nil, fmt.Errorf("%s contains no readable skill: %w", o, b.Problems[0])
		}
		return nil, fmt.Errorf("%s contains no skill: no SKILL.md found", o)
	}
	slices.SortFunc(b.Offers, func(x, y *Offer) int { return strings.Compare(x.Skill.Name, y.Skill.Name) })
	return b, nil
}

// staged finds the skills in a fetched source: the source itself if it has a
// SKILL.md, else those below it and in the hidden folders of projects.
func staged(f *fetched, b *Batch) ([]*Skill, error) {
	top := f.stage.Root()
	if f.origin.Path != "" && f.origin.Kind != SourceWellKnown {
		top = filepath.Join(top, filepath.FromSlash(f.origin.Path))
		if info, err := os.Lstat(top); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s: no folder %s", f.origin, f.origin.Path)
		}
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		return nil, err
	}
	var all []found
	if name := manifestName(entries); name != "" {
		all = []found{newFound(&Place{Scope: ScopeUser, Dir: filepath.Dir(top)}, top, topName(f, top), name, fileState{})}
	} else {
		places := []string{top}
		for _, folder := range projectFolders {
			places = append(places, filepath.Join(top, filepath.FromSlash(folder)))
		}
		seen := map[string]bool{}
		for _, dir := range places {
			list, problems := walk(Place{Scope: ScopeUser, Dir: dir, Within: top}, seen)
			all, b.Problems = append(all, list...), append(b.Problems, problems...)
		}
	}
	var skills []*Skill
	for _, at := range all {
		s, problem := at.read()
		if problem != nil {
			b.Problems = append(b.Problems, *problem)
			continue
		}
		skills = append(skills, s)
	}
	return skills, nil
}

// topName is the fallback name of a skill at the top of a source.
func topName(f *fetched, top string) string {
	if f.origin.Path != "" {
		return path.Base(f.origin.Path)
	}
	if top != f.stage.Dir() {
		return filepath.Base(top)
	}
	name := path.Base(filepath.ToSlash(f.origin.Location))
	for _, ending := range append([]string{".git"}, archiveEndings...) {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// offer examines a fetched skill.
func (in *Installer) offer(ctx context.Context, f *fetched, s *Skill) (*Offer, error) {
	tree, err := bundle.Scan(ctx, s.Dir, skillLimits)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", s.Name, err)
	}
	o := &Offer{Skill: s, Origin: f.origin, Commit: f.commit, Tree: tree, Scripts: s.scriptNames(), Findings: s.scan(), dir: s.Dir}
	for i := range o.Findings {
		o.Findings[i].File = strings.TrimPrefix(strings.TrimPrefix(o.Findings[i].File, s.Dir), string(filepath.Separator))
	}
	if rel, err := filepath.Rel(f.stage.Root(), s.Dir); err == nil && rel != "." {
		o.Origin.Path = filepath.ToSlash(rel)
	}
	for _, r := range f.leftOut {
		at := filepath.Join(f.stage.Dir(), filepath.FromSlash(r.Path))
		if rel, err := filepath.Rel(s.Dir, at); err == nil && filepath.IsLocal(rel) {
			o.LeftOut = append(o.LeftOut, bundle.RefusedError{Path: filepath.ToSlash(rel), Reason: r.Reason})
		}
	}
	before, err := in.store.Entry(ctx, s.Name)
	switch {
	case errors.Is(err, bundle.ErrNotInstalled):
		return o, nil
	case err != nil:
		return nil, err
	}
	o.Before = &before
	o.Changes = bundle.Compare(bundle.Tree{Hash: before.Tree, Files: before.Files}, tree)
	if f.tag && before.Source.Ref == f.origin.Ref && before.Source.Commit != f.commit {
		o.MovedFrom = before.Source.Commit
	}
	return o, nil
}

// Diff returns the difference between a file and the installed one.
func (in *Installer) Diff(ctx context.Context, o *Offer, c bundle.Change) (string, error) {
	return bundle.Diff(ctx, in.store.Path(o.Skill.Name), o.dir, c)
}

// Terms are what the user approves in addition to the files. They are recorded
// in the lock file.
type Terms struct {
	Scripts      []string `json:"scripts,omitempty"`
	Toolsets     []string `json:"toolsets,omitempty"` // allowed to start
	Hooks        string   `json:"hooks,omitempty"`    // as in [Manifest]
	AllowedTools []string `json:"allowedTools,omitempty"`
	Triggers     Triggers `json:"triggers"`
	// Upstream is the tree of the source whose files the user edited and then
	// accepted; empty if the files are those of the source.
	Upstream string `json:"upstream,omitempty"`
}

// Terms returns all terms of the offer, including toolsets.
func (o *Offer) Terms() Terms {
	return Terms{Scripts: o.Scripts, Toolsets: o.Skill.Toolsets, Hooks: o.Skill.Hooks, AllowedTools: o.Skill.AllowedTools, Triggers: o.Skill.Triggers}
}

// SensitiveChanges lists the security-relevant changes of an update: scripts,
// toolsets, hooks, requested tools, triggers.
func (o *Offer) SensitiveChanges() []string {
	var list []string
	for _, c := range o.Changes {
		if strings.HasPrefix(c.Path, "scripts/") || strings.HasPrefix(c.Path, "toolsets/") || (c.New != nil && c.New.Executable) {
			list = append(list, fmt.Sprintf("%s: %s", c.Path, c.Kind))
		}
	}
	if o.MovedFrom != "" {
		list = append(list, fmt.Sprintf("the tag %s was moved from %s to %s", o.Origin.Ref, o.MovedFrom[:min(12, len(o.MovedFrom))], o.Commit[:min(12, len(o.Commit))]))
	}
	if o.Before == nil || o.Before.Consent == nil {
		return list
	}
	var before Terms
	if json.Unmarshal(o.Before.Consent.Terms, &before) != nil {
		return append(list, "the previous consent cannot be read")
	}
	now := o.Terms()
	if before.Hooks != now.Hooks {
		list = append(list, "its hooks changed")
	}
	if !slices.Equal(before.Toolsets, now.Toolsets) {
		list = append(list, "its toolsets changed")
	}
	if !slices.Equal(before.AllowedTools, now.AllowedTools) {
		list = append(list, "the tools that it requests changed")
	}
	if !slices.Equal(before.Triggers.Keywords, now.Triggers.Keywords) || !slices.Equal(before.Triggers.Verbs, now.Triggers.Verbs) || !slices.Equal(before.Triggers.Patterns, now.Triggers.Patterns) {
		list = append(list, "its triggers changed")
	}
	return list
}

// Edited reports whether the user edited an installed skill, accepted edits
// included. Upstream is the tree of its source at that time.
func (in *Installer) Edited(ctx context.Context, e bundle.Entry) (upstream string, edited bool, err error) {
	if _, err := os.Lstat(in.store.Path(e.Name)); errors.Is(err, fs.ErrNotExist) {
		return "", false, nil // nothing is left of it
	}
	_, changes, err := in.store.Verify(ctx, e.Name)
	upstream = cmp.Or(termsOf(e).Upstream, e.Tree)
	return upstream, len(changes) > 0 || upstream != e.Tree, err
}

// keepSuffix ends the names of folders that keep what the user edited.
const keepSuffix = ".orig"

// keep copies an installed skill to NAME.orig, or NAME.orig-2 and so on if that
// exists, and returns the path.
func (in *Installer) keep(name string) (string, error) {
	from := in.store.Path(name)
	to := from + keepSuffix
	for i := 2; ; i++ {
		err := os.Mkdir(to, 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		to = fmt.Sprint(from, keepSuffix, "-", i)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return "", errors.Join(fmt.Errorf("keeping your edits: %w", err), os.RemoveAll(to))
	}
	return to, nil
}

// Install installs an offer atomically and records the approved terms. What the
// user edited is kept in a folder, whose path it returns.
func (in *Installer) Install(ctx context.Context, o *Offer, terms Terms, now time.Time) (kept string, err error) {
	if o.Before != nil {
		_, edited, err := in.Edited(ctx, *o.Before)
		if err == nil && edited {
			kept, err = in.keep(o.Skill.Name)
		}
		if err != nil {
			return kept, fmt.Errorf("skill %s: %w", o.Skill.Name, err)
		}
	}
	return kept, in.place(ctx, o, terms, now, kept != "")
}

// place installs an offer; discard replaces an edited skill.
func (in *Installer) place(ctx context.Context, o *Offer, terms Terms, now time.Time, discard bool) (err error) {
	stage, err := in.store.Stage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	if err := stage.AddFolder(ctx, o.dir); err != nil {
		return err
	}
	text, err := json.Marshal(terms)
	if err != nil {
		return err
	}
	_, err = stage.Install(ctx, bundle.Install{
		Name: o.Skill.Name, Tree: o.Tree.Hash, Replace: o.Before != nil, Discard: discard,
		Source:  bundle.Source{Kind: string(o.Origin.Kind), Location: o.Origin.Location, Path: o.Origin.Path, Ref: o.Origin.Ref, Commit: o.Commit},
		Consent: &bundle.Consent{Tree: o.Tree.Hash, Given: now.UTC().Truncate(time.Second), Terms: text},
	})
	switch {
	case errors.Is(err, bundle.ErrLocalEdits):
		return fmt.Errorf("skill %s: %w: see agent skills verify %s; keep them with --accept or discard them with agent skills remove --force", o.Skill.Name, err, o.Skill.Name)
	case errors.Is(err, bundle.ErrInstalled):
		return fmt.Errorf("skill %s: %w: %s", o.Skill.Name, err, in.store.Path(o.Skill.Name))
	case err != nil:
		return fmt.Errorf("skill %s: %w", o.Skill.Name, err)
	}
	return nil
}

// Installed lists the installed skills. The error names the edited lock entries,
// which are omitted.
func (in *Installer) Installed(ctx context.Context) ([]bundle.Entry, error) {
	return in.store.List(ctx)
}

// OriginOf returns where an installed skill came from.
func OriginOf(e bundle.Entry) Origin {
	return Origin{Kind: SourceKind(e.Source.Kind), Location: e.Source.Location, Path: e.Source.Path, Ref: e.Source.Ref}
}

// Update fetches the current version of an installed skill. The batch has one
// offer, which has no changes if the skill is up to date.
func (in *Installer) Update(ctx context.Context, e bundle.Entry) (*Batch, error) {
	return in.refetch(ctx, e, "")
}

// FetchLocked fetches exactly what the lock file records: the commit of a
// repository, or the current content of any other source. Any difference is an
// error.
func (in *Installer) FetchLocked(ctx context.Context, e bundle.Entry) (*Batch, error) {
	b, err := in.refetch(ctx, e, e.Source.Commit)
	if err != nil {
		return nil, err
	}
	o := b.Offers[0]
	var wrong []string
	if e.Source.Commit != "" && o.Commit != e.Source.Commit {
		wrong = append(wrong, fmt.Sprintf("the commit is %s, but the lock file has %s", o.Commit, e.Source.Commit))
	}
	for _, c := range o.Changes {
		wrong = append(wrong, fmt.Sprintf("%s: %s", c.Path, c.Kind))
	}
	if o.Tree.Hash != e.Tree || len(wrong) > 0 {
		return nil, errors.Join(fmt.Errorf("skill %s from %s differs from the lock file: %s", e.Name, OriginOf(e), strings.Join(wrong, ", ")), b.Close())
	}
	return b, nil
}

// refetch fetches an installed skill from its origin.
func (in *Installer) refetch(ctx context.Context, e bundle.Entry, commit string) (*Batch, error) {
	o := OriginOf(e)
	b, err := in.fetchAt(ctx, o, commit)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	b.Offers = slices.DeleteFunc(b.Offers, func(o *Offer) bool { return o.Skill.Name != e.Name })
	if len(b.Offers) != 1 {
		return nil, errors.Join(fmt.Errorf("%s no longer contains the skill %s", o, e.Name), b.Close())
	}
	return b, nil
}

// Verify returns how the files of an installed skill differ from the approved
// ones.
func (in *Installer) Verify(ctx context.Context, name string) (bundle.Entry, []bundle.Change, error) {
	return in.store.Verify(ctx, name)
}

// Accept approves the user's local edits of an installed skill.
func (in *Installer) Accept(ctx context.Context, name string, now time.Time) (err error) {
	e, err := in.store.Entry(ctx, name)
	if err != nil {
		return fmt.Errorf("skill %s: %w", name, err)
	}
	f := &fetched{origin: OriginOf(e), commit: e.Source.Commit}
	if f.stage, err = in.store.Stage(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.stage.Close()) }()
	if err := f.stage.AddFolder(ctx, in.store.Path(name)); err != nil {
		return err
	}
	whole := *f
	whole.origin.Path = ""
	found, err := staged(&whole, &Batch{})
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("skill %s: its folder contains no readable skill", name)
	}
	o, err := in.offer(ctx, f, found[0])
	if err != nil {
		return err
	}
	o.Origin, o.Skill.Name, o.Before = OriginOf(e), name, nil
	if err := in.store.Remove(ctx, name, true); err != nil {
		return fmt.Errorf("skill %s: %w", name, err)
	}
	terms := o.Terms()
	if len(terms.Toolsets) > 0 {
		terms.Toolsets = termsOf(e).Toolsets
	}
	if terms.Upstream = cmp.Or(termsOf(e).Upstream, e.Tree); terms.Upstream == o.Tree.Hash {
		terms.Upstream = ""
	}
	if err := in.place(ctx, o, terms, now, false); err != nil {
		return errors.Join(err, os.CopyFS(in.store.Path(name), os.DirFS(o.dir)))
	}
	return nil
}

// Remove removes an installed skill. An edited one is only removed if discard is
// set.
func (in *Installer) Remove(ctx context.Context, name string, discard bool) error {
	if err := in.store.Remove(ctx, name, discard); err != nil {
		return fmt.Errorf("skill %s: %w", name, err)
	}
	return nil
}

// termsOf returns what the user approved; nothing if that cannot be read.
func termsOf(e bundle.Entry) (terms Terms) {
	if !e.Consented() || json.Unmarshal(e.Consent.Terms, &terms) != nil {
		return Terms{}
	}
	return terms
}

// Locks returns a lookup in the lock files of folders, for a [Library]. They are
// read on first use and again when they change.
func Locks(dirs ...string) func(folder string) map[string]Lock {
	return (&locks{dirs: slices.Clone(dirs), read: map[string]lockFile{}}).of
}

type locks struct {
	dirs []string
	mu   sync.Mutex
	read map[string]lockFile
}

// lockFile is a cached lock file.
type lockFile struct {
	state   fileState
	entries map[string]Lock // by name
}

func (l *locks) of(folder string) map[string]Lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, root := range l.dirs {
		real, err := filepath.EvalSymlinks(root)
		if err != nil || folder != real {
			continue
		}
		store := bundle.Open(root, bundle.Options{})
		info, err := os.Stat(store.LockFile())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return map[string]Lock{allNames: {Err: err}}
		}
		f, ok := l.read[root]
		if state := stateOf(info); !ok || f.state != state {
			f = lockFile{state, readLocks(store)}
			l.read[root] = f
		}
		return f.entries
	}
	return nil
}

// readLocks reads a lock file. If it cannot be read, no skill of its folder is
// used.
func readLocks(store *bundle.Store) map[string]Lock {
	locks := map[string]Lock{}
	entries, err := store.List(context.Background())
	for _, e := range entries {
		lock := Lock{Files: map[string]string{}, Toolsets: len(termsOf(e).Toolsets) > 0}
		for _, file := range e.Files {
			lock.Files[file.Path] = file.SHA256
		}
		if !e.Consented() {
			lock.Err = errors.New("not approved: install it with agent skills add")
		}
		locks[e.Name] = lock
	}
	edited := editedErrors(err)
	for _, one := range edited {
		locks[one.Name] = Lock{Err: one}
	}
	if err != nil && len(edited) == 0 {
		return map[string]Lock{allNames: {Err: err}}
	}
	return locks
}

// editedErrors collects the [bundle.EditedError]s in an error tree.
func editedErrors(err error) []*bundle.EditedError {
	switch e := err.(type) {
	case nil:
		return nil
	case *bundle.EditedError:
		return []*bundle.EditedError{e}
	case interface{ Unwrap() []error }:
		var all []*bundle.EditedError
		for _, one := range e.Unwrap() {
			all = append(all, editedErrors(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return editedErrors(e.Unwrap())
	}
	return nil
}
