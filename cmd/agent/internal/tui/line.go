package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
)

// keyHelp tells of the keys, as Markdown.
const keyHelp = `
| key | |
|---|---|
| Enter | sends; while the agent works, tells it between two steps |
| Alt+Enter, Ctrl+J, \ at the end | a new line |
| Up, Down, Ctrl+R | what was entered before; search it |
| Tab | completes commands and @files |
| Esc, Ctrl+C | stops the agent after what is running; Ctrl+C again aborts |
| Ctrl+O | shows in full what was shown in part last: an output, a change, a reasoning |
| Ctrl+D, Ctrl+C twice | leaves |
| Ctrl+L, Ctrl+Z | draws anew; suspends |
`

// lineScreen is the session on a terminal: a region at the bottom, and above it
// what is finished. It is the model of a Bubble Tea program whose own renderer
// writes to nowhere.
type lineScreen struct {
	*driver
	screen *screen
	editor *editor
	watch  *watcher
	title  string // of the terminal, as it was set

	typed    *editor // what is typed as an answer
	wrong    string  // why the typed answer does not fit
	selected int     // option of the question
	owner    *asked  // the question that these fields belong to
	stated   bool    // the question stands in the scrollback: the region has no room for it
	lastKey  time.Time

	list []string // completions
	at   int      // the completion that is shown, -1 for none
	word string   // what is completed

	spin      int
	ticking   bool
	drawn     time.Time // of the last frame
	late      bool      // a frame is due
	suspended bool
}

// Messages of the program itself.
type (
	tickMsg     struct{}
	drawMsg     struct{}
	completeMsg struct {
		word string
		list []string
	}
)

// mute is a terminal that Bubble Tea may ask for its size and modes, and draw
// on without anything being drawn.
type mute struct{ *os.File }

func (mute) Write(p []byte) (int, error) { return len(p), nil }

// runLine runs the session on a terminal that can be drawn on.
func runLine(ctx context.Context, o Options, in, out *os.File) (Next, error) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return Next{}, fmt.Errorf("the terminal does not tell its size: %w", err)
	}
	h := newHost(ctx, o)
	p := painter{colors: o.Env("NO_COLOR") == "" && o.Env("CI") == ""}
	l := &lineScreen{
		driver: newDriver(h, newScene(p, width, o.Dir)),
		screen: &screen{out: out, width: width, height: height},
		editor: newEditor(p, o.History), at: -1,
	}
	l.call, l.restore = l.notify, l.takeBack
	l.watch = watchTerminal(in, out, o.Env("PATH"))
	defer l.watch.close()
	program := tea.NewProgram(l, tea.WithInput(in), tea.WithOutput(mute{out}), tea.WithoutSignalHandler(), tea.WithFPS(1))
	h.post = func(msg any) { program.Send(msg) }
	defer l.restoreTerminal()
	h.start(ctx)
	defer h.close()
	_, err = program.Run()
	h.stop()
	switch {
	case l.left:
		return l.next, l.err
	case l.screen.err != nil:
		return Next{}, fmt.Errorf("the terminal cannot be written to: %w", l.screen.err)
	case err != nil:
		return Next{}, fmt.Errorf("the terminal is gone: %w", errors.Join(ErrTerminated, err))
	}
	return Next{}, nil
}

// restoreTerminal undoes what screen did; Bubble Tea undid the rest.
func (l *lineScreen) restoreTerminal() {
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
	l.watch.raw() // Bubble Tea has set the modes by now
	if l.Notify != NotifyOff && l.Notify != "" {
		l.screen.write(pushTitle)
	}
	l.screen.write(pasteOn)
	if l.Welcome != "" {
		l.scene.markdown(l.Welcome)
	}
	if l.Prompt != "" {
		l.enter(l.Prompt)
	}
	l.draw()
	return nil
}

// View implements tea.Model. What it returns is drawn nowhere.
func (l *lineScreen) View() tea.View { return tea.View{} }

