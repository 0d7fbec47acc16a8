package tui

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// driver is the common part of the two screens: it executes what the user enters
// and handles the results. It is not safe for concurrent use.
type driver struct {
	*host
	scene   *scene
	work    work
	jobs    map[int]context.CancelFunc // running commands and shells
	lastJob int
	asked   map[string]context.CancelFunc // open questions of the session

	jobCount, agentCount int // that run in the background
	dialog               *dialog
	shown                event.Seq // the last event
	held                 bool      // the queue is submitted when it is ready
	quitArmed            bool      // the next Ctrl-C quits
	leaving              bool      // the user is asked whether to leave
	quitting             bool
	next                 Next
	err                  error

	// echo shows what the user entered.
	echo func(text string)
	// restore gives a text that was not used to the user, to change it or to send it.
	restore func(text string)
	// copied puts a text into the clipboard.
	copied func(text string)
	// theme changes the colours.
	theme func(name string)
	// alert notifies the user.
	alert func(reason string)
	// view shows a view that a command asked for.
	view func(view)
}

func newDriver(h *host, s *scene) *driver {
	s.queue = h.Queue
	return &driver{
		host: h, scene: s, jobs: map[int]context.CancelFunc{}, asked: map[string]context.CancelFunc{},
		echo: s.user, restore: func(string) {}, theme: func(string) {}, copied: func(string) {}, alert: func(string) {},
	}
}

// enter executes what the user entered.
func (d *driver) enter(text string) {
	d.quitArmed = false
	if strings.TrimSpace(text) == "" {
		if len(d.scene.queue.labels()) > 0 && !d.work.busy {
			d.begin("")
		}
		return
	}
	switch e := d.parse(text); {
	case e.kind == entryCommand && e.command == nil:
		d.echo(text)
		d.scene.fail("%s", d.unknown(e.name))
	case e.kind == entryCommand:
		d.echo(text)
		d.run(d.newJob(), *e.command, e.args)
	case e.kind == entryShell:
		d.echo(text)
		d.shell(d.newJob(), e.text)
	case d.work.busy:
		d.work.again = d.work.stopped > 0
		d.steer(d.ctx, text)
	default:
		d.begin(text)
	}
}

// begin submits an input to the session, after the queued messages; an empty one
// submits only these.
func (d *driver) begin(text string) {
	now := d.Session.Now()
	switch {
	case now.State == core.StateClosed:
		d.leave(d.reopen(text), nil)
		return
	case now.State == core.StateParked && text == "" && len(now.Questions) > 0:
		d.parked(now.Questions)
		return
	}
	if d.held = text == "" && !d.scene.queue.settled(); d.held {
		return // until the last one is ready
	}
	queued := 0
	switch {
	case text != "" && len(d.scene.queue.labels()) > 0:
		queued = d.scene.queue.add(text)
	case text != "":
		d.echo(text)
	}
	ctx, abort := context.WithCancel(d.ctx)
	d.work = work{busy: true, run: rand.Text(), since: d.scene.now(), abort: abort, auto: text == ""}
	d.scene.idle, d.scene.failed = false, false
	d.calm.Stop()
	d.submit(ctx, d.work.run, text, queued)
}

// job is a running command or shell of the user.
type job struct {
	id  int
	ctx context.Context
}

func (d *driver) newJob() job {
	ctx, cancel := context.WithCancel(d.ctx)
	d.lastJob++
	d.jobs[d.lastJob] = cancel
	return job{d.lastJob, ctx}
}

func (d *driver) endJob(id int) {
	if cancel := d.jobs[id]; cancel != nil {
		cancel()
		delete(d.jobs, id)
	}
}

// interrupt handles Ctrl-C with an empty input box: it stops what is running,
// gracefully at first, and quits if nothing is.
func (d *driver) interrupt() {
	if d.dialog != nil {
		d.reply(d.dialog.dismissal())
	}
	switch {
	case d.work.busy:
		d.halt("interrupted by Ctrl-C")
	case len(d.jobs) > 0:
		for _, cancel := range d.jobs {
			cancel()
		}
	case d.quitArmed && d.leaving: // the question was whether to leave
		d.leave(Next{Kind: NextQuit}, nil)
	case d.quitArmed:
		d.change(Next{Kind: NextQuit})
	default:
		d.quitArmed = true
	}
}

// halt stops the work: after the current step at first, immediately the second
// time. A third time closes the session.
func (d *driver) halt(reason string) {
	d.work.stopped++
	d.scene.queue.pause()
	c := sessions.Command{Type: "cancel", Reach: "model", Reason: reason}
	switch d.work.stopped {
	case 1:
	case 2:
		c.Reach = "tools"
	default:
		c = sessions.Command{Type: "close"}
	}
	d.cancel(d.work.abort, c)
}

// leave ends Run.
func (d *driver) leave(next Next, err error) {
	if !d.quitting {
		d.quitting, d.next, d.err = true, next, err
	}
}

