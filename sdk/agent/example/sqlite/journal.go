// Package sqlite keeps the sessions of a program in an SQLite database: an example of a
// core.Journal. A table has the records, another one who writes them.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"iter"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// DB has the sessions. It is safe for concurrent use.
type DB struct{ db *sql.DB }

// Open opens a database file, or creates it. A record survives a power failure as soon
// as it is appended.
func Open(path string) (*DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	_, err = db.Exec(`
		CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, owner INTEGER NOT NULL) STRICT;
		CREATE TABLE IF NOT EXISTS records (session TEXT, seq INTEGER, data TEXT NOT NULL, PRIMARY KEY (session, seq)) STRICT, WITHOUT ROWID`)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &DB{db}, nil
}

// Close closes the database.
func (d *DB) Close() error { return d.db.Close() }

// Journal opens the journal of a session, new or not. From now on only this one can be
// written: another owner gets core.ErrFenced.
func (d *DB) Journal(ctx context.Context, id string) (*Journal, error) {
	j := &Journal{db: d.db, id: id}
	err := d.db.QueryRowContext(ctx, `
		INSERT INTO sessions (id, owner) VALUES (?, 1)
		ON CONFLICT (id) DO UPDATE SET owner = owner + 1 RETURNING owner`, id).Scan(&j.owner)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return j, nil
}

// Journal is the journal of one session.
type Journal struct {
	db    *sql.DB
	id    string
	owner int64
}

var _ core.Journal = (*Journal)(nil)

// Append implements core.Journal. One statement compares the owner and inserts.
func (j *Journal) Append(ctx context.Context, e event.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("session %s: %w", j.id, err)
	}
	done, err := j.db.ExecContext(ctx, `
		INSERT INTO records (session, seq, data)
		SELECT id, ?, ? FROM sessions WHERE id = ? AND owner = ?`, int64(e.Seq), string(data), j.id, j.owner)
	if err != nil {
		return fmt.Errorf("session %s: append record %d: %w", j.id, e.Seq, err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return fmt.Errorf("session %s: %w", j.id, core.ErrFenced)
	}
	return nil
}

// Sync implements core.Journal: Append has synced already.
func (j *Journal) Sync(context.Context) error { return nil }

// Replay implements core.Journal.
func (j *Journal) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		rows, err := j.db.QueryContext(ctx, `SELECT data FROM records WHERE session = ? AND seq > ? ORDER BY seq`, j.id, int64(after))
		if err != nil {
			yield(event.Event{}, fmt.Errorf("session %s: %w", j.id, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var data []byte
			var e event.Event
			if err = rows.Scan(&data); err == nil {
				err = json.Unmarshal(data, &e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(event.Event{}, fmt.Errorf("session %s: %w", j.id, err))
		}
	}
}
