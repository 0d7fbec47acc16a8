package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// pumpSize is the capacity of a pipe on Linux, so that one read empties it.
const pumpSize = 64 << 10

// pump copies output from a pipe to a writer.
type pump struct {
	from *os.File
	to   io.Writer
	err  error // of the writer
}

// run copies until the last writer closes the pipe, the destination fails, or cut
// is called.
func (o *pump) run() {
	defer o.from.Close()
	buf := make([]byte, pumpSize)
	for {
		n, err := o.from.Read(buf)
		if n > 0 {
			if _, o.err = o.to.Write(buf[:n]); o.err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut makes run return although the pipe is still open.
func (o *pump) cut() { _ = o.from.SetReadDeadline(time.Now()) }

// copy starts copying input and output.
func (p *Process) copy(stdin io.Reader) {
	var all sync.WaitGroup
	for _, o := range p.output {
		all.Go(o.run)
	}
	if len(p.output) == 0 {
		close(p.drained)
	} else {
		go func() { // ends with the pumps, which finishOutput ends
			all.Wait()
			close(p.drained)
		}()
	}
	if p.keyboard != nil {
		go func() { // ends like that of a pipe, below
			if stdin != nil {
				_, _ = io.Copy(keyboard{p.keyboard}, stdin) // a command need not read its input
			}
			_, _ = p.keyboard.Write([]byte{endOfFile})
		}()
	}
	if p.input != nil {
		go func() { // may outlive the process in a Read of stdin, as Spec says
			_, _ = io.Copy(p.input, stdin) // a command need not read its input
			p.input.Close()
		}()
	}
}

// The control characters of terminals: VEOF and VINTR.
const (
	endOfFile = 4
	intr      = 3
)

// keyboard hides that the other end is a file, to which copying may be refused.
type keyboard struct{ io.Writer }

// finishOutput ends the copying, and returns the error of a writer.
func (p *Process) finishOutput() error {
	if p.input != nil {
		p.input.Close()
	}
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-p.drained:
	case <-timer.C:
		for _, o := range p.output {
			o.cut()
		}
		<-p.drained
	}
	var errs []error
	for _, o := range p.output {
		errs = append(errs, o.err)
	}
	return errors.Join(errs...)
}
