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

// resumption says which session a command goes on with.
type resumption struct {
	Resume string // an id or the beginning of one
	Latest bool
	Fork   bool
}

func (r *resumption) register(f *pflag.FlagSet) {
	f.StringVarP(&r.Resume, "resume", "r", "", "go on with the session of this `ID`, or whose id begins so, in its directory")
	f.BoolVarP(&r.Latest, "continue", "c", false, "go on with the latest session of this directory")
	f.BoolVar(&r.Fork, "fork", false, "with --resume or --continue: go on in a copy, and leave the session as it is")
}

// Check looks at the flags alone.
func (r *resumption) Check() error {
	switch {
	case r.Latest && r.Resume != "":
		return cmdutil.Usagef("--continue and --resume exclude each other: name one session")
	case r.Fork && !r.Latest && r.Resume == "":
		return cmdutil.Usagef("--fork needs a session to copy: give --resume ID or --continue, too")
	}
	return nil
}

// locate makes the whole id of what --resume names. Unless --cd says another,
// the session's directory becomes the one to work in.
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
	if about.Cwd == "" || about.Cwd == s.Place("") {
		return nil
	}
	if info, err := os.Stat(about.Cwd); err != nil || !info.IsDir() {
		return fmt.Errorf("--resume: the directory of session %s is gone: %s; --cd DIR goes on in another one", id, display.Printable(about.Cwd))
	}
	fmt.Fprintf(s.Err, "agent: going on in the session's directory, %s\n", display.Printable(about.Cwd))
	sh.Dir = about.Cwd
	return nil
}

// session returns the id of the session to go on with, after locate; "" begins
// a new one. With --fork it makes one: it is to be called when nothing else can
// go wrong.
func (r *resumption) session(ctx context.Context, home, dir string) (string, error) {
	id := r.Resume
	if r.Latest {
		last, err := store.Latest(agent.SessionsDir(home), dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("--continue: there is no session of %s to go on with; leave the flag out to begin one", dir)
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
