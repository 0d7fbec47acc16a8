package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// child is a plugin's process as go-plugin sees it. Unlike go-plugin's own
// runner, its supervisor kills it with its child processes, and go-plugin only
// sees a valid handshake line of its stdout.
type child struct {
	supervisor *proc.Supervisor
	ctx        context.Context // kills the process
	spec       proc.Spec
	sockets    string // the directory in which the plugin may listen
	log        io.Writer

	process *proc.Process
	exited  chan struct{} // closed when exit is set and all output was read
	exit    proc.Exit

	line     *io.PipeReader // what go-plugin reads
	toPlugin *io.PipeWriter

	mu      sync.Mutex
	head    []byte // stdout up to the handshake line
	ready   bool   // the handshake line is valid
	fault   error  // why it is not
	address string
}

var _ runner.Runner = (*child)(nil)

func newChild(ctx context.Context, s *proc.Supervisor, spec proc.Spec, sockets string, log io.Writer) *child {
	c := &child{supervisor: s, ctx: ctx, spec: spec, sockets: sockets, log: log, exited: make(chan struct{})}
	c.line, c.toPlugin = io.Pipe()
	c.spec.Stdout, c.spec.Stderr = c, log
	return c
}

// Start implements [runner.Runner].
func (c *child) Start(context.Context) error {
	p, err := c.supervisor.Start(c.ctx, c.spec)
	if err != nil {
		close(c.exited)
		_ = c.toPlugin.Close()
		return err
	}
	c.process = p
	go func() { // ends with the process; stop waits for exited
		c.exit, _ = p.Wait()
		_ = c.toPlugin.Close()
		close(c.exited)
	}()
	return nil
}

// maxHandshake bounds the handshake line in bytes.
const maxHandshake = 4 << 10

// Write implements [io.Writer] for the plugin's stdout: the first line is the
// handshake, the rest goes to the log.
func (c *child) Write(p []byte) (int, error) {
	n := len(p)
	c.mu.Lock()
	if c.ready || c.fault != nil {
		c.mu.Unlock()
		_, _ = c.log.Write(p)
		return n, nil
	}
	c.head = append(c.head, p...)
	end := bytes.IndexByte(c.head, '\n')
	if end < 0 && len(c.head) < maxHandshake {
		c.mu.Unlock()
		return n, nil
	}
	var line, rest []byte
	if end >= 0 {
		line, rest = c.head[:end], c.head[end+1:]
	} else {
		rest = c.head
		line = c.head[:200]
	}
	c.address, c.fault = checkHandshake(string(line), c.sockets)
	c.ready = c.fault == nil
	c.mu.Unlock()
	if c.fault != nil {
		_ = c.toPlugin.CloseWithError(c.fault)
		return n, nil
	}
	_, _ = c.toPlugin.Write(append(line, '\n')) // fails only if it is no longer read
	_, _ = c.log.Write(rest)
	return n, nil
}

// checkHandshake parses the handshake line, which contains the plugin's address.
func checkHandshake(line, sockets string) (address string, err error) {
	line = strings.TrimSpace(line)
	fields := strings.Split(line, "|")
	if len(fields) < 5 {
		return "", fmt.Errorf("it printed %q to stdout instead of a handshake line: print messages to stderr", shorten(cleanLine(line), 120))
	}
	if core := fields[0]; core != "1" {
		return "", fmt.Errorf("its handshake line starts with %q, expected 1: it may not be a go-plugin plugin", shorten(cleanLine(core), 20))
	}
	if version, err := strconv.Atoi(fields[1]); err != nil || version != toolproto.Version {
		return "", fmt.Errorf("it uses version %s of the plugin protocol, this agent version %d: update the older one", shorten(cleanLine(fields[1]), 20), toolproto.Version)
	}
	if fields[4] != "grpc" {
		return "", fmt.Errorf("it uses %q, expected grpc", shorten(cleanLine(fields[4]), 20))
	}
	if fields[2] != "unix" || !inside(fields[3], sockets) {
		return "", fmt.Errorf("it listens on %s %q, expected a unix socket in the directory PLUGIN_UNIX_SOCKET_DIR", cleanLine(fields[2]), shorten(cleanLine(fields[3]), 120))
	}
	return fields[3], nil
}

// inside reports whether a path is in dir after resolving links.
func inside(path, dir string) bool {
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	return err == nil && filepath.IsAbs(path) && sandbox.Below(dir, parent)
}

// problem returns why the handshake is invalid, or nil.
func (c *child) problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// Wait implements [runner.Runner].
func (c *child) Wait(context.Context) error {
	<-c.exited
	if c.exit.Code != 0 {
		return errors.New(describeExit(c.exit))
	}
	return nil
}

// describeExit describes how a process ended.
func describeExit(e proc.Exit) string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

var (
	lacksMemory    = lazy.Regexp(`(?i)out of memory|cannot allocate memory|MemoryError|bad_alloc|ENOMEM`)
	lacksProcesses = lazy.Regexp(`(?i)resource temporarily unavailable|EAGAIN`)
	lacksThread    = lazy.Regexp(`(?i)pthread_create failed|failed to create new OS thread|can't start new thread`)
)

// limit returns which limit a process with this last output and this end exceeded, as
// a suffix for an error message.
func (c *child) limit(last string) string {
	if c.spec.Sandbox == nil {
		return ""
	}
	l := c.spec.Sandbox.Limits
	memory := fmt.Sprintf("%d MiB of memory (limits.memoryMb)", l.Memory>>20)
	processes := fmt.Sprintf("%d processes and threads (limits.processes)", l.Processes)
	may := ""
	switch {
	case lacksMemory().MatchString(last):
		may = memory
	case lacksThread().MatchString(last): // the C library does not tell which one
		may = memory + " and " + processes
	case lacksProcesses().MatchString(last):
		may = processes
	case c.exit.Signal == "SIGXCPU", c.exit.Signal == "SIGKILL" && c.exit.Duration >= l.CPU/4:
		may = fmt.Sprintf("%d seconds of processor time (limits.cpuSeconds)", l.CPU/time.Second)
	default:
		return ""
	}
	return fmt.Sprintf("; it may use %s: if it needs more, set limits in its manifest or plugins.* in the settings", may)
}

// Kill implements [runner.Runner]. It does nothing: the instance stops the
// process.
func (c *child) Kill(context.Context) error { return nil }

// Stdout implements [runner.Runner].
func (c *child) Stdout() io.ReadCloser { return c.line }

// Stderr implements [runner.Runner]. It is empty: stderr goes to the log.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements [runner.Runner].
func (c *child) Name() string { return c.spec.Path }

// ID implements [runner.Runner].
func (c *child) ID() string {
	if c.process == nil {
		return ""
	}
	return strconv.Itoa(c.process.Pid())
}

// Diagnose implements [runner.Runner].
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost implements [runner.Runner].
func (c *child) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements [runner.Runner].
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
