package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/jsonpos"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// frame is the interval at which streamed text is drawn.
const frame = 33 * time.Millisecond

// host executes the user's requests, independently of the screen. It works in
// its own goroutines and posts results; close ends them.
type host struct {
	Options
	ctx  context.Context // of everything that is running
	stop context.CancelFunc
	post func(msg any) // delivers messages in order; safe for concurrent use
	wg   sync.WaitGroup

	sending sync.Mutex  // held while an input or a cancel is sent
	calm    *time.Timer // gives memory back
}

// Messages of a host.
type (
	// pastMsg is the end of a resumed session's past.
	pastMsg struct {
		events []event.Event
		more   bool // there are earlier turns
	}
	eventsMsg  []event.Event
	feedEndMsg struct{ err error } // there are no more events
	notesMsg   []string            // notes of Expand
	// doneMsg reports that an input is processed, or was not taken.
	doneMsg struct {
		result  event.Result
		err     error  // why it was not taken
		refused string // the entered text, if it was not taken
	}
	startedMsg struct{ label string } // a queued message is submitted
	// steerMsg reports that a queued message is ready, or why it is not.
	steerMsg struct {
		label string // as entered
		err   error
	}
	// replaceMsg is the answer to what becomes of the queue in the next session.
	replaceMsg struct {
		next   Next
		choice core.Choice
	}
	shellOutMsg  struct{ text string }
	shellDoneMsg struct {
		job             int
		command, output string // the output for the model
		err             error
	}
	commandMsg struct {
		job    int
		name   string
		result Result
		err    error
	}
	askMsg        struct{}
	refreshMsg    struct{} // the status has changed
	calmMsg       struct{} // memory was given back
	signalMsg     struct{ os.Signal }
	callerDoneMsg struct{ err error } // the caller's context is done
)

func newHost(ctx context.Context, o Options) *host {
	if o.Queue == nil {
		o.Queue = NewQueue()
	}
	h := &host{Options: o}
	h.calm = time.AfterFunc(time.Hour, func() {
		giveBack()
		h.post(calmMsg{})
	})
	h.calm.Stop() // until the start
	o.Queue.bind(func(in core.Input) {
		_, _ = o.Session.Do(h.ctx, sessions.Command{Type: "input", When: "keep", Own: &in})
	})
	h.ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	return h
}

// start follows the session, the questions, the signals and the caller's
// context.
func (h *host) start(caller context.Context) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // before the terminal is changed
	h.wg.Go(func() {
		defer signal.Stop(signals)
		for {
			select {
			case sig := <-signals:
				h.post(signalMsg{sig})
			case <-h.Asker.changed:
				h.post(askMsg{})
			case <-h.Refresh:
				h.post(refreshMsg{})
			case <-caller.Done():
				h.post(callerDoneMsg{context.Cause(caller)})
				caller = context.Background()
			case <-h.ctx.Done():
				return
			}
		}
	})
	h.wg.Go(h.follow)
	h.calm.Reset(calm)
}

// close stops everything and waits for it.
func (h *host) close() {
	if !h.Detach {
		_, _ = h.Session.Do(h.ctx, sessions.Command{Type: "cancel", Reason: "the terminal was left"})
	}
	h.calm.Stop()
	h.stop()
	h.wg.Wait()
	h.Queue.bind(nil)
}

// follow posts the past and then the events, in batches of a frame.
func (h *host) follow() {
	f := &feed{ready: make(chan struct{}, 1)}
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		h.postBatches(f)
	}()
	err := h.read(f)
	f.end()
	<-posted
	if h.ctx.Err() == nil {
		h.post(feedEndMsg{err})
	}
}

// read reads the events since the session was opened.
func (h *host) read(to *feed) error {
	past, err := h.recall(h.Session.Past() + 1)
	if err != nil {
		return err
	}
	posted := false
	for e, err := range h.Session.Events(h.ctx, h.Session.Past()) {
		if err != nil {
			return err
		}
		if !posted {
			posted = true
			h.post(past)
		}
		to.add(e)
	}
	return nil
}

