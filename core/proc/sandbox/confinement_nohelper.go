//go:build !linux

package sandbox

import "context"

// plan is the plan of a helper, which does not exist on this system.
type plan struct{}

// broker is only for level Landlock.
type broker struct{}

func (*broker) close() {}

// Enter returns when the command runs, which is immediately.
func (c *Confinement) Enter(context.Context) error { return nil }

// Wait is only for a sandbox with a helper.
func (c *Confinement) Wait() (ended Ended, ok bool) { return Ended{}, false }

// Start starts the command.
func (c *Confinement) Start() error { return c.cmd.Start() }

// forkServer does not exist on this system.
type (
	forkServer struct{ runner Runner }
	forker     struct{}
)

func (*forkServer) close() {}

func (*forkServer) release(*forker, bool) {}
