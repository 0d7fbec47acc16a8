package session

import (
	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

// NewCmd returns agent sessions.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("sessions", "Manage saved sessions",
		newListCmd(s), newShowCmd(s), newTraceCmd(s), newExportCmd(s), newViewCmd(s), newForkCmd(s), newMoveCmd(s), newDiffCmd(s), newUndoCmd(s), newRestoreCmd(s), newDeleteCmd(s), newRepairCmd(s))
}
