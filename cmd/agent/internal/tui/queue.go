package tui

import (
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

// Queue holds the messages that the user enters while the agent works. They stay
// here, where the user can change them, until the session can take them: its host
// calls Deliver after every tool call. It is safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	items  []queued
	last   int              // id of the last item
	keep   func(core.Input) // gives the session a message
	paused bool             // the work is being stopped
}

// queued is a message in the queue.
type queued struct {
	id    int
	label string     // as the user entered it; empty if it was shown already
	input core.Input // for the model
	ready bool       // input is complete
	sent  bool       // the session has it, but has not shown it to the model yet
}

// NewQueue returns the queue of one session.
func NewQueue() *Queue { return &Queue{} }

// Deliver gives the messages to the session, which adds them before its next call
// of the model. Before the queue's [Run], it does nothing.
func (q *Queue) Deliver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.items {
		if q.paused || q.keep == nil || !q.items[i].ready {
			return // later messages wait, too
		}
		q.send(i)
	}
}

// send gives an item to the session.
func (q *Queue) send(i int) {
	if item := &q.items[i]; !item.sent {
		item.sent = true
		q.keep(item.input)
	}
}

// pause keeps the messages here until the next input.
func (q *Queue) pause() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = true
}

// add appends a message that is not ready yet.
func (q *Queue) add(label string) (id int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	q.items = append(q.items, queued{id: q.last, label: label})
	return q.last
}

// ready makes a message ready.
func (q *Queue) ready(id int, input core.Input) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.items {
		if q.items[i].id == id {
			q.items[i].input, q.items[i].ready = input, true
		}
	}
}

// remove removes a message that the session does not have.
func (q *Queue) remove(id int) (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.items, func(m queued) bool { return m.id == id && !m.sent })
	if i < 0 {
		return queued{}, false
	}
	item := q.items[i]
	q.items = slices.Delete(q.items, i, i+1)
	return item, true
}

// taken removes the first message that the session has with this text, now that it
// is part of the conversation.
func (q *Queue) taken(text string) (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.items, func(m queued) bool { return m.sent && m.input.Content.Text() == text })
	if i < 0 {
		return queued{}, false
	}
	item := q.items[i]
	q.items = slices.Delete(q.items, i, i+1)
	return item, true
}

// list returns the messages.
func (q *Queue) list() []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.items)
}

// shown returns the messages that the user sees.
func (q *Queue) shown() []queued {
	return slices.DeleteFunc(q.list(), func(m queued) bool { return m.label == "" })
}

// labels returns the messages as the user entered them.
func (q *Queue) labels() []string {
	var out []string
	for _, m := range q.shown() {
		out = append(out, m.label)
	}
	return out
}

// start empties the queue for a new input and returns what the session submits:
// the first message, or nothing if the session has messages already. It gets all
// others, in their order.
func (q *Queue) start() (first queued, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = false
	if !slices.ContainsFunc(q.items, func(m queued) bool { return m.sent && m.label != "" }) {
		if i := slices.IndexFunc(q.items, func(m queued) bool { return m.label != "" && m.ready }); i >= 0 {
			first, ok = q.items[i], true
			q.items = slices.Delete(q.items, i, i+1)
		}
	}
	for i := range q.items {
		if q.items[i].ready {
			q.send(i)
		}
	}
	return first, ok
}

// settled reports whether all messages are ready.
func (q *Queue) settled() bool {
	return !slices.ContainsFunc(q.list(), func(m queued) bool { return !m.ready })
}

// forget removes the messages that the session has.
func (q *Queue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = slices.DeleteFunc(q.items, func(m queued) bool { return m.sent })
}

func (q *Queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = nil
}

// bind tells the queue where messages go: a session that has none of them, or
// nowhere.
func (q *Queue) bind(keep func(core.Input)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keep = keep
	for i := range q.items {
		q.items[i].sent = false
	}
}
