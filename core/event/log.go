package event

import (
	"context"
	"iter"
	"strings"
	"sync"
)

// Replayer yields logged events with a number greater than after, oldest first.
type Replayer func(ctx context.Context, after Seq) iter.Seq2[Event, error]

// Log is the stream of a session's events as readers see it. It keeps a window
// of the newest events; a reader that falls behind the window gets the logged
// ones from the replayer. So no reader blocks the writer, none misses a logged
// event, and a slow one misses at most deltas. Their text is repeated by a later
// event, with which a reader that shows deltas can compare what it showed.
//
// The zero value is not usable; see [NewLog]. A Log is safe for concurrent use
// by one writer and any number of readers.
type Log struct {
	replay Replayer
	window int

	mu      sync.Mutex
	events  []Event       // the window, oldest first
	evicted Seq           // the newest logged event that left the window
	wake    chan struct{} // closed at the next change; nil without waiting readers
	kept    int           // events at the front that stay, if there is no replayer
	bytes   int           // of the texts in the window after them
	closed  bool
}

// NewLog returns a log that keeps about window events in memory. Without a
// replayer it keeps all but the deltas.
func NewLog(window int, replay Replayer) *Log {
	return &Log{window: max(window, 1), replay: replay}
}

// Forget tells the log that events up to seq exist, but not in its window:
// those of a resumed session.
func (l *Log) Forget(seq Seq) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evicted = max(l.evicted, seq)
}

// Append adds an event for the readers.
func (l *Log) Append(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	l.bytes += textBytes(e)
	l.trim()
	l.wakeAll()
}

// maxBytes limits the texts in a window, since a single one can be as large as a
// tool's output.
const maxBytes = 4 << 20

// trim drops the front of the window in halves, so that appending stays cheap.
// Without a replayer only deltas are dropped.
func (l *Log) trim() {
	cut := 0
	if len(l.events) >= l.kept+2*l.window {
		cut = len(l.events) - l.window
	}
	if left := l.bytes; left > maxBytes {
		n := l.kept
		for ; left > maxBytes/2 && n < len(l.events)-1; n++ {
			left -= textBytes(l.events[n])
		}
		cut = max(cut, n)
	}
	if cut == 0 {
		return
	}
	n := l.kept
	for _, e := range l.events[l.kept:cut] {
		l.bytes -= textBytes(e)
		switch {
		case e.IsDelta():
		case l.replay == nil:
			l.events[n] = e
			n++
		default:
			l.evicted = e.Seq
		}
	}
	l.kept = n
	n += copy(l.events[n:], l.events[cut:])
	clear(l.events[n:])
	l.events = l.events[:n]
}

func textBytes(e Event) int {
	switch b := e.Body.(type) {
	case MessageDelta:
		return len(b.Text)
	case ReasoningDelta:
		return len(b.Text)
	case ToolOutputDelta:
		return len(b.Text)
	case ToolResult:
		if b.Output != nil {
			return len(b.Output.Text) + inlineText
		}
		return inlineText
	}
	return 0
}

// inlineText is about the size of the text of a tool's result.
const inlineText = 8 << 10

// Close ends the sequences of all readers once they have read all events.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wakeAll()
}

func (l *Log) wakeAll() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// Read yields the events after the given one, waits for more, and ends when
// the log is closed or ctx is done (then with its error). Adjacent deltas that
// piled up are joined.
func (l *Log) Read(ctx context.Context, after Seq) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after := after // the sequence can be ranged over again
		for {
			if err := ctx.Err(); err != nil {
				yield(Event{}, err)
				return
			}
			batch, replayTo, wait := l.next(after)
			switch {
			case replayTo > 0:
				for e, err := range l.replay(ctx, after) {
					if err != nil {
						yield(Event{}, err)
						return
					}
					if e.Seq > replayTo {
						break
					}
					after = e.Seq
					if !yield(e, nil) {
						return
					}
				}
				after = max(after, replayTo)
			case len(batch) > 0:
				after = batch[len(batch)-1].Seq
				for _, e := range coalesce(batch) {
					if !yield(e, nil) {
						return
					}
				}
			case wait == nil:
				return
			default:
				select {
				case <-wait:
				case <-ctx.Done():
				}
			}
		}
	}
}

// next returns one of: the window's events after the given one, the event up to
// which to replay first, or a channel to wait on. It returns none of them when
// the log is closed and read to its end.
func (l *Log) next(after Seq) (batch []Event, replayTo Seq, wait <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replay != nil && after < l.evicted {
		return nil, l.evicted, nil
	}
	i := len(l.events)
	for i > 0 && l.events[i-1].Seq > after {
		i--
	}
	if i < len(l.events) {
		return append(batch, l.events[i:]...), 0, nil
	}
	if l.closed {
		return nil, 0, nil
	}
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return nil, 0, l.wake
}

// coalesce joins adjacent deltas of one kind and call, in place. The joined
// event has the number of the last.
func coalesce(batch []Event) []Event {
	out := batch[:0]
	for i := 0; i < len(batch); {
		j := i + 1
		for j < len(batch) && continues(batch[i], batch[j]) {
			j++
		}
		out = append(out, join(batch[i:j]))
		i = j
	}
	return out
}

// continues reports whether b is a delta of the same text as a, or replaces its
// progress.
func continues(a, b Event) bool {
	if a.Call != b.Call || a.Session != b.Session || !a.IsDelta() {
		return false
	}
	return b.IsDelta() && a.Body.Type() == b.Body.Type()
}

// join joins deltas. Of progress it keeps the last.
func join(run []Event) Event {
	e := run[len(run)-1]
	if len(run) == 1 {
		return e
	}
	var text strings.Builder
	for _, d := range run {
		switch b := d.Body.(type) {
		case MessageDelta:
			text.WriteString(b.Text)
		case ReasoningDelta:
			text.WriteString(b.Text)
		case ToolOutputDelta:
			text.WriteString(b.Text)
		}
	}
	switch e.Body.(type) {
	case MessageDelta:
		e.Body = MessageDelta{text.String()}
	case ReasoningDelta:
		e.Body = ReasoningDelta{text.String()}
	case ToolOutputDelta:
		e.Body = ToolOutputDelta{text.String()}
	}
	return e
}
