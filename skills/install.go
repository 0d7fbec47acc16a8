package skills

import (
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

// Installer brings skills from elsewhere into a folder of skills, each as the
// person agreed to it, and keeps its lock file, see [bundle.Store]. It is safe
// for concurrent use, also by several processes.
type Installer struct {
	dir    string
	store  *bundle.Store
	client *http.Client
}

// skillLimits bound an installed skill.
var skillLimits = bundle.Limits{Files: 2000, Bytes: 100 << 20, FileBytes: 50 << 20}

// NewInstaller returns the installer of a folder, which need not exist. A nil
// client is the usual one.
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

// Offer is a skill that could be installed, and what there is to agree to.
type Offer struct {
	Skill    *Skill
	Origin   Origin // with the path of this skill
	Commit   string // of a repository
	Tree     bundle.Tree
	Scripts  []string
	Findings []Diagnostic // of the scan: none proves nothing

	Before  *bundle.Entry   // what is installed under the name
	Changes []bundle.Change // of its files
	Moved   string          // the tag stood for this commit when it was installed

	dir string // where it is staged
}

// Batch is the offers of one source.
type Batch struct {
	Offers   []*Offer // by name
	Problems []Problem
	stage    *bundle.Stage
}

// Close removes what was fetched.
func (b *Batch) Close() error { return b.stage.Close() }

// Fetch brings what a source holds to a private place and says what there is to
// agree to. The caller closes the batch.
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
			return nil, fmt.Errorf("%s holds no skill that can be read: %w", o, b.Problems[0])
		}
		return nil, fmt.Errorf("%s holds no skill: there is no SKILL.md in it", o)
	}
	slices.SortFunc(b.Offers, func(x, y *Offer) int { return strings.Compare(x.Skill.Name, y.Skill.Name) })
	return b, nil
}

// staged finds the skills that were fetched. A SKILL.md at the top makes the
// whole a skill; and hidden folders are where projects keep skills.
func staged(f *fetched, b *Batch) ([]*Skill, error) {
	top := f.stage.Root()
	if f.origin.Path != "" && f.origin.Kind != SourceWellKnown {
		top = filepath.Join(top, filepath.FromSlash(f.origin.Path))
		if info, err := os.Lstat(top); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s: there is no folder %s in it", f.origin, f.origin.Path)
		}
	}
	entries, err := os.ReadDir(top)
	if err != nil {
		return nil, err
	}
	var all []found
	if name := manifestName(entries); name != "" {
		all = []found{{place: Place{Scope: ScopeUser, Dir: filepath.Dir(top)}, dir: top, rel: topName(f, top), file: name}}
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

// topName is what a skill at the top of a source is called, if it does not say.
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

// offer looks at a fetched skill.
func (in *Installer) offer(ctx context.Context, f *fetched, s *Skill) (*Offer, error) {
	tree, err := bundle.Scan(ctx, s.Dir, skillLimits)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", s.Name, err)
	}
	o := &Offer{Skill: s, Origin: f.origin, Commit: f.commit, Tree: tree, Scripts: s.scriptNames(), Findings: s.Scan(), dir: s.Dir}
	for i := range o.Findings {
		o.Findings[i].File = strings.TrimPrefix(strings.TrimPrefix(o.Findings[i].File, s.Dir), string(filepath.Separator))
	}
	if rel, err := filepath.Rel(f.stage.Root(), s.Dir); err == nil && rel != "." {
		o.Origin.Path = filepath.ToSlash(rel)
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
		o.Moved = before.Source.Commit
	}
	return o, nil
}

// Diff returns how a file differs from the installed one.
func (in *Installer) Diff(ctx context.Context, o *Offer, c bundle.Change) (string, error) {
	return bundle.Diff(ctx, in.store.Path(o.Skill.Name), o.dir, c)
}

// Terms are what the person agrees to beside the files. They are written into
// the lock file.
type Terms struct {
	Scripts      []string `json:"scripts,omitempty"`
	Toolsets     []string `json:"toolsets,omitempty"` // that may be started
	AllowedTools []string `json:"allowedTools,omitempty"`
	Triggers     Triggers `json:"triggers"`
}

// Terms are what there is to agree to, toolsets included.
func (o *Offer) Terms() Terms {
	return Terms{Scripts: o.Scripts, Toolsets: o.Skill.Toolsets, AllowedTools: o.Skill.AllowedTools, Triggers: o.Skill.Triggers}
}

