package setup

import (
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// FindSession returns the agent's home directory and the ID of the session
// whose ID is prefix or begins with it.
func FindSession(s *cmdutil.IO, prefix string) (home, id string, err error) {
	if home, err = s.AgentHome(); err != nil {
		return "", "", err
	}
	id, err = store.Find(agent.SessionsDir(home), prefix)
	if errors.Is(err, store.ErrAmbiguous) {
		err = &cmdutil.UsageError{Err: err}
	}
	return home, id, err
}

// SessionAdvice adds advice to the error of a damaged session.
func SessionAdvice(err error, id string) error {
	if errors.Is(err, store.ErrCorrupt) {
		return cmdutil.Advise(err, fmt.Sprintf("Run agent sessions repair %s to cut off the damaged end; then the session can be resumed.\n", id))
	}
	return err
}
