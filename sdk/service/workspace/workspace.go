package workspace

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/snapshot"
	"github.com/seed-009c0928/agent/core/store"
)

// Spec says what a session works in. The zero Spec is nothing.
type Spec struct {
	// Directory is a name, of a directory below the data of the service which all
	// sessions of the tenant share that name it, or an absolute path, which the operator
	// must have allowed. New is the name of one for this session alone.
	Directory string `json:"directory,omitempty"`
	Git       string `json:"git,omitempty"`      // the address of a repository
	Revision  string `json:"revision,omitempty"` // of Git: a branch, tag or commit; empty = its HEAD
}

// New as [Spec].Directory is an empty directory for one session.
const New = "new"

// Options configure a [Root]. Dir is required.
type Options struct {
	Dir     string   // for the data of all workspaces; it is created
	Allow   []string // absolute directories of this machine that sessions may work in, or below
	Schemes []string // of git addresses; nil = https only. "file" is for tests and trusted users
	// Credentials returns the user and password for a git address, empty without.
	Credentials func(ctx context.Context, address string) (user, password string, err error)
}

// Root has the workspaces of this machine. It is safe for concurrent use.
type Root struct {
	opts Options
	id   string

	mu   sync.Mutex
	busy map[string]*sync.Mutex // by session
}

// Errors of workspaces.
var (
	ErrNone      = errors.New("the session has no workspace")
	ErrElsewhere = errors.New("the workspace is on another machine")
	ErrTooLarge  = errors.New("the file is too large")
)

// RefusedError says why a [Spec] is not possible here.
type RefusedError struct{ Message string }

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// Open opens the workspaces below a directory.
func Open(o Options) (*Root, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("workspace.Open: Dir is %q: an absolute path is required", o.Dir)
	}
	if o.Schemes == nil {
		o.Schemes = []string{"https"}
	}
	o.Allow = slices.Clone(o.Allow)
	for i, dir := range o.Allow {
		resolved, err := filepath.EvalSymlinks(dir)
		if err != nil || !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("workspace.Open: the allowed directory %q: use the absolute path of one that is there", dir)
		}
		o.Allow[i] = resolved
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "id")
	if f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_, err = f.WriteString(rand.Text())
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	id, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return &Root{opts: o, id: string(id), busy: map[string]*sync.Mutex{}}, nil
}

// ID identifies the directory: that of a workspace on another machine differs.
func (r *Root) ID() string { return r.id }

