//go:build unix

package service_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/sdk/host"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
)

// process is this test binary as a server or a worker.
type process struct {
	*exec.Cmd
	in io.Closer // ends it
}

func start(t *testing.T, env string, config any) process {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), env+"="+string(text)), os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	return process{c, in}
}

func (p process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	if s == os.Kill {
		_ = p.Wait()
	}
}

// end ends the process in an orderly way.
func (p process) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.in.Close(), p.Wait()); err != nil {
		t.Fatal(err)
	}
}

// fleet is a server in its own process, a connection to it, and what workers need.
type fleet struct {
	options jetstream.ServeOptions
	server  process
	job     job
	db      *jetstream.DB
}

func newFleet(t *testing.T, places int) *fleet {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	dir := t.TempDir()
	f := &fleet{options: jetstream.ServeOptions{Dir: filepath.Join(dir, "nats"), Host: "127.0.0.1", Port: port}}
	f.server = start(t, serverEnv, f.options)
	f.job = job{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Dir: dir, Effects: filepath.Join(dir, "effects"), Places: places, Lease: 2 * time.Second}
	nc, err := nats.Connect(f.job.URL, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if f.db, err = open(t.Context(), nc, dir, f.job.Lease); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fleet) worker(t *testing.T) process {
	t.Helper()
	return start(t, workerEnv, f.job)
}

// effects returns what the tool did, as "session call".
func (f *fleet) effects(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(f.job.Effects)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if len(data) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSpace(data)), "\n")
}

// await waits until the tool did so much.
func (f *fleet) await(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); len(f.effects(t)) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d effects, want %d", len(f.effects(t)), n)
		}
	}
}

// check compares the log of a session with what was to be done: n calls, each counted
// once, and run at most once, or exactly once if it says so.
func (f *fleet) check(t *testing.T, id string, log []event.Event, n int) {
	t.Helper()
	did := map[string]int{}
	for _, e := range f.effects(t) {
		if session, call, _ := strings.Cut(e, " "); session == id {
			if did[call]++; did[call] > 1 {
				t.Errorf("session %s: call %s ran %d times", id, call, did[call])
			}
		}
	}
	results := map[string]int{}
	var used model.Usage
	for _, e := range log {
		switch b := e.Body.(type) {
		case event.ToolResult:
			results[e.Call]++
			if !b.IsError && did[e.Call] != 1 {
				t.Errorf("session %s: call %s says that it ran", id, e.Call)
			}
		case event.Message:
			used = used.Add(b.Usage)
		}
	}
	for i := range n {
		if call := fmt.Sprintf("c%d", i); results[call] != 1 {
			t.Errorf("session %s: call %s has %d results", id, call, results[call])
		}
	}
	users, answers, ends := bodies[event.User](log), bodies[event.Message](log), bodies[event.Result](log)
	if len(users) != 1 || len(answers) != n+1 || len(results) != n || len(ends) != 1 || used.Input != (n+1)*callUsage.Input {
		t.Errorf("session %s: %d inputs, %d answers, %d calls with results, %d results, usage %+v", id, len(users), len(answers), len(results), len(ends), used)
	}
}

// TestKill kills workers, and once the server, while sessions run. All are finished by
// the workers that are left: no event is lost or doubled, no call runs twice.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills processes and waits until their leases end")
	}
	const sessions, calls, kills = 12, 12, 4
	f := newFleet(t, sessions)
	workers := []process{f.worker(t), f.worker(t)}
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		create(t, f.db, id, core.Allow)
		send(t, f.db, id, rounds("in", calls))
	}
	for i := range kills {
		f.await(t, (i+1)*sessions*calls/(kills+2))
		workers[i%2].signal(t, os.Kill)
		if i == kills/2 {
			f.server.signal(t, os.Kill)
			f.server = start(t, serverEnv, f.options)
		}
		workers[i%2] = f.worker(t)
	}
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		seen := results(t, f.db, id, "in")
		until(t, f.db, id, in(service.State(core.StateIdle)))
		log := whole(t, f.db, id)
		f.check(t, id, log, calls)
		for at, e := range seen {
			if e.Seq != log[at].Seq || e.Body.Type() != log[at].Body.Type() {
				t.Errorf("session %s: who watches saw %d (%s), the log has %d (%s)", id, e.Seq, e.Body.Type(), log[at].Seq, log[at].Body.Type())
			}
		}
	}
}

