package jetstream_test

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/sdk/service/jetstream"
)

func Example() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server, err := jetstream.Serve(jetstream.ServeOptions{Dir: dir}) // or nats.Connect to a cluster
	if err != nil {
		panic(err)
	}
	defer server.Close()
	nc, err := server.Connect()
	if err != nil {
		panic(err)
	}
	defer nc.Close()

	ctx := context.Background()
	db, err := jetstream.Open(ctx, nc, jetstream.Options{})
	if err != nil {
		panic(err)
	}
	journal, err := db.Journal(ctx, "acme", "greeting")
	if err != nil {
		panic(err)
	}
	if err := journal.Append(ctx, event.Event{V: event.Version, Seq: 1, Session: "greeting", Body: event.Warning{Code: "HELLO"}}); err != nil {
		panic(err)
	}
	_, err = db.Journal(ctx, "acme", "greeting") // another machine takes the session over
	fmt.Println(err, journal.Append(ctx, event.Event{V: event.Version, Seq: 2, Session: "greeting", Body: event.Warning{}}))
	// Output: <nil> session acme/greeting: append record 2: another process has taken over the session
}
