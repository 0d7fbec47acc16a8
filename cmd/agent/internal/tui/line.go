package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
)

// keyHelp is the help on keys, as Markdown.
const keyHelp = `
| key | |
|---|---|
| Enter | send; while the agent works, queue for its next step |
| Alt+Enter, Ctrl+J, \ at the end | new line |
| Alt+Up | edit the last queued message |
| Up, Down, Ctrl+R | browse the history; search it |
| Tab | complete commands and @files |
| Ctrl+K | search the commands |
| Ctrl+G | edit the message in $VISUAL or $EDITOR |
| Ctrl+V | paste the image in the clipboard |
| Ctrl+_ | undo a change in the input box |
| Ctrl+Y | insert what was deleted last, with Ctrl+W, U, K or Alt+D |
| Shift+Tab | next permission mode |
| Esc Esc | go back to before an input: /rewind |
| Esc, Ctrl+C | stop the agent after the current step, and interrupt a running command; Ctrl+C again ends running tools, too |
| Ctrl+O | show the last truncated output, diff or reasoning in full |
| Ctrl+T | show the conversation in full: search, jump, fold, copy, export |
| Ctrl+D, Ctrl+C twice | quit |
| Ctrl+L, Ctrl+Z | redraw; suspend |
`

// lineScreen is the session on a terminal: a region at the bottom below the
// finished lines. It is the model of a Bubble Tea program whose own renderer
// draws nothing.
type lineScreen struct {
	*driver
	screen *screen
	tty    *os.File // the terminal's input
	editor *editor
	watch  *watcher
	title  string // the terminal's title that was set

	typed        *editor // a typed answer
	inputError   string  // why the typed answer is invalid
	selected     int     // index of the question's option
	reviewTop    int
	current      *pending // the question that these fields belong to
	inScrollback bool     // the question is in the scrollback, since the region has no room for it
	slips        slips

	list []string // completions
	at   int      // index of the shown completion, -1 if none
	word string   // the completed word
	// suggesting says that list appeared while typing.
	suggesting bool

	palette  *picker  // of the commands, or nil
	picker   *picker  // of the question
	pickerOf *pending // that question

	escArmed bool // the next Esc rewinds
	pager    *pager
	paged    *screen            // on which the pager is drawn
	resized  *tea.WindowSizeMsg // the terminal's new size, while the pager is open

	spin      int
	ticking   bool
	drawn     time.Time // time of the last frame
	frameDue  bool
	suspended bool
}

// Messages of lineScreen to itself.
type (
	tickMsg     struct{}
	drawMsg     struct{}
	completeMsg struct {
		word string
		list []string
	}
)

// silentFile is a terminal for Bubble Tea, which discards what it draws.
type silentFile struct{ *os.File }

func (silentFile) Write(p []byte) (int, error) { return len(p), nil }

// runLine runs the session on a terminal with cursor movement.
func runLine(ctx context.Context, o Options, in, out *os.File) (Next, error) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return Next{}, fmt.Errorf("cannot get the terminal's size: %w", err)
	}
	h := newHost(ctx, o)
	o.Asker.list(true)
	p := painter{colors: o.Env("NO_COLOR") == "" && o.Env("CI") == "", look: newLook(o.Env, o.Theme)}
	l := &lineScreen{
		driver: newDriver(h, newScene(p, width, o.Dir)),
		screen: &screen{out: out, width: width, height: height}, tty: in,
		editor: newEditor(p, o.History), at: -1,
	}
	l.scene.now = o.now
	if o.Vim {
		l.editor.vim = &vim{}
	}
	l.alert, l.restore, l.theme, l.copied = l.notify, l.takeBack, l.setTheme, l.copyText
	l.view = l.openView
	l.watch = watchTerminal(in, out, o.Env("PATH"))
	defer l.watch.close()
	program := tea.NewProgram(l, tea.WithInput(in), tea.WithOutput(silentFile{out}), tea.WithoutSignalHandler(), tea.WithFPS(1))
	h.post = func(msg any) { program.Send(msg) }
	defer l.restoreTerminal()
	h.start(ctx)
	defer h.close()
	_, err = program.Run()
	h.stop()
	switch {
	case l.quitting:
		return l.next, l.err
	case l.screen.err != nil:
		return Next{}, fmt.Errorf("cannot write to the terminal: %w", l.screen.err)
	case err != nil:
		return Next{}, fmt.Errorf("the terminal was closed: %w", errors.Join(ErrTerminated, err))
	}
	return Next{}, nil
}

