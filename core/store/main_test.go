package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// childEnv makes the test binary act as another process; its value is the role.
const childEnv = "STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := playChild(role, os.Getenv("STORE_TEST_DIR")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// playChild opens session "s" in dir and then keeps it open, appends forever,
// or fills it up to the file size limit.
func playChild(role, dir string) error {
	if role == "resume" {
		return resume(dir)
	}
	if role == "fill" {
		if err := limitFileSize(8 << 10); err != nil {
			return err
		}
	}
	j, err := store.Create(dir, "s", store.Options{})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	switch role {
	case "hold":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "append":
		for n := 1; ; n++ {
			if err := j.Append(context.Background(), userEvent(n, fmt.Sprint("text ", n))); err != nil {
				return err
			}
		}
	}
	for n := 1; n < 1000; n++ {
		if err := j.Append(context.Background(), userEvent(n, fmt.Sprint("text ", n))); err != nil {
			fmt.Println(n-1, "records, then:", err)
			return j.Close()
		}
	}
	return errors.New("the file-size limit had no effect")
}

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func newEvent(seq int, body event.Body) event.Event {
	return event.Event{V: event.Version, Seq: event.Seq(seq), Time: testTime, Session: "s", Body: body}
}

func userEvent(seq int, text string) event.Event {
	return newEvent(seq, event.User{Content: model.TextParts(text)})
}

func create(t testing.TB, dir string, opts store.Options) *store.Journal {
	t.Helper()
	j, err := store.Create(dir, "s", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func appendAll(t testing.TB, j *store.Journal, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// replay returns what a journal holds after a record.
func replay(t testing.TB, j *store.Journal, after event.Seq) []event.Event {
	t.Helper()
	var got []event.Event
	for e, err := range j.Replay(t.Context(), after) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}