// TestFence stops a worker until others have finished its sessions. When it runs
// again, it changes nothing.
func TestFence(t *testing.T) {
	if testing.Short() {
		t.Skip("it stops a process and waits until its leases end")
	}
	const sessions, calls = 6, 40
	f := newFleet(t, sessions)
	stopped := f.worker(t)
	for i := range sessions {
		create(t, f.db, fmt.Sprintf("s%d", i), core.Allow)
		send(t, f.db, fmt.Sprintf("s%d", i), rounds("in", calls))
	}
	f.await(t, sessions)
	stopped.signal(t, syscall.SIGSTOP)
	f.worker(t)
	for i := range sessions {
		results(t, f.db, fmt.Sprintf("s%d", i), "in")
	}
	stopped.signal(t, syscall.SIGCONT)
	// It is back when it does new work.
	const more = 20
	for i := range more {
		create(t, f.db, fmt.Sprintf("m%d", i), core.Allow)
		send(t, f.db, fmt.Sprintf("m%d", i), rounds("in", 1))
	}
	for i := range sessions {
		until(t, f.db, fmt.Sprintf("s%d", i), in(service.State(core.StateIdle)))
		f.check(t, fmt.Sprintf("s%d", i), whole(t, f.db, fmt.Sprintf("s%d", i)), calls)
	}
	for i := range more {
		until(t, f.db, fmt.Sprintf("m%d", i), in(service.State(core.StateIdle)))
		f.check(t, fmt.Sprintf("m%d", i), whole(t, f.db, fmt.Sprintf("m%d", i)), 1)
	}
}

// TestPark: sessions with questions occupy no worker, survive all of them, and continue
// on any when the answer comes.
func TestPark(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills a process")
	}
	const sessions = 10
	f := newFleet(t, 1)
	first := f.worker(t)
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		create(t, f.db, id, core.Ask)
		send(t, f.db, id, rounds("in", 2))
	}
	question := func(id, after string) string {
		s := until(t, f.db, id, func(s service.Session) bool {
			return s.State == service.State(core.StateParked) && len(s.Questions) == 1 && s.Questions[0].QID != after
		})
		return s.Questions[0].QID
	}
	asked := map[string]string{}
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		asked[id] = question(id, "")
	}
	first.signal(t, os.Kill)
	if _, err := os.Stat(f.job.Effects); err == nil {
		t.Fatalf("calls ran without an answer: %s", f.effects(t))
	}
	f.worker(t)
	f.worker(t)
	answer := func(id, command, question string, c core.Choice) {
		send(t, f.db, id, service.Command{ID: command, Command: host.Command{Type: "answer", Question: question, Choice: c}})
	}
	for id, q := range asked {
		answer(id, "a1", q, core.ChoiceOnce)
		answer(id, "a1", q, core.ChoiceOnce) // twice
	}
	for id, q := range asked {
		answer(id, "a2", question(id, q), core.ChoiceDeny)
	}
	for id := range asked {
		results(t, f.db, id, "a2")
		until(t, f.db, id, func(s service.Session) bool { return s.State == service.State(core.StateIdle) && len(s.Questions) == 0 })
		log := whole(t, f.db, id)
		if got := bodies[event.ToolResult](log); len(got) != 2 || got[0].IsError || !got[1].IsError {
			t.Errorf("session %s: %+v", id, got)
		}
		if got := bodies[event.Result](log); len(got) != 3 {
			t.Errorf("session %s: %d results, want one for each command", id, len(got))
		}
	}
	if got := f.effects(t); len(got) != sessions {
		t.Errorf("%d effects: %q", len(got), got)
	}
}