// handle handles a message of the host.
func (d *driver) handle(msg any) {
	switch m := msg.(type) {
	case pastMsg:
		d.past(m)
	case eventsMsg:
		for _, e := range m {
			d.event(e)
		}
	case feedEndMsg:
		if m.err != nil {
			d.scene.fail("cannot read the session's events: %v", m.err)
		}
		if d.work.busy {
			d.work.done = &doneMsg{err: m.err}
		}
	case notesMsg:
		for _, n := range m {
			d.scene.note(dim, n)
		}
	case startedMsg:
		d.echo(m.label)
	case steerMsg:
		d.steered(m)
	case refusedMsg:
		d.scene.fail("%v", m.err)
	case replaceMsg:
		d.replace(m)
	case doneMsg:
		d.work.done = &m
	case shellOutMsg:
		d.scene.addOutput(m.text)
	case shellDoneMsg:
		d.shellDone(m)
	case commandMsg:
		d.commandDone(m)
	case askMsg:
		d.syncQuestion()
	case signalMsg:
		if m.Signal == os.Interrupt {
			d.interrupt()
		} else {
			d.leave(Next{Kind: NextQuit}, ErrTerminated)
		}
	case sayMsg:
		d.scene.markdown(string(m))
	case guidedMsg:
		d.leave(Next{}, cmp.Or(m.err, m.job.ctx.Err()))
	case callerDoneMsg:
		d.leave(Next{Kind: NextQuit}, m.err)
	}
	if d.work.busy && d.work.done != nil {
		d.finish()
	}
}

// event follows the session.
func (d *driver) event(e event.Event) {
	d.scene.apply(e)
	d.shown = e.Seq
	switch b := e.Body.(type) {
	case event.Question:
		d.ask(b, "")
	case event.Answer:
		d.answered(b.QID)
	case event.ToolResult, event.SubagentStart, event.SubagentEnd, event.Idle:
		d.countWork()
	case event.Result:
		if b.Run == d.work.run {
			d.work.done = &doneMsg{result: b}
		}
	}
}

// steered handles that a queued message is ready. A session that waits for agents in
// the background reads it at once.
func (d *driver) steered(m steerMsg) {
	if m.err != nil {
		d.scene.fail("%v", m.err)
		d.restore(m.label)
	}
	switch {
	case d.held && !d.work.busy:
		d.begin("")
	case d.work.busy && d.scene.idle:
		d.scene.queue.Deliver()
	}
}

// finish ends the work on an input.
func (d *driver) finish() {
	w, done := d.work, *d.work.done
	w.abort()
	d.work = work{}
	d.calm.Reset(calm)
	d.scene.settle()
	d.scene.calls = nil
	closed := d.Session.Now().State == core.StateClosed
	stop := core.StopReason(done.result.Outcome)
	stopped := stop == core.StopCancelled || stop == core.StopAborted || errors.Is(done.err, context.Canceled)
	switch e := done.result.Error; {
	case d.scene.failed || stopped:
	case done.err != nil:
		d.scene.fail("%v", done.err)
	case e != nil:
		d.scene.fail("%s", e.Message)
	}
	if done.refused != "" {
		d.restore(done.refused)
	}
	if line := summary(done.result); line != "" && !stopped && done.err == nil && done.result.Error == nil {
		d.scene.note(dim, line)
	}
	if closed && !d.quitting {
		d.scene.note(dim, "The session is closed. Your next message reopens it.")
	}
	if d.scene.now().Sub(w.since) >= longTask {
		d.alert("agent finished")
	}
	goesOn := !closed && (stop == core.StopDone || stop == core.StopAwaitingInput)
	if goesOn && w.auto {
		d.scene.queue.forget()
	}
	if (goesOn || w.again && !closed) && len(d.scene.queue.labels()) > 0 {
		d.begin("") // a queued message came too late for the last round
	}
}

// longTask is the duration from which the end of a task is notified.
const longTask = 10 * time.Second

func (d *driver) shellDone(m shellDoneMsg) {
	d.endJob(m.job)
	d.scene.endOutput()
	if m.err = unlessStopped(m.err); m.err != nil {
		d.scene.fail("%v", m.err)
	}
	text := shellSteering(m)
	d.scene.queue.ready(d.scene.queue.add(""), core.TextInput(text))
	d.scene.note(dim, "The model sees this with your next message.")
}

// unlessStopped says of an error that the user stopped what failed, if so.
func unlessStopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped")
	}
	return err
}

