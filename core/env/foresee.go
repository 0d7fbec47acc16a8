package env

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// level is the sandbox level of the commands of sessions.
func (l *Local) level(ctx context.Context) sandbox.Level {
	if l.sandbox == nil {
		return sandbox.None
	}
	level, err := l.supervisor.Sandbox().Choose(ctx, l.sandbox.Shell)
	if err != nil {
		return sandbox.None
	}
	return level
}

// LimitsHosts reports whether the sandbox of commands can limit the network to
// hosts; otherwise it is on or off.
func (l *Local) LimitsHosts() bool { return l.level(context.Background()) == sandbox.Namespace }

// Layers reports whether commands write to copies of caches.
func (l *Local) Layers() bool { return l.level(context.Background()) == sandbox.Namespace }

// Reaches reports whether the settings let every command connect to a host.
func (l *Local) Reaches(host string) bool {
	return l.sandbox != nil && (l.LimitsHosts() && sandbox.Lists(l.sandbox.Hosts, host) || sandbox.Lists(l.sandbox.Hosts, ""))
}

// Listens reports whether a server on this machine listens on a TCP port.
func (l *Local) Listens(port int) bool { return sandbox.Listens(port) }

// Hides returns whether the sandbox hides a file with secrets in the workspace. Those
// among third-party files and deep in a large workspace are not searched for, but the
// former count as hidden: they are not the user's.
func (l *Local) Hides() func(path string) bool {
	if l.sandbox == nil {
		return func(string) bool { return false }
	}
	hidden := Secrets(l.info.Roots, l.sandbox.Sensitive, nil)
	return func(path string) bool {
		path = filepath.FromSlash(path)
		return slices.ContainsFunc(hidden, func(h string) bool { return sandbox.Below(h, path) }) || slices.ContainsFunc(l.info.Roots, func(root string) bool {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			return err == nil && slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), func(dir string) bool { return slices.Contains(skipped, dir) })
		})
	}
}

// Getenv returns a variable of the environment of commands; empty if it is not set.
func (l *Local) Getenv(name string) string {
	value := ""
	for _, entry := range l.environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
