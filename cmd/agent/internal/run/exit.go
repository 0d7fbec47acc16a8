package run

import (
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core"
)

// OutcomeCode maps the outcome of an input to an exit code.
func OutcomeCode(out core.Outcome, err error) int {
	if err != nil {
		return cmdutil.ExitCode(err)
	}
	switch out.Stop {
	case core.StopTurnLimit, core.StopTokenLimit, core.StopMaxTokens:
		return cmdutil.ExitLimit
	case core.StopCancelled, core.StopAborted:
		return cmdutil.ExitSIGINT
	case core.StopParked:
		return cmdutil.ExitParked
	case core.StopRefused:
		return cmdutil.ExitError
	}
	if len(out.Denied) > 0 {
		return cmdutil.ExitDenied
	}
	return cmdutil.ExitDone
}
