package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// cmdPlugins lists the session's plugins.
func (c *chat) cmdPlugins(context.Context, string) (string, error) {
	host := c.agent.Plugins()
	if host == nil || len(host.Plugins())+len(host.Broken()) == 0 {
		return "There are no plugins. `agent plugins add` adds one.", nil
	}
	cell := func(text string, most int) string { return strings.ReplaceAll(display.OneLine(text, most), "|", "/") }
	var b strings.Builder
	b.WriteString("| Plugin | Scope | State | Tools | May |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range host.Plugins() {
		i := setup.PluginInfoOf(c.set, p)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", i.Name, i.Scope, i.State, cell(strings.Join(i.Tools, ", "), 60), cell(strings.Join(i.Manifest.Lines(), "; "), 120))
	}
	for _, broken := range host.Broken() {
		fmt.Fprintf(&b, "\n- **%s** is broken: %s", broken.Plugin, cell(broken.Err.Error(), 300))
	}
	return b.String(), nil
}
