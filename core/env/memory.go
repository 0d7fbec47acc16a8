package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// memoryHome is the home directory in every [Memory].
const memoryHome = "/home/user"

// memoryEpoch is the modification time of the initial files of a [Memory].
var memoryEpoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Memory is an in-memory environment: a file tree without symbolic links and, if
// Exec is set, a fake shell. Its paths have slashes on every platform.
// Modification times are deterministic: one second for each change since
// 2000-01-01.
//
// It is safe for concurrent use once Exec is set.
type Memory struct {
	// Exec runs a command to its end, in its own goroutine. Dir is resolved;
	// Stdin, Stdout and Stderr are not nil; the command's environment is
	// Command.Env alone. It must return when ctx is done. Nil means that the
	// environment has no shell.
	Exec func(ctx context.Context, cmd core.Command) (core.Exit, error)

	dir  string
	mu   sync.RWMutex
	root *memoryNode
	now  time.Time
}

var _ core.Environment = (*Memory)(nil)

// NewMemory returns an environment with the working directory dir, or
// "/workspace" if dir is empty. The files map paths, absolute or relative to
// dir, to content. A path with a trailing slash is a directory. NewMemory panics
// if paths conflict.
func NewMemory(dir string, files map[string]string) *Memory {
	m := &Memory{
		dir:  path.Join("/", dir),
		root: &memoryNode{name: "/", mode: fs.ModeDir | 0o755, mod: memoryEpoch, children: map[string]*memoryNode{}},
		now:  memoryEpoch,
	}
	if dir == "" {
		m.dir = "/workspace"
	}
	must := func(_ *memoryNode, err error) {
		if err != nil {
			panic(fmt.Sprintf("env.NewMemory: %v", err))
		}
	}
	must(m.mkdirAll(m.dir))
	must(m.mkdirAll(memoryHome))
	for name, content := range files {
		abs := m.abs(name)
		if strings.HasSuffix(name, "/") {
			must(m.mkdirAll(abs))
			continue
		}
		must(nil, m.put(abs, []byte(content), 0))
	}
	return m
}

// Files implements [core.Environment].
func (m *Memory) Files() core.FS { return (*memoryFS)(m) }

// Info implements [core.Environment].
func (m *Memory) Info() core.EnvInfo {
	info := core.EnvInfo{OS: "linux", OSVersion: "memory", Home: memoryHome, Dir: m.dir, Roots: []string{m.dir}}
	if m.Exec != nil {
		info.Shell = "sh"
	}
	return info
}

// Close implements [core.Environment]. It does not end running commands; their
// contexts do.
func (m *Memory) Close() error { return nil }

// Resolve implements [core.Environment].
func (m *Memory) Resolve(ctx context.Context, name string) (core.Resolved, error) {
	if err := ctx.Err(); err != nil {
		return core.Resolved{}, err
	}
	if err := checkName(name); err != nil {
		return core.Resolved{}, err
	}
	abs := m.abs(name)
	inside := m.dir == "/" || abs == m.dir || strings.HasPrefix(abs, m.dir+"/")
	return core.Resolved{Path: abs, Inside: inside}, nil
}

// Start implements [core.Environment] with m.Exec.
func (m *Memory) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkCommand(cmd); err != nil {
		return nil, err
	}
	if cmd.Terminal {
		return nil, fmt.Errorf("there are no terminals in memory: %w", errors.ErrUnsupported)
	}
	if m.Exec == nil {
		return nil, errors.New("this environment has no shell: it keeps files in memory and runs no commands")
	}
	cmd.Dir = m.abs(cmd.Dir)
	if cmd.Stdin == nil {
		cmd.Stdin = strings.NewReader("")
	}
	cmd.Stdout, cmd.Stderr = orDiscard(cmd.Stdout), orDiscard(cmd.Stderr)
	p := &memoryProcess{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.exit, p.err = m.Exec(ctx, cmd)
	}()
	return p, nil
}

// orDiscard returns w, or io.Discard if w is nil.
func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

type memoryProcess struct {
	done chan struct{}
	exit core.Exit
	err  error
}

// Wait implements [core.Process].
func (p *memoryProcess) Wait() (core.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// abs makes a path absolute and clean.
func (m *Memory) abs(name string) string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		return path.Join(memoryHome, name[1:])
	case path.IsAbs(name):
		return path.Clean(name)
	default:
		return path.Join(m.dir, name)
	}
}

// tick counts a change. The caller holds the lock.
func (m *Memory) tick() time.Time {
	m.now = m.now.Add(time.Second)
	return m.now
}