// restoreTerminal undoes the changes of screen; Bubble Tea undid its own.
func (l *lineScreen) restoreTerminal() {
	for l.pager != nil {
		l.closePager()
	}
	l.screen.draw(l.scene.take(), nil, 0, 0)
	l.screen.erase()
	if l.title != "" {
		l.screen.write(popTitle)
	}
	l.screen.write(leaveRestore)
}

// Init implements tea.Model.
func (l *lineScreen) Init() (cmd tea.Cmd) {
	defer l.recovered(&cmd)
	l.watch.raw() // Bubble Tea has set the modes
	if l.Notify != NotifyOff && l.Notify != "" {
		l.screen.write(pushTitle)
	}
	l.screen.write("\r" + eraseLine + pasteOn) // keys of before were echoed, and come again
	if p := l.scene.painter; p.colors && p.look.asks(l.Env) {
		l.screen.write(ansi.RequestBackgroundColor) // the answer comes among the keys
	}
	if l.Welcome != "" {
		l.scene.markdown(l.Welcome)
	}
	if l.steps != nil {
		l.guide()
	} else if l.Prompt != "" {
		l.enter(l.Prompt)
	} else if l.Session.Now().State == core.StateParked {
		l.begin("") // asks the parked question
	}
	l.draw()
	return nil
}

// View implements tea.Model. Its result is not drawn.
func (l *lineScreen) View() tea.View { return tea.View{} }

// Update implements tea.Model. Keys are drawn immediately; everything else waits
// for the next frame.
func (l *lineScreen) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	if l.quitting {
		return l, nil
	}
	next = l
	defer l.recovered(&cmd)
	cmd, urgent := l.take(msg)
	if l.quitting || l.screen.err != nil {
		l.draw()
		return l, tea.Quit
	}
	return l, tea.Batch(cmd, l.show(urgent), l.tick())
}

// take changes the state as a message says. What is urgent is drawn immediately.
func (l *lineScreen) take(msg tea.Msg) (cmd tea.Cmd, urgent bool) {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		urgent = true
		cmd = l.key(m)
	case tea.PasteMsg:
		urgent = l.paste(m.Content)
	case tea.WindowSizeMsg:
		urgent = true
		l.sized(m)
	case tea.BackgroundColorMsg:
		urgent = true
		l.setBackground(m.IsDark())
	case tea.ResumeMsg:
		urgent = true
		l.suspended = false
		l.screen.write(pasteOn)
	case tickMsg:
		l.ticking = false
		l.spin++
		if l.working() > 0 {
			l.countWork()
		}
	case drawMsg:
		l.frameDue, urgent = false, true
	case calmMsg:
		urgent = true // nothing changes, but the next key finds the program in memory
	case completeMsg:
		l.completed(m)
	case suggestMsg:
		urgent = true
		l.suggested(m)
	case composedMsg:
		urgent = true
		l.composed(m)
	case editedMsg:
		urgent = true
		l.edited(m)
	case imageMsg:
		urgent = true
		l.imagePasted(m)
	case previewMsg:
		m.of.previews[m.at] = m.text
	case historyMsg:
		urgent = true
		l.openHistory(m)
	default:
		_, urgent = msg.(pastMsg)
		l.handle(msg)
		l.syncDialog()
	}
	return cmd, urgent
}

// sized takes the size of the terminal, which the pager has until it is closed.
func (l *lineScreen) sized(m tea.WindowSizeMsg) {
	if l.pager != nil {
		l.resized = &m
		return
	}
	l.resize(m.Width, m.Height)
}

