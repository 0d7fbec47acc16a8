package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/charset"
	"github.com/seed-009c0928/agent/core/output"
)

//go:embed job.md
var jobDoc string

// Bounds of background commands.
const (
	maxJobs      = 16        // running, per session
	maxJobOutput = 256 << 10 // bytes of unread output kept
	jobGrace     = 300 * time.Millisecond
)

// jobs are the commands that outlive the call that started them. It is safe for
// concurrent use.
type jobs struct {
	mu       sync.Mutex
	sessions map[string][]*job
	started  int
	closed   bool
	wg       sync.WaitGroup
}

func newJobs() *jobs { return &jobs{sessions: map[string][]*job{}} }

// job is a command in the background.
type job struct {
	id, command string
	began       time.Time
	stop        context.CancelFunc
	done        chan struct{} // closed when it ends, after exit and err are set
	exit        core.Exit
	err         error

	// What write_stdin needs.
	terminal    bool
	unsandboxed bool
	isShell     bool // its input is commands
	input       *io.PipeWriter
	writing     chan struct{} // has a value while something is written
	interrupt   chan struct{} // closed to interrupt it
	changed     chan struct{} // has a value after new output
	typed       string        // all input of a shell

	mu      sync.Mutex
	unread  []byte
	dropped int // bytes of output
	total   int // bytes of output ever
	tail    []byte
}

// Write adds output. It implements [io.Writer].
func (j *job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unread = append(j.unread, p...)
	j.total += len(p)
	if j.tail = append(j.tail, p...); len(j.tail) > 2*maxJobTail {
		j.tail = slices.Delete(j.tail, 0, len(j.tail)-maxJobTail)
	}
	defer func() {
		select {
		case j.changed <- struct{}{}:
		default: // there is one already
		}
	}()
	if over := len(j.unread) - maxJobOutput; over > 0 {
		j.unread = slices.Delete(j.unread, 0, over)
		j.dropped += over
	}
	return len(p), nil
}

// read returns the output since the last read.
func (j *job) read() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := output.Plain(strings.ToValidUTF8(string(j.unread), "\uFFFD"))
	if j.dropped > 0 {
		text = fmt.Sprintf("[%d bytes before this were dropped]\n%s", j.dropped, text)
	}
	j.unread, j.dropped = nil, 0
	return text
}

// position returns where the unread output begins and ends.
func (j *job) position() (begin, end int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.total - len(j.unread), j.total
}

// since returns the output after a position, as far as it is not dropped.
func (j *job) since(from int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(max(j.total-from, 0), len(j.unread))
	return output.Plain(strings.ToValidUTF8(string(j.unread[len(j.unread)-n:]), "\uFFFD"))
}

func (j *job) running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// state describes the state of the job.
func (j *job) state() string {
	switch {
	case j.running():
		return "running"
	case errors.Is(j.err, context.Canceled):
		return "killed"
	case j.err != nil:
		return "ended: " + j.err.Error()
	case j.exit.Signal != "":
		return "ended by signal " + j.exit.Signal
	}
	return fmt.Sprintf("ended with exit code %d", j.exit.Code)
}