func (d *driver) commandDone(m commandMsg) {
	d.endJob(m.job)
	d.scene.markdown(m.result.Text)
	if m.result.view != "" {
		d.view(m.result.view)
	}
	if m.err = unlessStopped(m.err); m.err != nil {
		d.scene.fail("/%s: %v", m.name, m.err)
	}
	if m.result.Draft != "" {
		d.restore(m.result.Draft)
	}
	if m.result.Copy != "" {
		d.copied(m.result.Copy)
	}
	if m.result.Theme != "" {
		d.theme(m.result.Theme)
	}
	switch n := m.result.Next; {
	case n == nil && m.result.Prompt != "" && m.err == nil && d.work.busy:
		d.steer(d.ctx, m.result.Prompt)
	case n == nil && m.result.Prompt != "" && m.err == nil:
		d.begin(m.result.Prompt)
	case n == nil:
	case n.Kind != NextQuit && d.work.busy:
		d.scene.fail("/%s: the agent is working: stop it with Ctrl-C first", m.name)
	default:
		d.change(*n)
	}
}

// Answers to what becomes of the queue.
const (
	withoutQueue core.Choice = "yes, without them"
	withQueue    core.Choice = "yes, with them"
)

// change leaves this session, and asks first if that ends something in the background
// or if there are queued messages, which another session could have.
func (d *driver) change(next Next) {
	q := core.Question{Kind: core.QuestionConfirm, Title: "Leave this session?", Detail: d.endsWith(), Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo}}
	if n := len(d.scene.queue.labels()); n > 0 && next.Kind != NextQuit {
		q.Title += " Not sent yet: " + display.Plural(n, "message") + "."
		q.Choices = []core.Choice{withoutQueue, withQueue, core.ChoiceNo}
	} else if q.Detail == "" {
		d.replace(replaceMsg{next, core.ChoiceYes})
		return
	}
	d.leaving = true
	d.wg.Go(func() {
		a, _ := d.Asker.Ask(d.ctx, q) // an error is no yes
		d.post(replaceMsg{next, a.Choice})
	})
}

// endsWith lists what ends with the session, "" if nothing does.
func (d *driver) endsWith() string {
	if d.Detach {
		return ""
	}
	var lines []string
	for _, w := range d.Session.Work() {
		switch {
		case !w.Running:
		case isAgent(w):
			lines = append(lines, "It ends the subagent "+display.OneLine(w.Title, 60))
		default:
			lines = append(lines, "It ends "+w.ID+": "+display.OneLine(w.Title, 60))
		}
	}
	return strings.Join(lines, "\n")
}

// replace leaves the session as the user answered.
func (d *driver) replace(m replaceMsg) {
	d.leaving = false
	switch m.choice {
	case core.ChoiceYes, withoutQueue:
		d.scene.queue.clear()
		d.leave(m.next, nil)
	case withQueue:
		d.leave(m.next, nil)
	}
}

// past shows the end of a resumed session's conversation.
func (d *driver) past(m pastMsg) {
	if len(m.events) == 0 {
		return
	}
	past := newScene(d.scene.painter, d.scene.width, d.scene.dir)
	past.brief = true
	if m.more {
		past.note(dim, "… earlier turns")
	}
	tools := 0
	count := func() {
		if tools > maxPastTools {
			past.add("tool", past.paint(dim, "… "+display.Plural(tools-maxPastTools, "more tool call")))
		}
		tools = 0
	}
	var plan event.Plan
	for _, e := range m.events {
		switch b := e.Body.(type) {
		case event.User:
			count()
			past.user(Entered(b.Content))
		case event.ToolResult:
			if p, ok := b.Plan(); ok {
				plan = p
				break
			}
			if tools++; tools <= maxPastTools {
				past.apply(e)
			}
		case event.Message:
			if b.Content.Text() != "" {
				count()
			}
			past.apply(e)
		case event.ToolUse, event.Steering, event.Error, event.Cancelled, event.Compacted, event.Rewound:
			past.apply(e)
		}
	}
	count()
	if plan.Done() < len(plan.Steps) { // only its latest state
		past.setPlan(plan)
		d.scene.plan = plan
	}
	past.note(dim, "— resumed session "+d.Session.ID())
	d.scene.add("past", past.take()...)
	d.scene.tokens = past.tokens
}

// maxPastTools limits consecutive tool calls that are shown of the past.
const maxPastTools = 5

// syncQuestion shows the first question of the queue. It reports whether that
// changed.
func (d *driver) syncQuestion() bool {
	front := d.Asker.front()
	if front == nil {
		changed := d.dialog != nil
		d.dialog = nil
		return changed
	}
	if d.dialog != nil && d.dialog.pending == front {
		return false
	}
	d.dialog = newDialog(front)
	if front.URL != "" && d.scene.width > 0 { // in the scrollback, where the terminal breaks it, it can be copied
		d.scene.separate()
		d.scene.add("link", d.scene.paint(underline, display.Visible(front.URL)))
	}
	d.alert("question: " + display.OneLine(front.Title, 80))
	return true
}

// reply answers the question that is shown.
func (d *driver) reply(a core.Answer) {
	if d.dialog != nil {
		if r := d.dialog.review; r != nil && r.Markdown && d.scene.width > 0 { // line by line it was printed
			d.scene.markdown(string(r.Changes[0].After)) // stays above the answer
		}
		d.Asker.answer(d.dialog.pending, a)
		d.dialog = nil
		d.syncQuestion()
	}
}
