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

// Running is a server that an agent process runs or is connected to.
type Running struct {
	Server    string    `json:"server"`
	PID       int       `json:"pid"` // of its process; 0 for a server reached over HTTP
	Transport string    `json:"transport"`
	Since     time.Time `json:"since"`
	Agent     int       `json:"agent"` // PID of the agent
	Dir       string    `json:"dir"`   // working directory of the agent
}

// runFile lists the servers of this process for other processes. The process
// locks it as long as it lives: an unlocked one is stale.
type runFile struct {
	dir string // empty disables it

	mu      sync.Mutex
	lock    *flock.Flock
	path    string
	servers []Running
}

// set records that a server runs or, without a transport, that it does not.
// Errors are ignored, as the file is informational.
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

// ListRunning returns the servers of all agents whose hosts use dir. It removes
// stale files of killed agents.
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
