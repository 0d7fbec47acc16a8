package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

var (
	ErrInterrupted = errors.New("interrupted")
	ErrTerminated  = errors.New("terminated")
)

// Interrupts turns the process's signals into the ways of ending a session:
// the first SIGINT calls soft, the second and any SIGTERM or SIGHUP end the
// context that it returns. The stop function ends the watching and returns
// which signal came first, if any.
func Interrupts(parent context.Context, notes io.Writer, soft func()) (ctx context.Context, stop func() error) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	var first error
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case sig := <-signals:
				switch {
				case sig != os.Interrupt:
					if first == nil {
						first = ErrTerminated
					}
					cancel(ErrTerminated)
				case first == nil:
					first = ErrInterrupted
					fmt.Fprintln(notes, "\nagent: stopping after what is running; press Ctrl-C again to abort it")
					soft()
				default:
					cancel(ErrInterrupted)
				}
			case <-done:
				return
			}
		}
	})
	return ctx, func() error {
		signal.Stop(signals)
		close(done)
		wg.Wait()
		cancel(nil)
		return first
	}
}