// start starts a command that outlives the call and ends with the session.
func (s *jobs) start(ctx context.Context, call *core.Call, in shellArgs) (core.Result, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	stdin, input := io.Pipe()
	j := &job{
		command: in.Command, began: time.Now(), stop: stop, done: make(chan struct{}), input: input,
		terminal: in.Terminal, unsandboxed: in.Unsandboxed, isShell: runsShell(in.Command),
		writing: make(chan struct{}, 1), interrupt: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	if err := s.add(call.Session.ID, j); err != nil {
		stop()
		return core.Failf(core.CodeRateLimited, "%v.", err), nil
	}
	decoded := charset.NewWriter(j)
	process, err := call.Env.Start(running, core.Command{
		Script: in.Command, Env: commandEnv(in.Terminal), Terminal: in.Terminal, Rows: in.Rows, Cols: in.Cols,
		Stdin: stdin, Stdout: decoded, Stderr: decoded, Interrupt: j.interrupt,
	})
	if err != nil {
		stop()
		_ = stdin.Close() // cannot fail
		close(j.done)
		s.drop(call.Session.ID, j)
		s.wg.Done()
		return startFailure(in.Command, err), nil
	}
	go func() {
		defer s.wg.Done()
		defer stop()
		defer close(j.done)
		j.exit, j.err = process.Wait()
		_ = decoded.Close() // a job's Write cannot fail
		_ = stdin.Close()   // and this one, too
	}()
	wait := time.NewTimer(jobGrace) // report an immediate end
	defer wait.Stop()
	select {
	case <-j.done:
		s.drop(call.Session.ID, j) // nothing is left to read
		text := fmt.Sprintf("The command has already ended (%s):\n%s", j.state(), cmp.Or(j.read(), "(no output)"))
		if j.err == nil && j.exit.Signal == "" && j.exit.Code == 0 {
			return core.TextResult(text), nil
		}
		return core.Fail(core.CodeUnknown, text), nil
	case <-wait.C:
	case <-ctx.Done():
	}
	return core.TextResult(fmt.Sprintf("%s is running in the background. Read its output and end it with the job tool; write to it with write_stdin.", j.id)), nil
}

func (s *jobs) add(session string, j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := 0
	for _, other := range s.sessions[session] {
		if other.running() {
			running++
		}
	}
	switch {
	case s.closed:
		return errors.New("the program is shutting down")
	case running >= maxJobs:
		return fmt.Errorf("%d commands are already running in the background: end one with the job tool", maxJobs)
	}
	s.started++
	s.wg.Add(1)
	j.id = fmt.Sprint("job-", s.started)
	s.sessions[session] = append(s.sessions[session], j)
	return nil
}

func (s *jobs) drop(session string, j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[session] = slices.DeleteFunc(s.sessions[session], func(other *job) bool { return other == j })
}

// end ends the jobs of a session and waits for them.
func (s *jobs) end(session string) {
	s.mu.Lock()
	list := s.sessions[session]
	delete(s.sessions, session)
	s.mu.Unlock()
	for _, j := range list {
		j.stop()
	}
	for _, j := range list {
		<-j.done
	}
}

// close ends all jobs and refuses new ones.
func (s *jobs) close() {
	s.mu.Lock()
	s.closed = true
	var all []string
	for id := range s.sessions {
		all = append(all, id)
	}
	s.mu.Unlock()
	for _, id := range all {
		s.end(id)
	}
	s.wg.Wait()
}

type jobArgs struct {
	Action string `json:"action"`
	ID     string `json:"id,omitempty"`
}

// tool returns the tool job.
func (s *jobs) tool() core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        "job",
		Description: strings.TrimSpace(jobDoc),
		Output:      core.OutputLimit{MaxChars: 30_000, MaxLines: 256, Mode: core.Tail},
	}, nil, s.run)
}

func (s *jobs) run(ctx context.Context, call *core.Call, in jobArgs) (core.Result, error) {
	if in.Action == "list" {
		return core.TextResult(describeJobs(s.list(call.Session.ID))), nil
	}
	j := s.find(call.Session.ID, in.ID)
	switch {
	case in.Action != "read" && in.Action != "kill":
		return invalid("action is %q; it must be list, read or kill.", in.Action)
	case j == nil:
		return s.unknown(call.Session.ID, in.ID), nil
	}
	if in.Action == "kill" {
		j.stop()
		select {
		case <-j.done:
		case <-ctx.Done():
			return core.Fail(core.CodeCancelled, "The call was cancelled while the job was ending."), nil
		}
	}
	text := cmp.Or(j.read(), "(nothing new)\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if !j.running() {
		s.drop(call.Session.ID, j) // nothing is left to read
	}
	return core.TextResult(text + "[" + j.id + " " + j.state() + "]"), nil
}

// list returns a session's jobs.
func (s *jobs) list(session string) []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sessions[session])
}

// find returns a session's job, or nil.
func (s *jobs) find(session, id string) *job {
	for _, j := range s.list(session) {
		if j.id == id {
			return j
		}
	}
	return nil
}

// unknown is the failure for a job that does not exist.
func (s *jobs) unknown(session, id string) core.Result {
	return core.Failf(core.CodeNotFound, "No job %q. %s", id, describeJobs(s.list(session)))
}

func describeJobs(list []*job) string {
	if len(list) == 0 {
		return "No background commands."
	}
	var b strings.Builder
	for _, j := range list {
		fmt.Fprintf(&b, "%s, %s, %s: %s\n", j.id, j.state(), time.Since(j.began).Round(time.Second), j.command)
	}
	return strings.TrimSpace(b.String())
}
