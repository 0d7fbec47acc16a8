package posix

import (
	"bufio"
	"context"
	"io"
)

// dialog is a running file script that reads requests and prints answers.
type dialog struct {
	env    *Env
	stop   context.CancelFunc
	in     *io.PipeWriter
	out    *io.PipeReader
	from   *bufio.Reader // of out
	ran    chan struct{} // the script has ended
	runErr error         // set when ran is closed
	stderr *tail         // read when ran is closed
}

// dialog runs a script until end is called, which Close does too.
func (e *Env) dialog(ctx context.Context, script string, args ...string) (*dialog, error) {
	in, requests := io.Pipe()
	answers, out := io.Pipe()
	d := &dialog{env: e, in: requests, out: answers, from: bufio.NewReaderSize(answers, blockSize), ran: make(chan struct{}), stderr: &tail{}}
	ctx, d.stop = context.WithCancel(ctx)
	if err := e.begin(d); err != nil {
		d.stop()
		return nil, err
	}
	go func() { // ended by end
		defer e.retire(d)
		defer close(d.ran)
		d.runErr = e.runner.Run(ctx, argv(script, args), in, out, d.stderr)
		in.Close()
		out.Close() // EOF tells the reader that Run has returned
	}()
	return d, nil
}

// end ends the script. It implements closer.
func (d *dialog) end() {
	d.in.Close()
	d.out.Close()
	d.stop()
}

// why returns why the script, which has ended, did not answer.
func (d *dialog) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed := outcome(ctx, d.runErr, d.stderr.text()); failed != nil {
		return failed
	}
	return err
}
