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

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
)

// runPlain runs the session line by line, without redrawing anything, for dumb
// terminals, screen readers, pipes and files.
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
	p.alert, p.view, p.restore = p.ring, p.printView, p.offer
	if f, ok := o.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.prompts = true
		o.Asker.list(false)
		p.echo = func(string) {} // the terminal echoes
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
	prompts  bool // the input is a terminal
	midLine  bool // the last line is unterminated
	prompted bool // the last line is a prompt
	shown    *pending
	offered  string // what an empty line sends
	failed   error  // of out
}

// loop serves the user and the session until one of them ends.
func (p *plainScreen) loop(inbox <-chan any, lines *lineReader) (Next, error) {
	if p.Welcome != "" {
		p.scene.markdown(p.Welcome)
	}
	if p.steps != nil {
		p.guide()
	} else if p.Prompt != "" {
		p.scene.user(p.Prompt)
		p.enter(p.Prompt)
	} else if p.Session.Now().State == core.StateParked {
		p.begin("") // asks the parked question
	}
	input := lines.lines
	for {
		p.show(input != nil)
		if p.quitting || p.failed != nil {
			break
		}
		select {
		case line, ok := <-input:
			p.prompted = false
			if !ok {
				input = nil
				if p.dialog != nil {
					p.reply(p.dialog.dismissal())
				}
				break
			}
			p.line(line)
		case msg := <-inbox:
			p.receive(msg)
		}
		if input == nil && !p.work.busy && len(p.jobs) == 0 && p.work.done == nil {
			p.leave(Next{Kind: NextQuit}, lines.err)
		}
	}
	if p.failed != nil {
		return Next{}, fmt.Errorf("cannot write the output: %w", p.failed)
	}
	return p.next, p.err
}

// receive handles a message of the host and prints what the status line would
// show.
func (p *plainScreen) receive(msg any) {
	_, isSignal := msg.(signalMsg)
	stopped, busy := p.work.stopped, p.work.busy
	p.handle(msg)
	if n := len(p.scene.queue.labels()); n > 0 && busy && !p.work.busy {
		p.scene.note(plain, "↳ Not sent yet: "+display.Plural(n, "queued message")+". Press Enter to send.")
	}
	switch {
	case isSignal && p.work.busy && stopped == 0:
		p.scene.note(plain, "! Stopping after the current step. Press Ctrl-C again to abort.")
	case isSignal && p.quitArmed && !p.quitting:
		p.scene.note(plain, "! Press Ctrl-C again or enter /quit to quit.")
	}
	switch m := msg.(type) {
	case eventsMsg:
		for _, e := range m {
			p.scene.announce(e.Call)
		}
	case steerMsg:
		if m.err == nil {
			p.scene.note(plain, "↳ queued until the current step ends")
		}
	}
}

// line handles a line that the user entered.
func (p *plainScreen) line(line string) {
	if p.dialog == nil && p.steps != nil {
		return // there is no session to enter it for
	}
	if p.dialog == nil {
		if strings.TrimSpace(line) != "" && p.SaveHistory != nil {
			p.SaveHistory(line)
		}
		p.scene.kind = "" // the line is already on the screen
		p.enter(p.instead(line))
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

// offer shows a text that was not sent, which an empty line sends.
func (p *plainScreen) offer(text string) {
	if !p.quitting {
		p.offered = text
		p.scene.note(plain, "Not sent: "+strings.TrimSpace(text)+"\nPress Enter to send this, or enter another message.")
	}
}

// instead returns what is meant by a line: what is offered, if it is empty. Another
// message takes the place of the offer, a command does not.
func (p *plainScreen) instead(line string) string {
	switch offered := p.offered; {
	case strings.TrimSpace(line) == "" && offered != "":
		p.offered = ""
		return offered
	case p.parse(line).kind == entryPrompt:
		p.offered = ""
	}
	return line
}

// show prints finished lines, a new question, and a prompt if input is expected.
func (p *plainScreen) show(open bool) {
	for _, l := range p.scene.take() {
		p.endLine()
		p.print(l + "\n")
	}
	if p.dialog != nil && p.shown != p.dialog.pending {
		p.shown = p.dialog.pending
		p.endLine()
		p.printLines(p.scene.head(p.dialog))
		p.printLines(p.scene.review(p.dialog.review))
		p.ask()
		if !open { // the input has ended
			p.reply(p.dialog.dismissal())
		}
	}
	if p.prompts && p.dialog == nil && open && !p.quitting && !p.prompted && !p.work.busy && len(p.jobs) == 0 {
		p.endLine()
		p.print("> ")
		p.prompted = true
	}
}

// ask prints the answers to a question, and what to enter.
func (p *plainScreen) ask() {
	d := p.dialog
	if d.list != nil {
		p.printLines(d.list.lines())
		p.print("Number or name (an empty line: none): ")
	} else if d.typing() {
		p.print(strings.TrimSpace(d.label()+" "+d.hint()) + "\n")
		p.print("Your answer: ")
	} else {
		var keys []string
		for _, o := range d.options {
			if o.choice == viewReview || o.choice == editReview || o.choice == hunkReview {
				continue // the changes are above, and the screen is not ours
			}
			p.print(fmt.Sprintf("  %c: %s\n", o.key, o.label))
			keys = append(keys, string(o.key))
		}
		last := len(keys) - 1
		if last > 0 {
			keys = append(keys[:last-1], keys[last-1]+" or "+keys[last])
		}
		p.print(fmt.Sprintf("Enter %s (an empty line: %s): ", strings.Join(keys, ", "), d.dismissed()))
	}
	p.prompted = true
}

// ring notifies the user.
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

func (p *plainScreen) printLines(lines []string) {
	for _, l := range lines {
		p.print(l + "\n")
	}
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

// lineReader reads lines in a goroutine until close.
type lineReader struct {
	lines  chan string // closed at the end of the input
	err    error       // set before lines is closed
	reader cancelreader.CancelReader
	done   chan struct{}
	wg     sync.WaitGroup
}

func readLines(in io.Reader) (*lineReader, error) {
	r, err := cancelreader.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("cannot read the input: %w", err)
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
		l.err = fmt.Errorf("cannot read the input: %w", err)
	}
}

// close stops reading. If the reader cannot be interrupted, its goroutine runs
// until the next line.
func (l *lineReader) close() {
	close(l.done)
	if l.reader.Cancel() {
		l.wg.Wait()
	}
	_ = l.reader.Close()
}