// paste takes pasted text. It reports whether there is a place for it.
func (l *lineScreen) paste(text string) bool {
	if l.pager != nil {
		return l.pager.paste(text)
	}
	if l.steps != nil && l.dialog == nil {
		return false
	}
	if p := l.picking(); p != nil {
		p.search(p.query + display.OneLine(text, 200))
		return true
	}
	if text == "" { // some terminals paste an image so
		l.pasteImage()
		return false
	}
	if !l.dropped(text) {
		l.input().paste(text)
	}
	l.slips.typed = l.scene.now()
	return true
}

// recovered turns a panic, ours or of a function in Options, into an error, so
// that the terminal is restored.
func (l *lineScreen) recovered(cmd *tea.Cmd) {
	if v := recover(); v != nil {
		l.leave(Next{}, fmt.Errorf("internal error in the terminal UI: %v", v))
		*cmd = tea.Quit
	}
}

// show draws now, or at the next frame.
func (l *lineScreen) show(urgent bool) tea.Cmd {
	wait := frame - time.Since(l.drawn)
	if urgent || wait <= 0 {
		l.draw()
		return nil
	}
	if l.frameDue {
		return nil
	}
	l.frameDue = true
	return tea.Tick(wait, func(time.Time) tea.Msg { return drawMsg{} })
}

// tick updates the spinner and the clocks while something is running.
func (l *lineScreen) tick() tea.Cmd {
	wait, ok := l.pace()
	if l.ticking || !ok {
		return nil
	}
	l.ticking = true
	return tea.Tick(wait, func(time.Time) tea.Msg { return tickMsg{} })
}

// pace returns how often the screen changes without input, if it does.
func (l *lineScreen) pace() (time.Duration, bool) {
	switch {
	case l.work.busy, len(l.jobs) > 0, l.waitsForPause(), l.pager != nil && l.pager.live:
		return 100 * time.Millisecond, true
	}
	return time.Second, l.working() > 0
}

func (l *lineScreen) resize(width, height int) {
	l.screen.resize(width, height)
	l.scene.width = width
}

// draw draws a frame.
func (l *lineScreen) draw() {
	if l.suspended {
		return
	}
	l.drawn = time.Now()
	if l.pager != nil {
		l.drawPager()
		return
	}
	l.setTitle()
	rows, x, y := l.region()
	l.screen.draw(l.scene.take(), rows, x, y)
}

// syncDialog resets the dialog's state for a new question.
func (l *lineScreen) syncDialog() {
	var now *pending
	if l.dialog != nil {
		now = l.dialog.pending
	}
	if now != l.current {
		l.current, l.typed, l.inputError, l.selected, l.inScrollback = now, nil, "", 0, false
		l.reviewTop = 0
	}
	if l.dialog != nil && l.dialog.typing() && l.typed == nil {
		l.typed = newEditor(l.scene.painter, nil)
	}
}

// input returns the box that has the focus.
func (l *lineScreen) input() *editor {
	if l.dialog != nil && l.dialog.typing() && l.typed != nil {
		return l.typed
	}
	return l.editor
}

// takeBack puts an unused text back into the box.
func (l *lineScreen) takeBack(text string) {
	if l.editor.empty() {
		l.editor.paste(text)
	}
}

// notify notifies the user.
func (l *lineScreen) notify(what string) {
	switch l.Notify {
	case NotifyBell:
		l.screen.write("\a")
	case NotifyOSC777:
		l.screen.write("\x1b]777;notify;agent;" + strings.ReplaceAll(display.OneLine(what, 120), ";", ",") + "\a")
	case NotifyOSC9:
		l.screen.write("\x1b]9;" + display.OneLine(what, 120) + "\a")
	}
}

// setTitle shows the state in the terminal's title.
func (l *lineScreen) setTitle() {
	if l.Notify == NotifyOff || l.Notify == "" {
		return
	}
	title := display.OneLine(l.Title, 60)
	switch {
	case l.dialog != nil:
		title = "? " + title
	case l.work.busy:
		title = "… " + title
	}
	if title != l.title {
		l.title = title
		l.screen.write("\x1b]2;" + title + "\a")
	}
}

// answer answers the question; nil keeps it open.
func (l *lineScreen) answer(a *core.Answer) {
	if a != nil {
		l.reply(*a)
	}
	l.syncDialog()
}