// recall returns the last turns before the session was opened. It reads
// backwards in growing steps, so that the cost depends on what is shown only.
func (h *host) recall(opened event.Seq) (pastMsg, error) {
	if h.Replay <= 0 || opened <= 1 {
		return pastMsg{}, nil
	}
	for back := event.Seq(500); ; back *= 4 {
		from := opened - min(opened, back)
		past := recent{most: h.Replay}
		for e, err := range h.Session.Events(h.ctx, from) {
			if err != nil {
				return pastMsg{}, err
			}
			if e.Seq >= opened {
				break
			}
			past.add(e)
		}
		if past.more || from == 0 {
			return pastMsg{slices.Concat(past.turns...), past.more}, nil
		}
	}
}

// recent keeps the last turns of a conversation.
type recent struct {
	most  int
	turns [][]event.Event
	more  bool // there were earlier turns
}

func (r *recent) add(e event.Event) {
	if _, ok := e.Body.(event.User); ok {
		if len(r.turns) == r.most {
			r.turns = slices.Delete(r.turns, 0, 1)
			r.more = true
		}
		r.turns = append(r.turns, nil)
	}
	if n := len(r.turns); n > 0 {
		r.turns[n-1] = append(r.turns[n-1], e)
	}
}

// feed buffers the events that were not posted yet, so that reading the session
// never waits for drawing and misses no piece of an answer.
type feed struct {
	mu      sync.Mutex
	pending eventsMsg
	ended   bool
	ready   chan struct{} // holds a token when take returns something new
}

func (f *feed) add(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.pending); n == 0 || !extend(&f.pending[n-1], e) {
		f.pending = append(f.pending, e)
	}
	f.wake()
}

func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.wake()
}

func (f *feed) wake() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

func (f *feed) take() (events eventsMsg, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events, f.pending = f.pending, nil
	return events, f.ended
}

// extend appends a piece of text to the previous one, and reports whether it
// belongs there. Pieces stay small, since appending copies.
func extend(last *event.Event, e event.Event) bool {
	const most = 4 << 10
	if last.Call != e.Call {
		return false
	}
	switch b := e.Body.(type) {
	case event.MessageDelta:
		if before, ok := last.Body.(event.MessageDelta); ok && len(before.Text) < most {
			e.Body = event.MessageDelta{Text: before.Text + b.Text}
			*last = e
			return true
		}
	case event.ToolOutputDelta:
		if before, ok := last.Body.(event.ToolOutputDelta); ok && len(before.Text) < most {
			e.Body = event.ToolOutputDelta{Text: before.Text + b.Text}
			*last = e
			return true
		}
	}
	return false
}

// postBatches posts the events of a frame together, the first one immediately.
func (h *host) postBatches(f *feed) {
	var last time.Time
	for {
		<-f.ready
		if wait := frame - time.Since(last); wait > 0 {
			select {
			case <-time.After(wait):
			case <-h.ctx.Done():
			}
		}
		last = time.Now()
		events, ended := f.take()
		if len(events) > 0 {
			h.post(events)
		}
		if ended {
			return
		}
	}
}

// entry is an entered text.
type entry struct {
	kind    entryKind
	text    string   // the whole text, or the command line of a shell
	name    string   // of a command
	args    string   // of a command
	command *Command // nil if unknown
}

type entryKind int

const (
	entryPrompt entryKind = iota
	entryCommand
	entryShell
)

