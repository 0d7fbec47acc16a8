package mcp

import (
	"context"
	"encoding/json"
	"sync"
)

// NoticeKind is the kind of a [Notice].
type NoticeKind string

// The kinds of notices.
const (
	ToolsChanged     NoticeKind = "tools"
	PromptsChanged   NoticeKind = "prompts"
	ResourcesChanged NoticeKind = "resources"
	ResourceUpdated  NoticeKind = "resource" // Text is its URI
	LogMessage       NoticeKind = "log"      // Text is the message, Level its severity
)

// Notice is a notification of a server.
type Notice struct {
	Kind        NoticeKind
	Level, Text string
}

const (
	// maxNotices limits the queue; beyond it only list changes are queued.
	maxNotices = 256
	maxLogText = 2000
)

// notices queues a server's notifications: handle never blocks, and deliver
// delivers each queued change once, however often it was announced.
type notices struct {
	deliverTo func(context.Context, Notice)

	mu       sync.Mutex
	waiting  []Notice
	queued   map[Notice]bool
	progress map[string]chan progress
	dropped  int
	wake     chan struct{}
}

// progress is the progress of a request.
type progress struct {
	done, total float64
	message     string
}

func newNotices(deliver func(context.Context, Notice)) *notices {
	return &notices{deliverTo: deliver, queued: map[Notice]bool{}, progress: map[string]chan progress{}, wake: make(chan struct{}, 1)}
}

// handle dispatches a notification.
func (n *notices) handle(method string, params json.RawMessage) {
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
		_ = json.Unmarshal(params, &body) // invalid params count as empty
		n.add(Notice{Kind: ResourceUpdated, Text: clip(body.URI, maxLogText)})
	case "notifications/message":
		_ = json.Unmarshal(params, &body)
		text := ""
		if json.Unmarshal(body.Data, &text) != nil {
			text = string(body.Data) // any JSON is allowed
		}
		n.add(Notice{Kind: LogMessage, Level: cleanLine(clip(body.Level, 20)), Text: clip(cleanLine(clip(text, maxLogText)), maxLogText)})
	}
}

// add queues a notice, unless it is queued already or the queue is full.
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

// deliver delivers the notices until the connection ends.
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

// followProgress returns a channel for the progress of a request, which holds
// only the latest, and a function that stops it.
func (n *notices) followProgress(token string) (<-chan progress, func()) {
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
	_ = json.Unmarshal(params, &body) // our tokens are strings
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
		select { // replace the older one
		case <-ch:
		default:
		}
	}
}
