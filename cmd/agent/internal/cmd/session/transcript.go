package session

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// transcript writes a session's events. Its methods are called sequentially,
// begin first and end last.
type transcript interface {
	begin(about store.Summary)
	show(e event.Event)
	// end is called even if the log could not be read to its end.
	end()
}

// transcribe writes a session. If its log is damaged, what can be read is
// written before the error is returned.
func transcribe(ctx context.Context, home, id string, t transcript) error {
	dir := agent.SessionsDir(home)
	about, err := store.Stat(dir, id)
	if err != nil {
		return setup.SessionAdvice(err, id)
	}
	t.begin(about)
	for e, readErr := range store.Read(ctx, dir, id, 0) {
		if err = readErr; err != nil {
			break
		}
		t.show(e)
	}
	t.end()
	return setup.SessionAdvice(err, id)
}

// jsonTranscript writes the array of events.
type jsonTranscript struct {
	out   io.Writer
	count int
}

func (t *jsonTranscript) begin(store.Summary) { _, _ = io.WriteString(t.out, "[") }

func (t *jsonTranscript) show(e event.Event) {
	data, err := e.MarshalJSON()
	if err != nil { // it was just read from JSON
		return
	}
	if t.count++; t.count > 1 {
		_, _ = io.WriteString(t.out, ",")
	}
	_, _ = fmt.Fprintf(t.out, "\n%s", data)
}

func (t *jsonTranscript) end() { _, _ = io.WriteString(t.out, "\n]\n") }

// partsText returns the text of a message, with a placeholder for each image.
func partsText(content model.Parts) string {
	var b strings.Builder
	for _, p := range content {
		switch p := p.(type) {
		case model.Text:
			b.WriteString(p.Text)
		case model.Image:
			fmt.Fprintf(&b, "\n[image %s, %s]\n", p.MediaType, cmdutil.Size(int64(max(p.Bytes, len(p.Data)))))
		}
	}
	return b.String()
}

func modelName(provider, name string) string {
	if provider == "" {
		return name
	}
	return provider + "/" + name
}
