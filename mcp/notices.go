package mcp

import (
	"context"
	"encoding/json"
	"sync"
)

// NoticeKind says what a server tells of.
type NoticeKind string

// The kinds of notices.
const (
	ToolsChanged     NoticeKind = "tools"
	PromptsChanged   NoticeKind = "prompts"
	ResourcesChanged NoticeKind = "resources"
	ResourceUpdated  NoticeKind = "resource" // Text is its URI
	LogMessage       NoticeKind = "log"      // Text is the message, Level how bad it is
)

// Notice is something that a server tells unasked.
type Notice struct {
	Kind        NoticeKind
	Level, Text string
}

const (
	// maxNotices bounds the notices that wait; of what comes then only that the
	// lists have changed is kept.
	maxNotices = 256
	maxLogText = 2000
)

// notices takes a server's notifications off the read loop: take never blocks,
// and deliver hands on what was taken, each change once however often it was
// told.
type notices struct {
	deliverTo func(context.Context, Notice)

	mu       sync.Mutex
	waiting  []Notice
	queued   map[Notice]bool
	progress map[string]chan progress
	dropped  int
	wake     chan struct{}
}

// progress is how far a request has come.
type progress struct {
	done, total float64
	message     string
}

func newNotices(deliver func(context.Context, Notice)) *notices {
	return &notices{deliverTo: deliver, queued: map[Notice]bool{}, progress: map[string]chan progress{}, wake: make(chan struct{}, 1)}
}

// take sorts a notification.
func (n *notices) take(method string, params json.RawMessage) {
	var body struct {
		URI   string          `json:"uri"`
		Level string          `json:"level"`
		Data  json.RawMessage `json:"data"`
	}
	switch method {
	case "notifications/progress":
		n.report(params)
	case "notifications/tools/list_changed":
		n.add(Notice{Kind: ToolsChanged})
	case "notifications/prompts/list_changed":
		n.add(Notice{Kind: PromptsChanged})
	case "notifications/resources/list_changed":
		n.add(Notice{Kind: ResourcesChanged})
	case "notifications/resources/updated":
		_ = json.Unmarshal(params, &body) // then it is empty
		n.add(Notice{Kind: ResourceUpdated, Text: clip(body.URI, maxLogText)})
	case "notifications/message":
		_ = json.Unmarshal(params, &body)
		said := ""
		if json.Unmarshal(body.Data, &said) != nil {
			said = string(body.Data) // no text, but data
		}
		n.add(Notice{Kind: LogMessage, Level: cleanLine(clip(body.Level, 20)), Text: clip(cleanLine(clip(said, maxLogText)), maxLogText)})
	}
}

// add queues a notice, if there is room and it does not wait already.
func (n *notices) add(notice Notice) {
	if n.deliverTo == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	change := notice.Text == "" && notice.Level == ""
	switch {
	case n.queued[notice]:
		return
	case len(n.waiting) >= maxNotices && !change:
		n.dropped++
		return
	}
	n.queued[notice] = true
	n.waiting = append(n.waiting, notice)
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// deliver hands the notices on until the connection ends.
func (n *notices) deliver(life context.Context) {
	for {
		select {
		case <-n.wake:
		case <-life.Done():
			return
		}
		for life.Err() == nil {
			n.mu.Lock()
			if len(n.waiting) == 0 {
				n.mu.Unlock()
				break
			}
			next := n.waiting[0]
			n.waiting = n.waiting[1:]
			delete(n.queued, next)
			n.mu.Unlock()
			n.deliverTo(life, next)
		}
	}
}

// follow has the progress of a request sent to a channel, the latest one when
// nobody receives. The caller calls stop.
func (n *notices) follow(token string) (<-chan progress, func()) {
	ch := make(chan progress, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.progress[token] = ch
	return ch, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.progress, token)
	}
}

func (n *notices) report(params json.RawMessage) {
	var body struct {
		Token   string  `json:"progressToken"`
		Done    float64 `json:"progress"`
		Total   float64 `json:"total"`
		Message string  `json:"message"`
	}
	_ = json.Unmarshal(params, &body) // a token that is no text is none of ours
	n.mu.Lock()
	defer n.mu.Unlock()
	ch, ok := n.progress[body.Token]
	if !ok {
		return
	}
	p := progress{body.Done, body.Total, clip(cleanLine(clip(body.Message, maxLogText)), 500)}
	for {
		select {
		case ch <- p:
			return
		default:
		}
		select { // the older one is of no use any more
		case <-ch:
		default:
		}
	}
}
