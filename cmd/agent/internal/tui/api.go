package tui

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"

	"golang.org/x/term"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// Session is what the line session needs of a [core.Session].
type Session interface {
	ID() string
	State() core.State
	Opened() event.Seq
	Events(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error]
	Submit(ctx context.Context, in core.Input) (core.Outcome, error)
	Steer(in core.Input)
	Cancel(reason string)
}

// Status is what the status line shows. Empty fields are left out.
type Status struct {
	Model  string
	Mode   string // permission mode
	Tokens int    // used by the session
	Cost   float64
	Priced bool // Cost is known, in USD
}

// Command is something that the person can enter as "/name args".
type Command struct {
	Name    string // without the slash
	Args    string // how its arguments look, for help; may be empty
	Summary string
	// Run does it, in a goroutine of its own. It must heed ctx.
	Run func(ctx context.Context, args string) (Result, error)
}

// Result is what came of a command.
type Result struct {
	Text string // Markdown, shown to the person
	Next *Next  // leaves this session; nil stays
	// Prompt goes to the session as if the person had entered it.
	Prompt string
}

// NextKind says what the caller of [Run] does next.
type NextKind string

// The kinds of Next.
const (
	NextQuit   NextKind = "quit"
	NextNew    NextKind = "new"    // open a new session
	NextResume NextKind = "resume" // open the session that Next names
)

// Next says how a line session goes on. The zero value quits.
type Next struct {
	Kind NextKind
	// Session is the id to resume. It is that of the session itself when an
	// abort or an error has closed it and the person wants to go on.
	Session string
	// Prompt is what the person has entered already: the Options.Prompt of the
	// next Run.
	Prompt string
}

// Notify says how the person is called when a long task ends or a question
// waits. NotifyOff, which is also what the empty string means, leaves the
// terminal's title alone, too.
type Notify string

// The notifications.
const (
	NotifyOff  Notify = "off"
	NotifyBell Notify = "bell"
	NotifyOSC9 Notify = "osc9"
)

// Options are all that a line session works with. Session and Asker are
// required; functions that are nil leave their feature out.
type Options struct {
	// In and Out are the terminal. When one of them is no terminal, or the
	// terminal cannot move its cursor, the session goes line by line.
	In  io.Reader
	Out io.Writer

	Session Session
	Asker   *Asker // the same as the session's

	Title   string // of the terminal
	Dir     string // the workspace: paths in it are shown short
	Prompt  string // entered at once; empty waits for the person
	Replay  int    // turns of a resumed session's past to show; 0 shows none
	Welcome string // Markdown, shown first; may be empty

	Status func() Status // must be quick: it is called for each frame
	// Commands are those that there are now; the first of one name counts. It is
	// asked with each key of a command's name, from several goroutines.
	Commands func() []Command
	// Expand makes an input of what the person entered, and says what it put in.
	Expand func(ctx context.Context, text string) (core.Input, []string, error)
	// Shell runs a "!command". What it writes is shown as it comes.
	Shell func(ctx context.Context, command string, out io.Writer) error
	// Complete lists what "@prefix" may mean, without the @.
	Complete func(prefix string) []string

	History     []string // oldest first
	SaveHistory func(entry string)

	Notify Notify
	Env    func(name string) string // nil means os.Getenv
}

// ErrTerminated is the error of [Run] after SIGTERM or SIGHUP.
var ErrTerminated = errors.New("terminated")

// Run runs the session until the person leaves it, ctx is done, or the
// terminal is gone, and says what comes next. It ends what it started, an input
// in process included, and leaves the terminal as it was; the session stays
// open for the caller to close.
func Run(ctx context.Context, o Options) (Next, error) {
	if o.Session == nil || o.Asker == nil {
		return Next{}, errors.New("tui.Run: Options.Session and Options.Asker are required")
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	o.Asker.bind(true)
	defer o.Asker.bind(false)
	if in, out, ok := terminal(o); ok {
		return runLine(ctx, o, in, out)
	}
	return runPlain(ctx, o)
}

// terminal returns the files of a terminal that can be drawn on.
func terminal(o Options) (in, out *os.File, ok bool) {
	in, inFile := o.In.(*os.File)
	out, outFile := o.Out.(*os.File)
	if !inFile || !outFile || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, nil, false
	}
	return in, out, capable(o.Env("TERM"))
}
