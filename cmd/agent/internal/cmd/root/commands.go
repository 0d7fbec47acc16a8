package root

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/chat"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/acp"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/demo"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/doctor"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/graph"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/hook"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/insights"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/mcp"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/permission"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/plugin"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/provider"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/serve"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/session"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/skill"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/task"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/telemetry"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/tool"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/trust"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/try"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/worktree"
	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/dashboard"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// maker makes the command that its words name: its name and aliases.
type maker struct {
	words []string
	make  func(*cmdutil.IO) *cobra.Command
}

var commands = [...]maker{
	{[]string{"exec", "e"}, run.NewCmd},
	{[]string{"answer"}, run.NewAnswerCmd},
	{[]string{"serve"}, serve.NewCmd},
	{[]string{"worker"}, serve.NewWorkerCmd},
	{[]string{"demo"}, demo.NewCmd},
	{[]string{"tools"}, tool.NewCmd},
	{[]string{"mcp"}, mcp.NewCmd},
	{[]string{"skills"}, skill.NewCmd},
	{[]string{"plugins"}, plugin.NewCmd},
	{[]string{setup.InternalPlugin}, plugin.NewInternalCmd},
	{[]string{setup.InternalPDF}, tool.NewPDFCmd},
	{[]string{"permissions"}, permission.NewCmd},
	{[]string{"hooks"}, hook.NewCmd},
	{[]string{"config"}, config.NewCmd},
	{[]string{"providers"}, provider.NewCmd},
	{[]string{"models"}, provider.NewModelsCmd},
	{[]string{"doctor"}, doctor.NewCmd},
	{[]string{"sessions"}, session.NewCmd},
	{[]string{dashboard.Command}, session.NewDashboardCmd},
	{[]string{"graph"}, graph.NewCmd},
	{[]string{"insights"}, insights.NewCmd},
	{[]string{"task"}, task.NewCmd},
	{[]string{"worktrees"}, worktree.NewCmd},
	{[]string{"try"}, try.NewCmd},
	{[]string{"telemetry"}, telemetry.NewCmd},
	{[]string{"acp"}, func(s *cmdutil.IO) *cobra.Command { return acp.NewCmd(s, provider.NewSetupCmd(s)) }},
	{[]string{"resume"}, func(s *cmdutil.IO) *cobra.Command { return chat.NewResumeCmd(s, provider.Configure(s)) }},
	{[]string{"trust"}, trust.NewCmd},
	{[]string{"completion"}, newCompletionCmd},
	{[]string{"version"}, newVersionCmd},
}

// commandNamed returns what makes the command with this name or alias, or nil.
func commandNamed(word string) func(*cmdutil.IO) *cobra.Command {
	for _, c := range commands {
		if slices.Contains(c.words, word) {
			return c.make
		}
	}
	return nil
}