// Update implements tea.Model. A key is answered at once; everything else
// waits for its frame.
func (l *lineScreen) Update(msg tea.Msg) (next tea.Model, cmd tea.Cmd) {
	if l.left {
		return l, nil
	}
	next = l
	defer l.recovered(&cmd)
	urgent := false
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		urgent = true
		cmd = l.key(m)
		l.lastKey = time.Now()
	case tea.PasteMsg:
		urgent = true
		l.input().paste(m.Content)
		l.lastKey = time.Now()
	case tea.WindowSizeMsg:
		urgent = true
		l.resize(m.Width, m.Height)
	case tea.ResumeMsg:
		urgent = true
		l.suspended = false
		l.screen.write(pasteOn)
	case tickMsg:
		l.ticking = false
		l.spin++
	case drawMsg:
		l.late, urgent = false, true
	case completeMsg:
		l.completed(m)
	default:
		_, urgent = msg.(pastMsg)
		l.handle(msg)
		l.syncDialog()
	}
	if l.left || l.screen.err != nil {
		l.draw()
		return l, tea.Quit
	}
	return l, tea.Batch(cmd, l.show(urgent), l.tick())
}

// recovered makes an error of a panic, ours or that of a function in Options:
// the person gets a terminal back, not a stack on a broken one.
func (l *lineScreen) recovered(cmd *tea.Cmd) {
	if v := recover(); v != nil {
		l.leave(Next{}, fmt.Errorf("the line session broke down: %v", v))
		*cmd = tea.Quit
	}
}

// show draws now, or when the next frame is due.
func (l *lineScreen) show(urgent bool) tea.Cmd {
	wait := frame - time.Since(l.drawn)
	if urgent || wait <= 0 {
		l.draw()
		return nil
	}
	if l.late {
		return nil
	}
	l.late = true
	return tea.Tick(wait, func(time.Time) tea.Msg { return drawMsg{} })
}

// tick keeps the spinner and the clocks going while something runs.
func (l *lineScreen) tick() tea.Cmd {
	if l.ticking || !l.work.busy && len(l.jobs) == 0 && !l.held() {
		return nil
	}
	l.ticking = true
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
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
	l.setTitle()
	rows, x, y := l.region()
	l.screen.draw(l.scene.take(), rows, x, y)
}

// pause is how long the person must not have typed before a key answers a
// question: one that appears in the middle of a word is not answered by it.
const pause = 700 * time.Millisecond

// held reports whether a question waits for the person to stop typing.
func (l *lineScreen) held() bool {
	return l.dialog != nil && !l.stillTyping().IsZero()
}

func (l *lineScreen) stillTyping() time.Time {
	if l.owner == nil || l.editor.empty() || time.Since(l.lastKey) >= pause {
		return time.Time{}
	}
	return l.lastKey
}

// syncDialog makes what belongs to the question on display new for a new one.
func (l *lineScreen) syncDialog() {
	var now *asked
	if l.dialog != nil {
		now = l.dialog.asked
	}
	if now != l.owner {
		l.owner, l.typed, l.wrong, l.selected, l.stated = now, nil, "", 0, false
	}
	if l.dialog != nil && l.dialog.typing() && l.typed == nil {
		l.typed = newEditor(l.scene.painter, nil)
	}
}

// input is the box that takes what is typed.
func (l *lineScreen) input() *editor {
	if l.dialog != nil && l.dialog.typing() && l.typed != nil && !l.held() {
		return l.typed
	}
	return l.editor
}

// takeBack puts a text that nobody took into the box again.
func (l *lineScreen) takeBack(text string) {
	if l.editor.empty() {
		l.editor.paste(text)
	}
}

// notify calls the person.
func (l *lineScreen) notify(what string) {
	switch l.Notify {
	case NotifyBell:
		l.screen.write("\a")
	case NotifyOSC9:
		l.screen.write("\x1b]9;" + display.OneLine(what, 120) + "\a")
	}
}

// setTitle makes the terminal's title say what goes on.
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

// answer answers the question on display; nil stays with it.
func (l *lineScreen) answer(a *core.Answer) {
	if a != nil {
		l.reply(*a)
	}
	l.syncDialog()
}