// parse parses an entered text. A first word with a second slash is a path, not
// a command.
func (h *host) parse(text string) entry {
	trimmed := strings.TrimSpace(text)
	if command, ok := strings.CutPrefix(trimmed, "!"); ok && h.Shell != nil && strings.TrimSpace(command) != "" {
		return entry{kind: entryShell, text: strings.TrimSpace(command)}
	}
	rest, ok := strings.CutPrefix(trimmed, "/")
	name, args, _ := strings.Cut(rest, " ")
	name, more, cut := strings.Cut(name, "\n")
	if cut {
		args = more + " " + args
	}
	if !ok || name == "" || strings.Contains(name, "/") {
		return entry{kind: entryPrompt, text: text}
	}
	e := entry{kind: entryCommand, text: trimmed, name: name, args: strings.TrimSpace(args)}
	commands := h.commands()
	if i := slices.IndexFunc(commands, func(c Command) bool { return c.Name == name }); i >= 0 {
		e.command = &commands[i]
	}
	return e
}

// commands returns the commands of Options and the built-in ones.
func (h *host) commands() []Command {
	var list []Command
	if h.Options.Commands != nil {
		list = slices.Clone(h.Options.Commands())
	}
	return append(list,
		Command{Name: "help", Summary: "show commands and keys", Run: func(context.Context, string) (Result, error) {
			return Result{Text: h.help()}, nil
		}},
		Command{Name: "jobs", Args: "[ID | end ID | steer ID TEXT]", Summary: "show commands in the background and subagents", Run: h.cmdJobs},
		Command{Name: "keys", Summary: "show which key does what", Run: h.cmdKeys},
		Command{Name: "queue", Args: "[edit|drop|up|down N]", Summary: "show and change the queued messages", Run: h.cmdQueue},
		Command{Name: "quit", Summary: "quit the session", Run: func(context.Context, string) (Result, error) {
			return Result{Next: &Next{Kind: NextQuit}}, nil
		}},
	)
}

// unknown returns the error for an unknown command.
func (h *host) unknown(name string) string {
	var names []string
	for _, c := range h.commands() {
		names = append(names, c.Name)
	}
	text := fmt.Sprintf("unknown command /%s", display.Printable(name))
	if n := jsonpos.Nearest(name, names); n != "" {
		return text + "; did you mean /" + n + "?"
	}
	return text + "; see /help"
}

func (h *host) help() string {
	var b strings.Builder
	b.WriteString("| command | |\n|---|---|\n")
	seen := map[string]bool{}
	for _, c := range h.commands() {
		if !seen[c.Name] {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace("/"+c.Name+" "+c.Args), "|", "\\|"), c.Summary)
		}
		seen[c.Name] = true
	}
	if h.Shell != nil {
		b.WriteString("| `!command` | run a command; the model sees its output with your next message |\n")
	}
	if h.Expand != nil {
		b.WriteString("| `@file` | add a file to your message |\n")
	}
	return b.String() + keyHelp
}

// submit submits the queued messages and a text to the session, as a run. A text
// with an ID is itself in the queue. Cancelling ctx keeps it from being submitted.
func (h *host) submit(ctx context.Context, run, text string, id int) {
	h.wg.Go(func() {
		done := doneMsg{refused: text}
		if done.err = h.send(ctx, run, id, &done.refused); done.err != nil {
			h.post(done)
		}
	})
}

func (h *host) send(ctx context.Context, run string, id int, text *string) (err error) {
	defer h.guard(&err)
	c := sessions.Command{Type: "continue", Run: run}
	if *text != "" {
		input, err := h.expand(ctx, *text)
		if err != nil {
			h.Queue.remove(id)
			return err
		}
		h.Queue.ready(id, input)
		c.Type, c.When, c.Own = "input", "next", &input
	}
	h.sending.Lock()
	defer h.sending.Unlock()
	if ctx.Err() != nil {
		h.Queue.remove(id)
		return ctx.Err()
	}
	if first, ok := h.Queue.start(); ok {
		h.post(startedMsg{first.label})
		c.Type, c.When, c.Own, *text = "input", "next", &first.input, first.label
	} else if id != 0 { // the session has messages that come first
		c.Type, c.Own, *text = "continue", nil, ""
	}
	_, err = h.Session.Do(h.ctx, c)
	return err
}

