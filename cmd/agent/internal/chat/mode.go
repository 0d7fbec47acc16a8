package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/permissions"
)

// setMode switches the permission mode.
func (c *chat) setMode(ctx context.Context, m permissions.Mode) error {
	return c.change(ctx, settingMode, string(m))
}

// runModes are the modes in which a plan can be carried out.
func (c *chat) runModes() []permissions.Mode {
	modes := []permissions.Mode{permissions.ModeDefault, permissions.ModeAcceptEdits}
	if c.workspaceMode() == nil {
		modes = append(modes, permissions.ModeWorkspace)
	}
	return modes
}

// workspaceMode returns why mode workspace cannot be used here.
func (c *chat) workspaceMode() error {
	switch {
	case !c.set.Trusted:
		return errors.New("workspace needs a trusted directory: run agent trust in it, and start again")
	case !c.policy.Sandboxed():
		return errors.New("workspace needs a sandbox, which does not work here; agent doctor says why")
	}
	return nil
}

// nextMode switches to the next of the modes that one key goes through.
func (c *chat) nextMode() error {
	ctx := context.Background()
	modes := slices.Insert(c.runModes(), 2, permissions.ModePlan)
	return c.setMode(ctx, modes[(slices.Index(modes, c.mode())+1)%len(modes)])
}

func (c *chat) mode() permissions.Mode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policy.Mode()
}

func (c *chat) cmdMode(ctx context.Context, args string) (string, error) {
	name := strings.TrimSpace(args)
	if name == "" {
		return fmt.Sprintf("The permission mode is **%s**. `/mode NAME` switches to another: %s. Shift+Tab goes through them.", c.mode(), modeNames()), nil
	}
	m, err := permissions.ParseMode(name)
	if err != nil {
		return "", err
	}
	if err := c.setMode(ctx, m); err != nil {
		return "", err
	}
	return fmt.Sprintf("The permission mode is now **%s**.", m), nil
}

func modeNames() string {
	var names []string
	for _, m := range permissions.Modes() {
		names = append(names, string(m))
	}
	return strings.Join(names, ", ")
}

func (c *chat) completeMode(_ context.Context, prefix string) []string {
	names := strings.Split(modeNames(), ", ")
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}
