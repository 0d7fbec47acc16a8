package proc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/proc"
)

// play runs a role that needs a separate process.
func play(role string) int {
	var err error
	switch role {
	case "agent":
		err = playAgent()
	case "attack":
		return playAttack()
	case "sandboxes":
		err = playSandboxes()
	case "subreaper":
		err = playSubreaper()
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// actor returns the command of a process that plays a role. It and its
// descendants have the mark in their environment.
func actor(role, mark string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, proc.MarkerEnv+"="+mark)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// carriers returns the living processes with the mark.
func carriers(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err == nil && bytes.Contains(env, []byte(mark)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// playAgent runs commands forever, and reports when all of them are running.
func playAgent() error {
	s := proc.NewSupervisor(proc.Options{})
	defer s.Close()
	dir := os.Getenv("DIR")
	for i, script := range []string{
		`echo $$ >"$F"; exec sleep 300`,
		`trap '' TERM HUP; sleep 300 & echo $! >"$F"; wait`,
		`setsid sh -c 'trap "" TERM HUP; echo $$ >"$F"; exec sleep 300' & sleep 300`,
		`(setsid sh -c 'sleep 300 & echo $! >"$F"; wait' >/dev/null 2>&1 &); while [ ! -s "$F" ]; do sleep 0.01; done`,
		`env -i sleep 300 & echo $! >"$F"; wait`,
		`exec bash -c 'set -m; env -i sleep 300 & echo $! >"$F"; wait'`,
		`(env -i setsid /bin/sh -c 'trap "" TERM HUP; echo $$ >"'"$F"'"; exec /bin/sleep 300' >/dev/null 2>&1 &); while [ ! -s "$F" ]; do sleep 0.01; done`,
	} {
		spec := sh(script)
		spec.Env = append(spec.Env, fmt.Sprintf("F=%s/%d", dir, i))
		spec.Stdout = io.Discard
		if _, err := s.Start(context.Background(), spec); err != nil {
			return err
		}
	}
	select {} // until it is killed
}

func TestKilledAgentLeavesNothing(t *testing.T) {
	need(t, "setsid", "bash")
	dir := t.TempDir()
	mark := filepath.Base(dir) + strconv.Itoa(os.Getpid())
	agent := actor("agent", mark, "DIR="+dir)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for i := range 7 {
		pids = append(pids, readPID(t, filepath.Join(dir, strconv.Itoa(i))))
	}
	// The guard starts with the first command: wait for it too.
	eventually(t, "a guard", func() bool { return len(carriers(mark+":guard")) == 1 })
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // killed
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d has ended", pid), func() bool { return !alive(pid) })
	}
	eventually(t, "no process of the agent runs", func() bool { return len(carriers(mark)) == 0 })
}

func TestCloseEndsTheGuard(t *testing.T) {
	mark := "guard-test-" + strconv.Itoa(os.Getpid())
	t.Setenv(proc.MarkerEnv, mark)
	s := newSupervisor(t)
	run(t, s, sh("exit"))
	eventually(t, "a guard", func() bool { return len(carriers(mark+":guard")) == 1 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := carriers(mark); len(left) != 0 {
		t.Errorf("processes %d are left", left)
	}
}

func TestSubreaper(t *testing.T) {
	need(t, "setsid")
	dir := t.TempDir()
	out, err := actor("subreaper", filepath.Base(dir), "DIR="+dir).CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// playSubreaper adopts orphans that can be found only by adoption.
func playSubreaper() error {
	s := proc.NewSupervisor(proc.Options{})
	defer s.Close()
	if err := s.Subreaper(); err != nil {
		return err
	}
	foreign := startForeignChildren()
	if err := abortOrphan(s); err != nil {
		return err
	}
	if err := endZombies(s); err != nil {
		return err
	}
	return foreign()
}

// startForeignChildren runs commands that do not belong to a supervisor, and
// returns a function that ends them and fails if one was affected.
func startForeignChildren() (finish func() error) {
	sleeper := exec.Command("/bin/sleep", "300")
	sleeper.Env = []string{} // no marker
	if err := sleeper.Start(); err != nil {
		return func() error { return err }
	}
	var all sync.WaitGroup
	quit := make(chan struct{})
	var failed error
	all.Go(func() {
		for failed == nil {
			err := exec.Command("/bin/sh", "-c", "exit 7").Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 7 {
				failed = fmt.Errorf("foreign child: %w", err)
			}
			select {
			case <-quit:
				return
			default:
			}
		}
	})
	return func() error {
		close(quit)
		all.Wait()
		if !alive(sleeper.Process.Pid) {
			failed = errors.Join(failed, errors.New("the supervisor ended a child that it does not own"))
		}
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait() // killed
		return failed
	}
}

// abortOrphan aborts a command whose daemon left its session, lost its parents
// and has an empty environment.
func abortOrphan(s *proc.Supervisor) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	file := filepath.Join(os.Getenv("DIR"), "orphan")
	p, err := s.Start(ctx, sh(fmt.Sprintf(`
		(env -i setsid /bin/sh -c 'trap "" TERM; echo $$ >%s; exec /bin/sleep 300' >/dev/null 2>&1 &)
		sleep 300`, file)))
	if err != nil {
		return err
	}
	pid, err := waitPID(file)
	if err != nil {
		return err
	}
	cancel()
	if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("aborted command: %w", err)
	}
	if alive(pid) {
		return fmt.Errorf("orphan %d is left", pid)
	}
	return nil
}

// endZombies runs concurrent commands whose detached children end on their own.
// Reaping those must not lose the exit status of a command.
func endZombies(s *proc.Supervisor) error {
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		all.Go(func() {
			for range 15 {
				p, err := s.Start(context.Background(), sh("setsid true >/dev/null 2>&1 & exit 5"))
				if err != nil {
					errs[i] = err
					return
				}
				if exit, err := p.Wait(); err != nil || exit.Code != 5 {
					errs[i] = errors.Join(fmt.Errorf("command: %+v", exit), err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(append(errs, s.Close())...); err != nil {
		return err
	}
	if left := strangers(); len(left) != 0 {
		return fmt.Errorf("children that nobody reaped: %q", left)
	}
	return nil
}

// strangers returns the children of this process in other sessions, including
// zombies.
func strangers() (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	self := statFields("/proc/self/stat")
	for _, file := range files {
		fields := statFields(file)
		if len(fields) > 3 && fields[1] == strconv.Itoa(os.Getpid()) && fields[3] != self[3] {
			list = append(list, file+" "+fields[0])
		}
	}
	return list
}

// statFields returns the fields after the name: state, parent, group, session.
func statFields(file string) []string {
	data, _ := os.ReadFile(file)
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

func waitPID(file string) (int, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(file)
		if text, complete := strings.CutSuffix(string(data), "\n"); complete {
			return strconv.Atoi(text)
		}
	}
	return 0, fmt.Errorf("no process id in %s", file)
}
