package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"
)

// runPlain runs the session line by line: nothing is ever drawn again. It
// suits dumb terminals, screen readers, pipes and files.
func runPlain(ctx context.Context, o Options) (Next, error) {
	h := newHost(ctx, o)
	inbox := make(chan any)
	h.post = func(msg any) {
		select {
		case inbox <- msg:
		case <-h.ctx.Done():
		}
	}
	p := &plainScreen{driver: newDriver(h, newScene(painter{}, 0, o.Dir)), out: o.Out}
	p.scene.stream = p.stream
	p.call = p.ring
	if f, ok := o.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.prompts = true
		p.echo = func(string) {} // the terminal did
	}
	p.restore = func(text string) {
		if line, _, _ := strings.Cut(text, "\n"); !p.left {
			p.scene.note(plain, "not sent: "+line)
		}
	}
	lines, err := readLines(o.In)
	if err != nil {
		return Next{}, err
	}
	defer lines.close()
	h.start(ctx)
	defer h.close()
	return p.loop(inbox, lines)
}

// plainScreen is the screen of a session line by line.
type plainScreen struct {
	*driver
	out      io.Writer
	prompts  bool // there is somebody to prompt
	midLine  bool // what was printed last did not end its line
	prompted bool // a prompt stands at the end
	shown    *asked
	failed   error // of out
}

// loop serves the person and the session until one of them has enough.
func (p *plainScreen) loop(inbox <-chan any, lines *lineReader) (Next, error) {
	if p.Welcome != "" {
		p.scene.note(plain, p.Welcome)
	}
	if p.Prompt != "" {
		p.scene.user(p.Prompt)
		p.enter(p.Prompt)
	}
	input := lines.lines
	for {
		p.show(input != nil)
		if p.left || p.failed != nil {
			break
		}
		select {
		case line, ok := <-input:
			p.prompted = false
			if !ok {
				input = nil
				if p.dialog != nil {
					p.reply(p.dialog.dismissed())
				}
				break
			}
			p.line(line)
		case msg := <-inbox:
			p.took(msg)
		}
		if input == nil && !p.work.busy && len(p.jobs) == 0 && p.work.done == nil {
			p.leave(Next{Kind: NextQuit}, lines.err)
		}
	}
	if p.failed != nil {
		return Next{}, fmt.Errorf("the output cannot be written: %w", p.failed)
	}
	return p.next, p.err
}

// took takes a message of the host and says what a drawn screen would show
// elsewhere.
func (p *plainScreen) took(msg any) {
	_, isSignal := msg.(signalMsg)
	stopped := p.work.stopped
	p.handle(msg)
	switch {
	case isSignal && p.work.busy && stopped == 0:
		p.scene.note(plain, "! stopping after what is running; Ctrl-C again aborts it")
	case isSignal && p.armed && !p.left:
		p.scene.note(plain, "! Ctrl-C again leaves; so does /quit")
	}
	switch m := msg.(type) {
	case eventsMsg:
		for _, e := range m {
			if c := p.scene.call(e.Call); c != nil && !c.told {
				c.told = true
				p.scene.add("tool", strings.TrimSpace("● "+c.name+" "+c.about))
			}
		}
	case steerMsg:
		if m.err == nil {
			p.scene.note(plain, "↳ queued; the agent sees it after the present step")
		}
	}
}

// line takes a line that the person entered.
func (p *plainScreen) line(line string) {
	if p.dialog == nil {
		if strings.TrimSpace(line) != "" && p.SaveHistory != nil {
			p.SaveHistory(line)
		}
		p.scene.kind = "" // the line stands on the screen already
		p.enter(line)
		return
	}
	answer, err := p.dialog.answerLine(line)
	switch {
	case err != nil:
		p.print(fmt.Sprintf("! %v\n", err))
		p.ask()
	case answer != nil:
		p.reply(*answer)
	default:
		p.ask()
	}
}

// show prints what is finished, a question that is new, and a prompt where the
// person is to enter something.
func (p *plainScreen) show(open bool) {
	for _, l := range p.scene.take() {
		p.endLine()
		p.print(l + "\n")
	}
	if p.dialog != nil && p.shown != p.dialog.asked {
		p.shown = p.dialog.asked
		p.endLine()
		for _, l := range append(p.scene.head(p.dialog), p.scene.choices(p.dialog, -1)...) {
			p.print(l + "\n")
		}
		p.ask()
		if !open { // nobody is there any more
			p.reply(p.dialog.dismissed())
		}
	}
	if p.prompts && p.dialog == nil && open && !p.left && !p.prompted && !p.work.busy && len(p.jobs) == 0 {
		p.endLine()
		p.print("> ")
		p.prompted = true
	}
}

// ask prints the prompt of a question.
func (p *plainScreen) ask() {
	if p.dialog.typing() {
		p.print(strings.TrimSpace(p.dialog.label()+" "+p.dialog.hint()) + "\n? ")
	} else {
		p.print(p.dialog.hint() + "? ")
	}
	p.prompted = true
}

// stream prints an answer as it comes.
func (p *plainScreen) stream(text string) {
	lines := p.scene.take()
	if p.prompted && p.midLine {
		p.endLine()
	}
	for _, l := range lines {
		p.endLine()
		p.print(l + "\n")
	}
	if text == "\n" && !p.midLine {
		return
	}
	p.print(text)
}

// ring calls the person.
func (p *plainScreen) ring(string) {
	if p.Notify == NotifyBell {
		p.print("\a")
	}
}

func (p *plainScreen) endLine() {
	if p.midLine {
		p.print("\n")
	}
	p.prompted = false
}

func (p *plainScreen) print(text string) {
	if p.failed != nil || text == "" {
		return
	}
	if _, err := io.WriteString(p.out, text); err != nil {
		p.failed = err
	}
	p.midLine = !strings.HasSuffix(text, "\n") && text != "\a"
}

// lineReader reads lines in a goroutine that ends with close.
type lineReader struct {
	lines  chan string // closed at the end
	err    error       // set before lines is closed
	reader cancelreader.CancelReader
	done   chan struct{}
	wg     sync.WaitGroup
}

func readLines(in io.Reader) (*lineReader, error) {
	r, err := cancelreader.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("the input cannot be read: %w", err)
	}
	l := &lineReader{lines: make(chan string), reader: r, done: make(chan struct{})}
	l.wg.Go(l.read)
	return l, nil
}

func (l *lineReader) read() {
	defer close(l.lines)
	const most = 16 << 20
	s := bufio.NewScanner(l.reader)
	s.Buffer(nil, most)
	for s.Scan() {
		select {
		case l.lines <- s.Text():
		case <-l.done:
			return
		}
	}
	if err := s.Err(); err != nil && !errors.Is(err, cancelreader.ErrCanceled) {
		l.err = fmt.Errorf("the input cannot be read: %w", err)
	}
}

// close ends the reading. A reader that cannot be interrupted keeps its
// goroutine until its next line.
func (l *lineReader) close() {
	close(l.done)
	if l.reader.Cancel() {
		l.wg.Wait()
	}
	_ = l.reader.Close()
}
