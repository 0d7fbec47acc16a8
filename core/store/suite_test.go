package store_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/store"
)

func TestJournalSuite(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(core.Journal) core.Journal{
		"file":     func(j core.Journal) core.Journal { return j },
		"redacted": func(j core.Journal) core.Journal { return closing{store.Redacted(j, store.Options{}), j} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			coretest.TestJournal(t, func(t *testing.T) coretest.OpenJournal {
				dir := t.TempDir()
				return func() (core.Journal, error) {
					j, err := store.Create(dir, "s", store.Options{})
					if errors.Is(err, fs.ErrExist) {
						j, err = store.Open(dir, "s", store.Options{})
					}
					if err != nil {
						return nil, err
					}
					return wrap(j), nil
				}
			})
		})
	}
}

// closing closes the journal below another one.
type closing struct {
	core.Journal
	below core.Journal
}

func (c closing) Close() error { return c.below.(interface{ Close() error }).Close() }