// cancel cancels what is processed, so that a text that is not submitted yet stays
// with the user.
func (h *host) cancel(abort context.CancelFunc, c sessions.Command) {
	h.sending.Lock()
	defer h.sending.Unlock()
	abort()
	_, _ = h.Session.Do(h.ctx, c)
}

// steer queues a message for the working session.
func (h *host) steer(ctx context.Context, text string) {
	id := h.Queue.add(text)
	h.wg.Go(func() {
		msg := steerMsg{label: text}
		defer func() {
			if msg.err != nil {
				h.Queue.remove(id)
			}
			h.post(msg)
		}()
		defer h.guard(&msg.err)
		input, err := h.expand(ctx, text)
		if msg.err = err; err == nil {
			h.Queue.ready(id, input)
		}
	})
}

func (h *host) expand(ctx context.Context, text string) (core.Input, error) {
	if h.Expand == nil {
		return core.TextInput(text), nil
	}
	input, notes, err := h.Expand(ctx, text)
	if err == nil && len(notes) > 0 {
		h.post(notesMsg(notes))
	}
	return input, err
}

// run runs a command.
func (h *host) run(j job, c Command, args string) {
	h.wg.Go(func() {
		msg := commandMsg{job: j.id, name: c.Name}
		defer func() { h.post(msg) }()
		defer h.guard(&msg.err)
		msg.result, msg.err = c.Run(j.ctx, args)
	})
}

// shell runs a command line.
func (h *host) shell(j job, command string) {
	h.wg.Go(func() {
		out := &shellOutput{post: h.post}
		msg := shellDoneMsg{job: j.id, command: command}
		defer func() {
			msg.output = out.kept.String()
			h.post(msg)
		}()
		defer h.guard(&msg.err)
		msg.err = h.Shell(j.ctx, command, out)
	})
}

// guard turns a panic of the caller's code into an error.
func (h *host) guard(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}

// shellOutput posts the output of a command, and keeps the model's part of it.
type shellOutput struct {
	post func(any)
	mu   sync.Mutex
	kept headTail
}

func (o *shellOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept.add(string(p))
	o.post(shellOutMsg{string(p)})
	return len(p), nil
}

var _ io.Writer = (*shellOutput)(nil)

// headTail keeps the beginning and the end of a text.
type headTail struct {
	head, tail string
	cut        int
}

func (k *headTail) add(text string) {
	const most = 15_000
	if room := most - len(k.head); room > 0 {
		n := min(room, len(text))
		k.head, text = k.head+text[:n], text[n:]
	}
	k.tail += text
	if over := len(k.tail) - most; over > most {
		k.cut += over
		k.tail = k.tail[over:]
	}
}

func (k *headTail) String() string {
	if k.cut > 0 {
		return strings.ToValidUTF8(fmt.Sprintf("%s\n[… %d bytes omitted …]\n%s", k.head, k.cut, k.tail), "\uFFFD")
	}
	return strings.ToValidUTF8(k.head+k.tail, "\uFFFD")
}

// shellSteering returns the message to the model about a command that the user
// ran.
func shellSteering(m shellDoneMsg) string {
	text := "I ran this command:\n\n    " + m.command + "\n\nIt printed:\n\n" + display.Printable(m.output)
	if m.output == "" {
		text = "I ran this command, and it printed nothing:\n\n    " + m.command
	}
	if m.err != nil {
		text += "\n\nIt failed: " + m.err.Error()
	}
	return text
}

// work is the input that the agent works on.
type work struct {
	busy    bool
	run     string
	stopped int // how often the user asked to stop it
	since   time.Time
	abort   context.CancelFunc
	done    *doneMsg
	auto    bool // continues with queued messages only
	again   bool // a message was entered after the stop: it is sent at the end
}

// reopen returns how to continue a session that an abort or an error closed.
func (h *host) reopen(prompt string) Next {
	return Next{Kind: NextResume, Session: h.Session.ID(), Prompt: prompt}
}
