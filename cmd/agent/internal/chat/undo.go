package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// cmdUndo takes back what the last input changed in files.
func (c *chat) cmdUndo(ctx context.Context, args string) (string, error) {
	opts := agent.UndoOptions{}
	switch strings.TrimSpace(args) {
	case "":
	case "--overwrite":
		opts.Overwrite = true
	default:
		return "", fmt.Errorf("/undo takes only --overwrite, not %q; `agent sessions undo --to N` goes further back", args)
	}
	return c.revert(ctx, opts)
}

// cmdRedo takes the last undo back.
func (c *chat) cmdRedo(ctx context.Context, _ string) (string, error) {
	return c.revert(ctx, agent.UndoOptions{Redo: true})
}

func (c *chat) revert(ctx context.Context, opts agent.UndoOptions) (string, error) {
	done, err := c.session.Undo(ctx, opts)
	if err != nil {
		return "", err
	}
	text := "```\n" + display.Reverted(done, false) + "```"
	if len(done.Conflicts) > 0 && !opts.Redo && !opts.Overwrite {
		text += "\n\n`/undo --overwrite` restores the kept files as well; what was changed in them since is lost."
	}
	return text, nil
}
