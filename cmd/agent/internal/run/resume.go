package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// resumption selects the session to resume.
type resumption struct {
	Resume string // an ID or a prefix of one
	Latest bool
	Fork   bool
}

func (r *resumption) register(f *pflag.FlagSet) {
	f.StringVarP(&r.Resume, "resume", "r", "", "resume the session with this `ID` or ID prefix, in its directory")
	f.BoolVarP(&r.Latest, "continue", "c", false, "resume the latest session of this directory")
	f.BoolVar(&r.Fork, "fork", false, "with --resume or --continue: resume in a copy and leave the original unchanged")
}

// Check finds flags that contradict each other.
func (r *resumption) Check() error {
	switch {
	case r.Latest && r.Resume != "":
		return cmdutil.Usagef("--continue and --resume cannot be combined")
	case r.Fork && !r.Latest && r.Resume == "":
		return cmdutil.Usagef("--fork needs a session to copy: add --resume ID or --continue")
	}
	return nil
}

// locate completes the ID in --resume. Without --cd, the working directory becomes
// the session's.
func (r *resumption) locate(s *cmdutil.IO, sh *setup.Flags) error {
	if r.Resume == "" {
		return nil
	}
	home, id, err := setup.FindSession(s, r.Resume)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	r.Resume = id
	if sh.Dir != "" {
		return nil
	}
	about, err := store.Stat(agent.SessionsDir(home), id)
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	if about.Cwd == "" || about.Cwd == s.WorkDir("") {
		return nil
	}
	if info, err := os.Stat(about.Cwd); err != nil || !info.IsDir() {
		return fmt.Errorf("--resume: the directory of session %s no longer exists: %s; use --cd DIR to resume in another one", id, display.Printable(about.Cwd))
	}
	fmt.Fprintf(s.Err, "agent: resuming in the session's directory, %s\n", display.Printable(about.Cwd))
	sh.Dir = about.Cwd
	return nil
}

// session returns the ID of the session to resume, "" for a new one. Call it
// after locate, and last: with --fork it writes the copy.
func (r *resumption) session(ctx context.Context, home, dir string) (string, error) {
	id := r.Resume
	if r.Latest {
		last, err := store.Latest(agent.SessionsDir(home), dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("--continue: no session in %s yet; leave out the flag to start one", dir)
		case err != nil:
			return "", fmt.Errorf("--continue: %w", err)
		}
		id = last.ID
	}
	if !r.Fork {
		return id, nil
	}
	fork, err := agent.ForkSession(ctx, home, id, 0)
	if err != nil {
		return "", setup.SessionAdvice(err, id)
	}
	return fork, nil
}
