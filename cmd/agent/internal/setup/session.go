package setup

import (
	"errors"
	"fmt"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// FindSession returns the home and the id of the session that an argument
// means.
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

// SessionAdvice adds to an error what can be done about a damaged session.
func SessionAdvice(err error, id string) error {
	if errors.Is(err, store.ErrCorrupt) {
		return cmdutil.Advise(err, fmt.Sprintf("agent sessions repair %s puts the damaged end aside, so that the session can be gone on with.\n", id))
	}
	return err
}