// lookup finds the node at a clean absolute path. The caller holds the lock.
func (m *Memory) lookup(abs string) (*memoryNode, error) {
	n := m.root
	for _, name := range elements(abs) {
		if n.children == nil {
			return nil, syscall.ENOTDIR
		}
		child, ok := n.children[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		n = child
	}
	return n, nil
}

// mkdirAll creates a directory and its parents. The caller holds the lock.
func (m *Memory) mkdirAll(abs string) (*memoryNode, error) {
	n := m.root
	for _, name := range elements(abs) {
		if n.children == nil {
			break
		}
		child, ok := n.children[name]
		if !ok {
			child = &memoryNode{name: name, mode: fs.ModeDir | 0o755, mod: m.now, children: map[string]*memoryNode{}}
			n.children[name] = child
		}
		n = child
	}
	if n.children == nil {
		return nil, &fs.PathError{Op: "mkdir", Path: abs, Err: syscall.ENOTDIR}
	}
	return n, nil
}

// put writes a file. The caller holds the lock.
func (m *Memory) put(abs string, data []byte, mode fs.FileMode) error {
	old, err := m.lookup(abs)
	if err == nil && old.children != nil {
		return notAFile("write", abs, fs.ModeDir)
	}
	parent, err := m.mkdirAll(path.Dir(abs))
	if err != nil {
		return err
	}
	if mode == 0 && old != nil {
		mode = old.mode
	}
	if mode == 0 {
		mode = 0o644
	}
	name := path.Base(abs)
	// A new node, so that readers of the old one keep its content.
	parent.children[name] = &memoryNode{name: name, mode: mode.Perm(), mod: m.now, data: data}
	return nil
}

func elements(abs string) []string {
	return strings.FieldsFunc(abs, func(r rune) bool { return r == '/' })
}

// memoryNode is a file or, with children, a directory. Apart from the children
// it is immutable, so it can be handed out as a FileInfo.
type memoryNode struct {
	name     string
	mode     fs.FileMode
	mod      time.Time
	data     []byte
	children map[string]*memoryNode
}

func (n *memoryNode) Name() string       { return n.name }
func (n *memoryNode) Size() int64        { return int64(len(n.data)) }
func (n *memoryNode) Mode() fs.FileMode  { return n.mode }
func (n *memoryNode) ModTime() time.Time { return n.mod }
func (n *memoryNode) IsDir() bool        { return n.children != nil }
func (n *memoryNode) Sys() any           { return nil }

type memoryFS Memory

func (f *memoryFS) memory() *Memory { return (*Memory)(f) }

// find resolves a path and looks it up.
func (f *memoryFS) find(ctx context.Context, op, name string) (*memoryNode, error) {
	to, err := f.memory().Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n, err := f.memory().lookup(to.Path)
	if err != nil {
		return nil, &fs.PathError{Op: op, Path: to.Path, Err: err}
	}
	return n, nil
}

// Open implements [core.FS].
func (f *memoryFS) Open(ctx context.Context, name string) (core.File, error) {
	n, err := f.find(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	if n.IsDir() {
		return nil, notAFile("open", name, fs.ModeDir)
	}
	return &memoryFile{Reader: bytes.NewReader(n.data), node: n}, nil
}

// Stat implements [core.FS].
func (f *memoryFS) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	n, err := f.find(ctx, "stat", name)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// ReadDir implements [core.FS].
func (f *memoryFS) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	n, err := f.find(ctx, "readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	entries := make([]fs.DirEntry, 0, len(n.children))
	for _, child := range n.children {
		entries = append(entries, fs.FileInfoToDirEntry(child))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Write implements [core.FS].
func (f *memoryFS) Write(ctx context.Context, name string, content io.Reader, mode fs.FileMode) error {
	to, err := f.memory().Resolve(ctx, name)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(withContext(ctx, content))
	if err != nil {
		return &fs.PathError{Op: "write", Path: to.Path, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory().tick()
	return f.memory().put(to.Path, data, mode)
}

// Rename implements [core.FS].
func (f *memoryFS) Rename(ctx context.Context, from, to string) error {
	src, err := f.memory().Resolve(ctx, from)
	if err != nil {
		return err
	}
	dst, err := f.memory().Resolve(ctx, to)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.memory().lookup(src.Path)
	if err != nil {
		return &fs.PathError{Op: "rename", Path: src.Path, Err: err}
	}
	if n.IsDir() && strings.HasPrefix(dst.Path+"/", src.Path+"/") {
		return &fs.PathError{Op: "rename", Path: src.Path, Err: fmt.Errorf("a directory cannot be moved into itself: %w", fs.ErrInvalid)}
	}
	if old, err := f.memory().lookup(dst.Path); err == nil && (old.IsDir() || n.IsDir()) {
		return &fs.PathError{Op: "rename", Path: dst.Path, Err: fs.ErrExist}
	}
	parent, err := f.memory().lookup(path.Dir(dst.Path))
	if err == nil && !parent.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &fs.PathError{Op: "rename", Path: dst.Path, Err: err}
	}
	f.memory().unlink(src.Path)
	name := path.Base(dst.Path)
	parent.children[name] = &memoryNode{name: name, mode: n.mode, mod: n.mod, data: n.data, children: n.children}
	return nil
}

// Remove implements [core.FS].
func (f *memoryFS) Remove(ctx context.Context, name string) error {
	to, err := f.memory().Resolve(ctx, name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.memory().lookup(to.Path)
	switch {
	case err != nil:
	case n == f.root:
		err = fs.ErrPermission
	case len(n.children) > 0:
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: to.Path, Err: err}
	}
	f.memory().unlink(to.Path)
	return nil
}

// unlink removes an existing node from its directory. The caller holds the lock.
func (m *Memory) unlink(abs string) {
	if parent, err := m.lookup(path.Dir(abs)); err == nil {
		delete(parent.children, path.Base(abs))
	}
}

type memoryFile struct {
	*bytes.Reader
	node *memoryNode
}

// Stat implements [core.File].
func (f *memoryFile) Stat() (fs.FileInfo, error) { return f.node, nil }

// Close implements [core.File].
func (f *memoryFile) Close() error { return nil }
