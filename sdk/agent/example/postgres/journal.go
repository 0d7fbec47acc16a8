// Package postgres keeps the sessions of a program in PostgreSQL: an example of a
// core.Journal that many machines share. A table has the records, another one who
// writes them.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// DB has the sessions. It is safe for concurrent use.
type DB struct{ pool *pgxpool.Pool }

// Open connects to a database, and creates the tables in it.
func Open(ctx context.Context, url string) (*DB, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS agent_sessions (id text PRIMARY KEY, owner bigint NOT NULL);
		CREATE TABLE IF NOT EXISTS agent_records (session text, seq bigint, data bytea NOT NULL, PRIMARY KEY (session, seq))`)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &DB{pool}, nil
}

// Close closes the connections.
func (d *DB) Close() { d.pool.Close() }

// Journal opens the journal of a session, new or not. From now on only this one can be
// written: another owner, also on another machine, gets core.ErrFenced.
func (d *DB) Journal(ctx context.Context, id string) (*Journal, error) {
	j := &Journal{pool: d.pool, id: id}
	err := d.pool.QueryRow(ctx, `
		INSERT INTO agent_sessions (id, owner) VALUES ($1, 1)
		ON CONFLICT (id) DO UPDATE SET owner = agent_sessions.owner + 1 RETURNING owner`, id).Scan(&j.owner)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	return j, nil
}

// Journal is the journal of one session.
type Journal struct {
	pool  *pgxpool.Pool
	id    string
	owner int64
}

var _ core.Journal = (*Journal)(nil)

// Append implements core.Journal. The row of the session is locked until the record is
// in, so that a new owner, which changes the row, sees the record or fences it. The data
// is bytea, as text and jsonb take no \u0000.
func (j *Journal) Append(ctx context.Context, e event.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("session %s: %w", j.id, err)
	}
	done, err := j.pool.Exec(ctx, `
		WITH mine AS (SELECT id FROM agent_sessions WHERE id = $1 AND owner = $2 FOR SHARE)
		INSERT INTO agent_records (session, seq, data) SELECT id, $3, $4 FROM mine`, j.id, j.owner, int64(e.Seq), data)
	switch {
	case err != nil:
		return fmt.Errorf("session %s: append record %d: %w", j.id, e.Seq, err)
	case done.RowsAffected() == 0:
		return fmt.Errorf("session %s: %w", j.id, core.ErrFenced)
	}
	return nil
}

// Sync implements core.Journal: a commit has synced already.
func (j *Journal) Sync(context.Context) error { return nil }

// Replay implements core.Journal.
func (j *Journal) Replay(ctx context.Context, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		rows, err := j.pool.Query(ctx, `SELECT data FROM agent_records WHERE session = $1 AND seq > $2 ORDER BY seq`, j.id, int64(after))
		if err != nil {
			yield(event.Event{}, fmt.Errorf("session %s: %w", j.id, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			data, err := pgx.RowTo[[]byte](rows)
			var e event.Event
			if err == nil {
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
