package tools

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
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

	mu      sync.Mutex
	unread  []byte
	dropped int // bytes of output
}

// Write adds output. It implements [io.Writer].
func (j *job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unread = append(j.unread, p...)
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
	j := &job{command: in.Command, began: time.Now(), stop: stop, done: make(chan struct{})}
	if err := s.add(call.Session.ID, j); err != nil {
		stop()
		return core.Failf(core.CodeRateLimited, "%v.", err), nil
	}
	decoded := charset.NewWriter(j)
	process, err := call.Env.Start(running, core.Command{Script: in.Command, Env: commandEnv(in.Terminal), Terminal: in.Terminal, Stdout: decoded, Stderr: decoded})
	if err != nil {
		stop()
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
	return core.TextResult(fmt.Sprintf("%s is running in the background. Read its output and end it with the job tool.", j.id)), nil
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
	Action string `json:"action" jsonschema:"list, read or kill"`
	ID     string `json:"id,omitempty" jsonschema:"ID of the job, for read and kill"`
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
	s.mu.Lock()
	list := slices.Clone(s.sessions[call.Session.ID])
	s.mu.Unlock()
	if in.Action == "list" {
		return core.TextResult(describeJobs(list)), nil
	}
	i := slices.IndexFunc(list, func(j *job) bool { return j.id == in.ID })
	switch {
	case in.Action != "read" && in.Action != "kill":
		return invalid("action is %q; it must be list, read or kill.", in.Action)
	case i < 0:
		return core.Failf(core.CodeNotFound, "No job %q. %s", in.ID, describeJobs(list)), nil
	}
	j := list[i]
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