var revision = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$`)

// Check says why a spec is not possible, as a *[RefusedError].
func (r *Root) Check(s Spec) error {
	switch {
	case s.Directory != "" && s.Git != "":
		return refuse("workspace: use directory or git, not both")
	case s.Git == "" && s.Revision != "":
		return refuse("workspace: a revision needs git")
	case filepath.IsAbs(s.Directory):
		_, err := r.allowed(s.Directory)
		return err
	case s.Directory != "":
		if err := store.CheckID(s.Directory); err != nil {
			return refuse("workspace: directory %.100q: use a name of letters, digits, - and _, %q, or an absolute path", s.Directory, New)
		}
	case s.Git != "":
		return r.checkGit(s)
	}
	return nil
}

func (r *Root) checkGit(s Spec) error {
	u, err := url.Parse(s.Git)
	switch {
	case err != nil || u.Opaque != "" || strings.ContainsFunc(s.Git, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return refuse("workspace: git %.200q: use an address such as https://example.com/repository.git", s.Git)
	case !slices.Contains(r.opts.Schemes, u.Scheme):
		return refuse("workspace: git addresses begin with %s:// here", strings.Join(r.opts.Schemes, ":// or "))
	case u.User != nil && u.Scheme != "ssh" || passworded(u):
		return refuse("workspace: a git address must not contain a user or password: the operator of the service sets them")
	case u.Scheme != "file" && u.Host == "" || strings.HasPrefix(u.Host, "-"):
		return refuse("workspace: git %.200q has no host", s.Git)
	case s.Revision != "" && (!revision().MatchString(s.Revision) || strings.Contains(s.Revision, "..")):
		return refuse("workspace: revision %.100q: use a branch, a tag or a full commit hash", s.Revision)
	}
	return nil
}

func passworded(u *url.URL) bool {
	_, set := u.User.Password()
	return set
}

// allowed returns the real path of a directory that the operator allows.
func (r *Root) allowed(dir string) (string, error) {
	resolved, err := filepath.EvalSymlinks(dir)
	if err == nil {
		for _, top := range r.opts.Allow {
			if rel, err := filepath.Rel(top, resolved); err == nil && filepath.IsLocal(rel) {
				if info, err := os.Stat(resolved); err == nil && info.IsDir() {
					return resolved, nil
				}
			}
		}
	}
	// The same words whether it is there or not.
	return "", refuse("workspace: directory %.200q is not there, or the operator of the service does not allow it", dir)
}

// note is what is known of a prepared workspace.
type note struct {
	Dir  string `json:"dir"`
	Base string `json:"base"` // the snapshot before the first input
}

// home is the directory with what belongs to the workspace of a session.
func (r *Root) home(tenant, id string) (string, error) {
	if err := errors.Join(store.CheckID(tenant), store.CheckID(id)); err != nil {
		return "", err
	}
	return filepath.Join(r.opts.Dir, "sessions", tenant, id), nil
}

func (r *Root) lock(home string) (unlock func()) {
	m := r.mutex(home)
	m.Lock()
	return m.Unlock
}

func (r *Root) mutex(home string) *sync.Mutex {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.busy[home]
	if m == nil {
		m = &sync.Mutex{}
		r.busy[home] = m
	}
	return m
}

// Prepare returns the directory of a session, which it makes first if it is new: empty
// for the zero Spec. The session must have one worker.
func (r *Root) Prepare(ctx context.Context, tenant, id string, s Spec) (dir string, err error) {
	if s == (Spec{}) {
		return "", nil
	}
	if err := r.Check(s); err != nil {
		return "", err
	}
	home, err := r.home(tenant, id)
	if err != nil {
		return "", err
	}
	defer r.lock(home)()
	if n, err := readNote(home); !errors.Is(err, ErrNone) {
		return n.Dir, err
	}
	if dir, err = r.make(ctx, tenant, home, s); err != nil {
		return "", err
	}
	if err := r.commit(ctx, home, dir); err != nil {
		return "", fmt.Errorf("workspace of session %s: %w", id, err)
	}
	return dir, nil
}

// commit notes that a directory is a session's workspace, as it is now.
func (r *Root) commit(ctx context.Context, home, dir string) error {
	base, err := first(ctx, home, dir)
	if err != nil {
		return err
	}
	return writeNote(home, note{Dir: dir, Base: base})
}

func writeNote(home string, n note) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(home, "workspace.json"), data, 0o600)
}

func (r *Root) make(ctx context.Context, tenant, home string, s Spec) (dir string, err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	dir = filepath.Join(home, "work")
	switch {
	case s.Git != "":
		return dir, r.clone(ctx, dir, s)
	case filepath.IsAbs(s.Directory):
		return r.allowed(s.Directory)
	case s.Directory != New:
		dir = filepath.Join(r.opts.Dir, "directories", tenant, s.Directory)
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// Delete deletes the workspace of a session, but not a directory that it shares.
func (r *Root) Delete(tenant, id string) error {
	home, err := r.home(tenant, id)
	if err != nil {
		return err
	}
	defer r.lock(home)()
	return errors.Join(os.RemoveAll(home), os.RemoveAll(home+nextSuffix))
}

func readNote(home string) (n note, err error) {
	data, err := os.ReadFile(filepath.Join(home, "workspace.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return n, ErrNone
	}
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	return n, err
}

// Limits of snapshots. Larger files are in no difference.
const (
	maxFiles    = 100_000
	maxFileSize = 4 << 20
)

func openSnapshots(home, dir string) (*snapshot.Workspace, error) {
	return snapshot.Open(snapshot.Options{Root: dir, Dir: filepath.Join(home, "snapshots"), MaxFiles: maxFiles, MaxFileSize: maxFileSize})
}

// first takes the snapshot that differences begin at.
func first(ctx context.Context, home, dir string) (id string, err error) {
	w, err := openSnapshots(home, dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	s, err := w.Take(ctx, snapshot.TakeOptions{})
	if err != nil {
		return "", err
	}
	return s.ID, w.Keep("base", s.ID)
}
