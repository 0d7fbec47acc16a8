package tui

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	sessions "github.com/seed-009c0928/agent/sdk/host"
)

// Session is the part of a [sessions.Session] that the terminal uses.
type Session interface {
	ID() string
	Past() event.Seq
	Now() sessions.Now
	Do(ctx context.Context, c sessions.Command) (run string, err error)
	Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
	Work() []sessions.Work
	WorkOutput(work string) (string, error)
	WorkEvents(ctx context.Context, work string, after event.Seq) iter.Seq2[event.Event, error]
}

// Status is the content of the status line. Empty fields are omitted.
type Status struct {
	Model  string
	Mode   string // permission mode
	Effort string // of reasoning
	Branch string // of the workspace's repository
	Dirty  bool   // it has changes that are not committed
	Line   string // the user's own status line, instead of all but the mode
	Used   int    // percent of the context window
	Tokens int    // used by the session
	Cost   float64
	Priced bool // Cost is known, in USD
}

// Command is a slash command, entered as "/name args".
type Command struct {
	Name    string // without the slash
	Args    string // usage of the arguments, for help; may be empty
	Summary string
	// Run runs the command, in its own goroutine. It must return when ctx is done.
	Run func(ctx context.Context, args string) (Result, error)
	// Complete lists completions of an argument; nil if there are none. It is
	// called in its own goroutine.
	Complete func(ctx context.Context, prefix string) []string
}

// Result is the result of a command.
type Result struct {
	Text string // Markdown, shown to the user
	Next *Next  // leaves this session; nil stays
	// Prompt is submitted as if the user had entered it.
	Prompt string
	Draft  string // put into the input box, if it is empty; line by line, an empty line sends it
	view   view
	Copy   string // put into the terminal's clipboard
	Theme  string // the session's theme from now on; empty means no change
}

// NextKind tells what the caller of [Run] does next.
type NextKind string

// The kinds of Next.
const (
	NextQuit   NextKind = "quit"
	NextNew    NextKind = "new"    // open a new session
	NextResume NextKind = "resume" // open the session that Next names
)

// Next tells what follows a [Run]. The zero value quits.
type Next struct {
	Kind NextKind
	// Session is the ID to resume. It is the same session if an abort or an
	// error closed it and the user continues.
	Session string
	// Prompt is already entered text: the Options.Prompt of the next Run.
	Prompt string
}

// Notify selects the notification when a long task ends or a question waits.
// NotifyOff, like the empty string, also leaves the terminal's title unchanged.
type Notify string

// The notifications.
const (
	NotifyOff  Notify = "off"
	NotifyBell Notify = "bell"
	NotifyOSC9 Notify = "osc9"
	// NotifyOSC777 is for terminals such as foot, urxvt and Ghostty.
	NotifyOSC777 Notify = "osc777"
)

// Options are the options of [Run]. Session and Asker are required; a nil
// function disables its feature.
type Options struct {
	// In and Out are the terminal. If one of them is not a terminal, or the
	// terminal cannot move its cursor, the session works line by line.
	In  io.Reader
	Out io.Writer
	// LineByLine works line by line on every terminal, as screen readers need it.
	LineByLine bool

	Session Session
	Asker   *Asker // also of questions that are not the session's
	// Queue keeps messages from one Run to the next; nil is a new one.
	Queue *Queue

	// Detach leaves what is being processed running when the user leaves.
	Detach bool

	Title   string // of the terminal
	Dir     string // the workspace, to shorten paths in it
	Prompt  string // submitted first; may be empty
	Replay  int    // number of earlier turns to show of a resumed session
	Welcome string // Markdown, shown first; may be empty

	Status func() Status // must be fast: it is called for each frame
	// Refresh receives when Status has something new; nil never does.
	Refresh <-chan struct{}
	// NextMode switches to the next permission mode. It must be fast.
	NextMode func() error
	// Commands lists the current commands; of equal names, the first counts. It
	// is called with each key of a command's name, from several goroutines.
	Commands func() []Command
	// Expand converts the entered text to an input, with notes on what it added.
	Expand func(ctx context.Context, text string) (core.Input, []string, error)
	// Shell runs a "!command". Its output is shown as it is written.
	Shell func(ctx context.Context, command string, out io.Writer) error
	// Dropped converts a pasted text to mentions of the files that it stands for. It
	// must be fast.
	Dropped func(text string) (mentions string, ok bool)
	// PasteImage returns a mention of the image in the clipboard.
	PasteImage func(ctx context.Context) (mention string, err error)
	// Complete lists completions of "@prefix", without the @.
	Complete func(prefix string) []string

	History     []string // oldest first
	SaveHistory func(entry string)

	Keys   Keys // of the user, besides the usual ones
	Vim    bool // the input box has the keys of vim
	Notify Notify
	Theme  string                   // one of [Themes]; empty means auto
	Env    func(name string) string // nil means os.Getenv

	now   func() time.Time // nil means time.Now
	steps Steps            // of a Guide; nil in a session
}

// ErrTerminated is the error of [Run] after SIGTERM or SIGHUP.
var ErrTerminated = errors.New("terminated")

// Run runs the session until the user leaves it, ctx is done, or the terminal
// is closed, and tells what comes next. It cancels what is being
// processed, unless it is to detach, and restores the terminal. It does not close the session.
func Run(ctx context.Context, o Options) (Next, error) {
	if o.Session == nil || o.Asker == nil {
		return Next{}, errors.New("tui.Run: Options.Session and Options.Asker are required")
	}
	if o.Theme == "" {
		o.Theme = "auto"
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.now == nil {
		o.now = time.Now
	}
	o.Asker.bind(true)
	defer o.Asker.bind(false)
	if in, out, ok := terminal(o); ok {
		return runLine(ctx, o, in, out)
	}
	return runPlain(ctx, o)
}

// terminal returns the files of a terminal with cursor movement.
func terminal(o Options) (in, out *os.File, ok bool) {
	in, inFile := o.In.(*os.File)
	out, outFile := o.Out.(*os.File)
	if o.LineByLine || !inFile || !outFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, nil, false
	}
	return in, out, capable(o.Env("TERM"))
}
