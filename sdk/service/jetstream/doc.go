// Package jetstream keeps sessions in NATS JetStream, so that any machine that
// reaches it can continue any session: a [core.Journal] and a [core.ContextStore] for
// each session, in one stream and one object store for all of them. A [DB] is also the
// [service.Engine] that workers get their sessions from.
//
//	nc, err := nats.Connect(url)
//	db, err := jetstream.Open(ctx, nc, jetstream.Options{Replicas: 3})
//	journal, err := db.Journal(ctx, "acme", id)
//	s, err := a.NewSession(ctx, agent.SessionOptions{Journal: journal, Store: db.Store("acme", id), …})
//
// # Promises
//
// One writer: opening a journal takes the session over. Every record names the one
// before it, and the server refuses a record that names another one; so the former
// owner's next append, however late, fails with [core.ErrFenced], and nothing is
// written twice when an answer of the server was lost.
//
// Durability is the server's: a record is acknowledged when the stream has it. Run
// servers with sync_interval: always, as [Serve] does; by default they sync every two
// minutes, and a machine that loses power loses what it acknowledged since.
//
// Damage is found: every record has the SHA-256 of its content and of the record
// before, and a sync notes which one is the newest. Opening or replaying a journal
// fails with [ErrDamaged] at a changed or missing record, where a server that rebuilds
// its index leaves it out. Only the loss of the records since the last sync, which a
// session does when it is idle, at the very end of a log stays unseen.
package jetstream
