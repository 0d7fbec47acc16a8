package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// resumption says which session a command goes on with.
type resumption struct {
	resume string // an id or the beginning of one
	latest bool
	fork   bool
}

func (r *resumption) register(f *pflag.FlagSet) {
	f.StringVarP(&r.resume, "resume", "r", "", "go on with the session of this `ID`, or whose id begins so, in its directory")
	f.BoolVarP(&r.latest, "continue", "c", false, "go on with the latest session of this directory")
	f.BoolVar(&r.fork, "fork", false, "with --resume or --continue: go on in a copy, and leave the session as it is")
}

// check looks at the flags alone.
func (r *resumption) check() error {
	switch {
	case r.latest && r.resume != "":
		return &usageError{errors.New("--continue and --resume exclude each other: name one session")}
	case r.fork && !r.latest && r.resume == "":
		return &usageError{errors.New("--fork needs a session to copy: give --resume ID or --continue, too")}
	}
	return nil
}

// locate makes the whole id of what --resume names. Unless --cd says another,
// the session's directory becomes the one to work in.
func (r *resumption) locate(s *streams, sh *shared) error {
	if r.resume == "" {
		return nil
	}
	home, id, err := s.findSession(r.resume)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	r.resume = id
	if sh.dir != "" {
		return nil
	}
	about, err := store.Stat(agent.SessionsDir(home), id)
	if err != nil {
		return sessionAdvice(err, id)
	}
	if about.Cwd == "" || about.Cwd == s.place("") {
		return nil
	}
	if info, err := os.Stat(about.Cwd); err != nil || !info.IsDir() {
		return fmt.Errorf("--resume: the directory of session %s is gone: %s; --cd DIR goes on in another one", id, display.Printable(about.Cwd))
	}
	fmt.Fprintf(s.err, "agent: going on in the session's directory, %s\n", display.Printable(about.Cwd))
	sh.dir = about.Cwd
	return nil
}

// session returns the id of the session to go on with, after locate; "" begins
// a new one. With --fork it makes one: it is to be called when nothing else can
// go wrong.
func (r *resumption) session(ctx context.Context, home, dir string) (string, error) {
	id := r.resume
	if r.latest {
		last, err := store.Latest(agent.SessionsDir(home), dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("--continue: there is no session of %s to go on with; leave the flag out to begin one", dir)
		case err != nil:
			return "", fmt.Errorf("--continue: %w", err)
		}
		id = last.ID
	}
	if !r.fork {
		return id, nil
	}
	fork, err := agent.ForkSession(ctx, home, id, 0)
	if err != nil {
		return "", sessionAdvice(err, id)
	}
	return fork, nil
}
