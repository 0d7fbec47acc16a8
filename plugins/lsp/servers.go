package lsp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/proc"
)

// servers are the language servers of a workspace.
type servers struct {
	options    Options
	supervisor *proc.Supervisor
	environ    []string
	startTime  time.Duration // of a server
	ctx        context.Context
	cancel     context.CancelFunc
	wg         sync.WaitGroup

	mu       sync.Mutex
	slots    []*slot
	news     chan struct{} // closed at the next change
	sessions map[string]*session
}

// slot is the place of one server: its process, or why it has none.
type slot struct {
	all  *servers
	spec *Server
	root string // of the workspace

	mu       sync.Mutex
	folders  []string // its projects
	client   *client
	starting bool
	err      error // of the last start or run
	failures int   // in a row
	retryAt  time.Time
}

// startTimeout is how long a server may take to answer its first request.
const startTimeout = 30 * time.Second

// failuresAfter is how long a server must run for its failures to be forgotten.
const failuresAfter = time.Minute

func newServers(o Options, environ []string) *servers {
	s := &servers{
		options: o, environ: environ, startTime: startTimeout, supervisor: proc.NewSupervisor(proc.Options{}),
		news: make(chan struct{}), sessions: map[string]*session{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// close ends all servers.
func (s *servers) close() error {
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.slots {
		if at.client != nil {
			at.client.stop(errors.New("the plugin ends"))
		}
	}
	return s.supervisor.Close()
}

// changed returns a channel that is closed at the next change of anything.
func (s *servers) changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

func (s *servers) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.news)
	s.news = make(chan struct{})
}

// The errors of files that no server is for.
var (
	errOutside = errors.New("it is outside the workspace, which is all that language servers see")
	errNone    = errors.New("no language server on this machine is for such files")
)

// slotOf returns the slot of the server for a file.
func (s *servers) slotOf(path string) (*slot, error) {
	i := slices.IndexFunc(s.options.Roots, func(root string) bool { return below(root, path) })
	if i < 0 {
		return nil, errOutside
	}
	spec, root := serverOf(s.options.Servers, path), s.options.Roots[i]
	if spec == nil {
		return nil, errNone
	}
	dir := projectOf(path, root, spec.Markers)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.slots {
		if at.spec == spec && at.root == root && at.takes(dir) {
			return at, nil
		}
	}
	at := &slot{all: s, spec: spec, root: root, folders: []string{dir}}
	s.slots = append(s.slots, at)
	return at, nil
}

// takes reports whether a project is in the slot, and adds it if the server can have
// several.
func (at *slot) takes(dir string) bool {
	at.mu.Lock()
	defer at.mu.Unlock()
	if slices.ContainsFunc(at.folders, func(f string) bool { return f == dir }) {
		return true
	}
	if !at.spec.Folders {
		return false
	}
	at.folders = append(at.folders, dir)
	if at.client != nil {
		at.client.addFolder(dir)
	}
	return true
}

// projectOf returns the directory of the project that a file is in: the outermost
// with a marker, or the root of the workspace.
func projectOf(path, root string, markers []string) string {
	project := root
	for dir := filepath.Dir(path); below(root, dir); dir = filepath.Dir(dir) {
		if slices.ContainsFunc(markers, func(name string) bool { return exists(filepath.Join(dir, name)) }) {
			project = dir
		}
		if dir == root {
			break
		}
	}
	return project
}

// ready returns the running server, or why it does not run; nil and no error while it
// starts. It starts one that is not running, unless it failed too often.
func (at *slot) ready() (*client, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if c := at.client; c != nil {
		select {
		case <-c.ended:
			at.client = nil
			at.fail(c.failed)
		default:
			return c, nil
		}
	}
	if at.starting {
		return nil, nil
	}
	if wait := time.Until(at.retryAt); wait > 0 {
		return nil, fmt.Errorf("%s failed %d times in a row and is not started again for %s; last error: %w", at.spec.Name, at.failures, wait.Round(time.Second), at.err)
	}
	if at.all.ctx.Err() != nil {
		return nil, at.all.ctx.Err()
	}
	at.starting = true
	folders := slices.Clone(at.folders)
	at.all.wg.Go(func() { at.start(folders) })
	return nil, nil
}

// fail counts a failure. The lock is held.
func (at *slot) fail(err error) {
	at.err = err
	if at.failures++; at.failures > 1 {
		at.retryAt = time.Now().Add(min(time.Second<<min(at.failures-2, 10), time.Minute))
	}
}

func (at *slot) start(folders []string) {
	s := at.all
	ctx, cancel := context.WithTimeout(s.ctx, s.startTime)
	defer cancel()
	c, err := start(ctx, s.supervisor, at.spec, folders, s.environ, s.notify)
	if err == nil {
		c.rescan()
	}
	if errors.Is(err, context.DeadlineExceeded) || err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it did not start within %s", s.startTime)
	}
	at.mu.Lock()
	at.starting = false
	if err != nil {
		at.fail(err)
	} else {
		at.client = c
		for _, dir := range at.folders[len(folders):] {
			c.addFolder(dir)
		}
		at.all.wg.Go(func() { // a server that runs for a while is well
			t := time.NewTimer(failuresAfter)
			defer t.Stop()
			select {
			case <-t.C:
				at.mu.Lock()
				at.failures = 0
				at.mu.Unlock()
			case <-c.ended:
			case <-s.ctx.Done():
			}
		})
	}
	at.mu.Unlock()
	s.notify()
}

// await returns the running server, and starts it if necessary. It waits until the
// server has read the workspace, but no longer than for most of ctx.
func (at *slot) await(ctx context.Context) (*client, error) {
	patience := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		patience, cancel = context.WithTimeout(ctx, time.Until(end)*3/4)
		defer cancel()
	}
	failures := -1
	for {
		news := at.all.changed()
		if err := at.failedSince(failures); err != nil {
			return nil, fmt.Errorf("%s: %w", at.spec.Name, err)
		}
		c, err := at.ready()
		if failures < 0 {
			at.mu.Lock()
			failures = at.failures
			at.mu.Unlock()
		}
		switch {
		case err != nil:
			return nil, err
		case c != nil && !c.loading():
			return c, nil
		}
		select {
		case <-news:
		case <-patience.Done():
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case c == nil:
				return nil, fmt.Errorf("%s is still starting: try again later, or use grep", at.spec.Name)
			}
			return c, nil
		}
	}
}

// failedSince returns the error of a start that failed, if there were more than n.
func (at *slot) failedSince(n int) error {
	at.mu.Lock()
	defer at.mu.Unlock()
	if n >= 0 && at.failures > n && !at.starting && at.client == nil {
		return at.err
	}
	return nil
}

// serverEnviron returns the environment of servers: no downloads, and caches in the
// plugin's directory.
func serverEnviron(environ []string, data string) []string {
	env := slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return name == OptionsEnv || name == "PLUGIN_DATA_DIR"
	})
	env = append(env, "GOPROXY=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off", "CARGO_NET_OFFLINE=true", "npm_config_offline=true")
	if data == "" {
		return env
	}
	for name, dir := range map[string]string{"GOCACHE": "go-build", "GOPLSCACHE": "gopls", "XDG_CACHE_HOME": "cache", "CARGO_TARGET_DIR": "target"} {
		dir = filepath.Join(data, dir)
		if os.MkdirAll(dir, 0o700) == nil {
			env = append(env, name+"="+dir)
		}
	}
	return env
}
