package env

import (
	"context"
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
