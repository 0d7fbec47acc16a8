package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/redact"
)

// Redacted returns a journal that keeps secrets out of another one, as a [Journal]
// does out of its file.
func Redacted(j core.Journal, opts Options) core.Journal {
	r := &redacted{Journal: j, redact: redact.New(opts.Secrets), hidden: opts.Hidden}
	if r.hidden == nil {
		r.hidden = &Hidden{}
	}
	return r
}

type redacted struct {
	core.Journal
	redact *redact.Redactor
	hidden *Hidden
}

// Hide implements core.Hider.
func (r *redacted) Hide(text string) { r.hidden.Hide(text) }

// Append implements core.Journal.
func (r *redacted) Append(ctx context.Context, e event.Event) error {
	line, err := encode(e)
	if err != nil {
		return fmt.Errorf("session %s: %w", e.Session, err)
	}
	var clean event.Event
	if err := json.Unmarshal(r.hidden.record(r.redact.Record(line)), &clean); err != nil {
		return fmt.Errorf("session %s: a record without its secrets: %w", e.Session, err)
	}
	return r.Journal.Append(ctx, clean)
}
