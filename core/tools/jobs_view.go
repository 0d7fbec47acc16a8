package tools

import (
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/output"
)

// maxJobTail is how many bytes of a job's output are kept for the user, whatever the
// model has read.
const maxJobTail = 64 << 10

// Job is a command in the background, as the user sees it.
type Job struct {
	ID      string
	Command string
	Began   time.Time
	State   string // such as "running" or "ended with exit code 1"
	Running bool
}

// Jobs returns the commands that a session has in the background, the oldest first:
// those that run, and those whose output the model has not read.
func (s *Set) Jobs(session string) (list []Job) {
	for _, j := range s.jobs.list(session) {
		list = append(list, Job{ID: j.id, Command: j.command, Began: j.began, State: j.state(), Running: j.running()})
	}
	return list
}

// JobOutput returns the end of a job's output; the model can still read it.
func (s *Set) JobOutput(session, id string) (text string, ok bool) {
	j := s.jobs.find(session, id)
	if j == nil {
		return "", false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return output.Plain(strings.ToValidUTF8(string(j.tail), "\uFFFD")), true
}

// EndJob ends a job. It reports whether there is such a job.
func (s *Set) EndJob(session, id string) bool {
	j := s.jobs.find(session, id)
	if j != nil {
		j.stop()
	}
	return j != nil
}
