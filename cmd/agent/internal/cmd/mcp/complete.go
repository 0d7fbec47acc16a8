package mcp

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// ServerNames completes the names of servers.
func ServerNames(s *cmdutil.IO) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		quiet := *s
		quiet.Err = io.Discard
		_, servers, err := (&mcpPlace{IO: &quiet}).load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, c := range servers {
			names = append(names, cobra.CompletionWithDesc(c.Name, display.OneLine(c.Server.Describe(), 60)))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
