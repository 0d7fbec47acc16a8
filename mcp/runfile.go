package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// Running is a server that an agent runs or is connected to.
type Running struct {
	Server    string    `json:"server"`
	PID       int       `json:"pid"` // of its process; 0 for one that is reached by HTTP
	Transport string    `json:"transport"`
	Since     time.Time `json:"since"`
	Agent     int       `json:"agent"` // id of the agent's process
	Dir       string    `json:"dir"`   // that the agent works in
}

// runFile tells other processes which servers this one runs. It is held by a
// lock as long as its process lives: one that nobody holds is left over.
type runFile struct {
	dir string // empty tells nobody

	mu      sync.Mutex
	lock    *flock.Flock
	path    string
	servers []Running
}

// set notes that a server runs or, without a transport, that it does not.
// Failing is no harm: it is only for people.
func (f *runFile) set(server string, pid int, transport string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dir == "" || f.lock == nil && transport == "" {
		return
	}
	f.servers = slices.DeleteFunc(f.servers, func(r Running) bool { return r.Server == server })
	if transport != "" {
		dir, _ := os.Getwd()
		f.servers = append(f.servers, Running{server, pid, transport, time.Now().UTC().Truncate(time.Second), os.Getpid(), dir})
	}
	if f.lock == nil && !f.open() {
		f.dir = ""
		return
	}
	_ = atomicfile.Write(f.path, append(encode(f.servers), '\n'), 0o600)
}

func (f *runFile) open() bool {
	if os.MkdirAll(f.dir, 0o700) != nil {
		return false
	}
	base := filepath.Join(f.dir, fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()))
	lock := flock.New(base+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); err != nil || !ok {
		return false
	}
	f.lock, f.path = lock, base+".json"
	return true
}

func (f *runFile) remove() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock != nil {
		_ = os.Remove(f.path)
		_ = f.lock.Close()
		_ = os.Remove(f.lock.Path())
	}
	f.lock, f.dir = nil, ""
}

// ListRunning returns the servers that agents with this directory run. What
// agents left over that were killed is cleared away.
func ListRunning(dir string) ([]Running, error) {
	dir = filepath.Join(dir, "run")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	all := []Running{}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		if !isLock {
			continue
		}
		path := filepath.Join(dir, name+".json")
		lock := flock.New(filepath.Join(dir, e.Name()))
		if free, err := lock.TryLock(); err == nil && free { // its process is gone
			_ = os.Remove(path)
			_ = os.Remove(lock.Path())
			_ = lock.Close()
			continue
		}
		var list []Running
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &list) == nil {
			all = append(all, list...)
		}
	}
	return all, nil
}
