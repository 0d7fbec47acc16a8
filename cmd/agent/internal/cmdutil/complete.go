package cmdutil

import (
	"github.com/spf13/cobra"
)

func Fixed(words []string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}
