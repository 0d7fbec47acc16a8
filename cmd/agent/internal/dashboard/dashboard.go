package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Command is the name of the hidden command that serves the page.
const Command = "internal-dashboard"

const (
	patience = 30 * time.Second // for the process to start, or to end
	interval = 200 * time.Millisecond
)

// state is what the process writes for other commands. It ends when the file is removed,
// so that no other process can be ended by mistake.
type state struct {
	URL string `json:"url"` // with the token
	PID int    `json:"pid"`
}

// file names a file beside the session logs, which tools may not read: it has the token.
func file(home, suffix string) string {
	return filepath.Join(agent.SessionsDir(home), ".dashboard"+suffix)
}

func stateFile(home string) string { return file(home, ".json") }

// lockFile is locked as long as the process runs.
func lockFile(home string) *flock.Flock {
	return flock.New(file(home, ".lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// URL returns the address of the page, "" if no process serves it.
func URL(home string) (string, error) {
	data, err := os.ReadFile(stateFile(home))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	lock := lockFile(home)
	free, err := lock.TryLock()
	if free { // the process was killed
		return "", lock.Unlock()
	}
	if err != nil {
		return "", err
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return "", fmt.Errorf("%s: %w", stateFile(home), err)
	}
	return s.URL, nil
}

// Up starts a process of the program self that serves the page, unless one runs, and
// returns the page's address.
func Up(ctx context.Context, self, home string) (url string, err error) {
	if url, err = URL(home); url != "" || err != nil {
		return url, err
	}
	if err := os.MkdirAll(agent.SessionsDir(home), 0o700); err != nil {
		return "", err
	}
	log, err := os.OpenFile(file(home, ".log"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	from, to, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer from.Close()
	cmd := exec.Command(self, Command) //nolint:gosec,noctx // this program, which runs until Down
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = home, to, log, detached()
	cmd.Env = append(os.Environ(), "AGENT_HOME="+home)
	err = cmd.Start()
	_ = to.Close()
	if err != nil {
		return "", fmt.Errorf("start the dashboard: %w", err)
	}
	line := make(chan string, 1)
	go func() { // ends when the process closes its output, or is killed
		text, _ := bufio.NewReader(from).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case url = <-line:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if url == "" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		said, _ := os.ReadFile(log.Name())
		return "", errors.Join(fmt.Errorf("the dashboard did not start: %s", strings.TrimSpace(string(said))), err)
	}
	return url, cmd.Process.Release()
}

// Serve serves the page until Down or the end of ctx, and prints its address to out, which
// it closes.
func Serve(ctx context.Context, home string, out *os.File, server *page.Server) (err error) {
	lock := lockFile(home)
	if err := acquire(ctx, lock); errors.Is(err, context.DeadlineExceeded) {
		return errors.New("another process serves the dashboard already: see agent telemetry status")
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mine, err := json.Marshal(state{server.URL(l, ""), os.Getpid()})
	if err == nil {
		err = atomicfile.Write(stateFile(home), mine, 0o600)
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watch(ctx, cancel, stateFile(home))
	if _, err := fmt.Fprintln(out, server.URL(l, "")); err != nil {
		return errors.Join(err, l.Close())
	}
	_ = out.Close() // the command that started it waits for this
	err = server.Serve(ctx, l)
	if rest := os.Remove(stateFile(home)); !errors.Is(rest, fs.ErrNotExist) {
		err = errors.Join(err, rest)
	}
	return err
}

// acquire takes the lock. Another command may hold it for a moment, to look.
func acquire(ctx context.Context, lock *flock.Flock) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := lock.TryLockContext(ctx, interval/4)
	return err
}

// watch calls stop when the file is gone.
func watch(ctx context.Context, stop func(), file string) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				stop()
			}
		}
	}
}

// Down ends the process that serves the page and reports whether there was one.
func Down(ctx context.Context, home string) (bool, error) {
	url, err := URL(home)
	if err != nil {
		return false, err
	}
	if err := os.Remove(stateFile(home)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if url == "" {
		return false, nil
	}
	lock := lockFile(home)
	if err := acquire(ctx, lock); err != nil {
		return true, fmt.Errorf("the dashboard has not ended yet: %w", err)
	}
	return true, lock.Unlock()
}
