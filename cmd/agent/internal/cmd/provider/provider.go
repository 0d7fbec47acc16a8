package provider

import (
	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// NewCmd returns agent providers.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("providers", "Manage model providers", newListCmd(s), newTestCmd(s), NewSetupCmd(s))
}

// providerFlags are the flags that decide which provider and model are used.
const providerFlags = setup.DirFlag | setup.SettingsFlags | setup.ProviderFlags
