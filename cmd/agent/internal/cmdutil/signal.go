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

// The errors of a command that a signal ended.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrTerminated  = errors.New("terminated")
)

// Interrupts handles the process's signals: the first SIGINT calls soft, a second
// one and any SIGTERM or SIGHUP cancel the context that it returns. The stop
// function restores the default handling and returns the error of the first
// signal, if there was one.
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
					fmt.Fprintln(notes, "\nagent: interrupting what is running; press Ctrl-C again to abort it")
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

// Interruptible runs f with a context that SIGINT, SIGTERM and SIGHUP cancel. If
// one arrived, the error is the signal's.
func Interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := Interrupts(ctx, io.Discard, func() { cancel(ErrInterrupted) })
	err := f(ctx)
	if sig := stop(); sig != nil {
		return sig
	}
	return err
}

// PipeErrors makes writing to a stdout or stderr whose reader has gone an error, until
// stop is called: by default it ends the process. Child processes are not affected.
func PipeErrors() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