// Grave lists what of an update is more than other words: scripts, toolsets,
// tools that it asks for, triggers.
func (o *Offer) Grave() []string {
	var list []string
	for _, c := range o.Changes {
		if strings.HasPrefix(c.Path, "scripts/") || strings.HasPrefix(c.Path, "toolsets/") || (c.New != nil && c.New.Executable) {
			list = append(list, fmt.Sprintf("%s: %s", c.Path, c.Kind))
		}
	}
	if o.Moved != "" {
		list = append(list, fmt.Sprintf("the tag %s was moved: it stood for %s and stands for %s now", o.Origin.Ref, o.Moved[:min(12, len(o.Moved))], o.Commit[:min(12, len(o.Commit))]))
	}
	if o.Before == nil || o.Before.Consent == nil {
		return list
	}
	var before Terms
	if json.Unmarshal(o.Before.Consent.Terms, &before) != nil {
		return append(list, "what was agreed to before cannot be read")
	}
	now := o.Terms()
	if !slices.Equal(before.Toolsets, now.Toolsets) {
		list = append(list, "its toolsets are others")
	}
	if !slices.Equal(before.AllowedTools, now.AllowedTools) {
		list = append(list, "it asks for other tools")
	}
	if !slices.Equal(before.Triggers.Keywords, now.Triggers.Keywords) || !slices.Equal(before.Triggers.Verbs, now.Triggers.Verbs) || !slices.Equal(before.Triggers.Patterns, now.Triggers.Patterns) {
		list = append(list, "its triggers are others")
	}
	return list
}

// Install puts an offer into its place, in one step, with what the person
// agreed to. Local edits are not overwritten.
func (in *Installer) Install(ctx context.Context, o *Offer, terms Terms, now time.Time) (err error) {
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
		Name: o.Skill.Name, Tree: o.Tree.Hash, Replace: o.Before != nil,
		Source:  bundle.Source{Kind: string(o.Origin.Kind), Location: o.Origin.Location, Path: o.Origin.Path, Ref: o.Origin.Ref, Commit: o.Commit},
		Consent: &bundle.Consent{Tree: o.Tree.Hash, Given: now.UTC().Truncate(time.Second), Terms: text},
	})
	switch {
	case errors.Is(err, bundle.ErrLocalEdits):
		return fmt.Errorf("skill %s: %w: agent skills verify %s shows them; --accept keeps them, agent skills remove --force drops them", o.Skill.Name, err, o.Skill.Name)
	case errors.Is(err, bundle.ErrInstalled):
		return fmt.Errorf("skill %s: %w: %s", o.Skill.Name, err, in.store.Path(o.Skill.Name))
	case err != nil:
		return fmt.Errorf("skill %s: %w", o.Skill.Name, err)
	}
	return nil
}

// Installed lists what is installed. Entries that somebody edited are named in
// the error, beside the others.
func (in *Installer) Installed(ctx context.Context) ([]bundle.Entry, error) {
	return in.store.List(ctx)
}

// OriginOf is where an installed skill came from.
func OriginOf(e bundle.Entry) Origin {
	return Origin{Kind: SourceKind(e.Source.Kind), Location: e.Source.Location, Path: e.Source.Path, Ref: e.Source.Ref}
}

// Update fetches an installed skill from where it came from. The batch has one
// offer; it has no changes if nothing changed there.
func (in *Installer) Update(ctx context.Context, e bundle.Entry) (*Batch, error) {
	return in.again(ctx, e, "")
}

// Frozen fetches what the lock file says, to the byte: of a repository the
// commit, of anything else what is there now. What differs is an error.
func (in *Installer) Frozen(ctx context.Context, e bundle.Entry) (*Batch, error) {
	b, err := in.again(ctx, e, e.Source.Commit)
	if err != nil {
		return nil, err
	}
	o := b.Offers[0]
	var wrong []string
	if e.Source.Commit != "" && o.Commit != e.Source.Commit {
		wrong = append(wrong, fmt.Sprintf("the commit is %s, and the lock file says %s", o.Commit, e.Source.Commit))
	}
	for _, c := range o.Changes {
		wrong = append(wrong, fmt.Sprintf("%s: %s", c.Path, c.Kind))
	}
	if o.Tree.Hash != e.Tree || len(wrong) > 0 {
		return nil, errors.Join(fmt.Errorf("skill %s from %s is not what the lock file says: %s", e.Name, OriginOf(e), strings.Join(wrong, ", ")), b.Close())
	}
	return b, nil
}

// again fetches a skill that is installed.
func (in *Installer) again(ctx context.Context, e bundle.Entry, commit string) (*Batch, error) {
	o := OriginOf(e)
	b, err := in.fetchAt(ctx, o, commit)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", e.Name, err)
	}
	b.Offers = slices.DeleteFunc(b.Offers, func(o *Offer) bool { return o.Skill.Name != e.Name })
	if len(b.Offers) != 1 {
		return nil, errors.Join(fmt.Errorf("%s does not hold the skill %s any more", o, e.Name), b.Close())
	}
	return b, nil
}

// Verify says how the files of an installed skill differ from what was agreed
// to.
func (in *Installer) Verify(ctx context.Context, name string) (bundle.Entry, []bundle.Change, error) {
	return in.store.Verify(ctx, name)
}

// Accept takes over what the person changed in an installed skill: from here on
// that is what was agreed to.
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
		return fmt.Errorf("skill %s: its folder holds no skill that can be read", name)
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
		terms.Toolsets = agreedToolsets(e)
	}
	if err := in.Install(ctx, o, terms, now); err != nil {
		return errors.Join(err, os.CopyFS(in.store.Path(name), os.DirFS(o.dir)))
	}
	return nil
}

// Remove removes an installed skill. Edited ones only if the edits are to be
// discarded.
func (in *Installer) Remove(ctx context.Context, name string, discard bool) error {
	if err := in.store.Remove(ctx, name, discard); err != nil {
		return fmt.Errorf("skill %s: %w", name, err)
	}
	return nil
}

func agreedToolsets(e bundle.Entry) []string {
	var terms Terms
	if !e.Consented() || json.Unmarshal(e.Consent.Terms, &terms) != nil {
		return nil
	}
	return terms.Toolsets
}

// Locks returns what the lock files of folders say, for a [Library]. They are
// read when they are wanted, and again when they changed.
func Locks(dirs ...string) func(dir string) (Lock, bool) {
	return (&locks{dirs: slices.Clone(dirs), read: map[string]lockFile{}}).of
}

type locks struct {
	dirs []string
	mu   sync.Mutex
	read map[string]lockFile
}

// lockFile is a lock file as it was read.
type lockFile struct {
	changed time.Time
	size    int64
	entries map[string]Lock // by name
	err     error           // it cannot be read: then nothing beside it is used
}

func (l *locks) of(dir string) (Lock, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, root := range l.dirs {
		real, err := filepath.EvalSymlinks(root)
		if err != nil || filepath.Dir(dir) != real {
			continue
		}
		store := bundle.Open(root, bundle.Options{})
		info, err := os.Stat(store.LockFile())
		if errors.Is(err, fs.ErrNotExist) {
			return Lock{}, false
		}
		f, ok := l.read[root]
		if err == nil && (!ok || !f.changed.Equal(info.ModTime()) || f.size != info.Size()) {
			f = readLocks(store)
			f.changed, f.size = info.ModTime(), info.Size()
			l.read[root] = f
		}
		if err = errors.Join(err, f.err); err != nil {
			return Lock{Err: err}, true
		}
		lock, ok := f.entries[filepath.Base(dir)]
		return lock, ok
	}
	return Lock{}, false
}

func readLocks(store *bundle.Store) lockFile {
	f := lockFile{entries: map[string]Lock{}}
	entries, err := store.List(context.Background())
	for _, e := range entries {
		lock := Lock{Files: map[string]string{}, Toolsets: len(agreedToolsets(e)) > 0}
		for _, file := range e.Files {
			lock.Files[file.Path] = file.SHA256
		}
		if !e.Consented() {
			lock.Err = errors.New("nobody agreed to it: install it with agent skills add")
		}
		f.entries[e.Name] = lock
	}
	edited := editedErrors(err)
	for _, one := range edited {
		f.entries[one.Name] = Lock{Err: one}
	}
	if err != nil && len(edited) == 0 {
		f.err = err
	}
	return f
}

// editedErrors takes joined errors apart.
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
