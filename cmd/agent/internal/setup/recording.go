package setup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model/cassette"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/store"
)

// replayed stands for the API key in a replay.
const replayed = "replayed"

// Recording records the exchanges with the provider, or replays them.
type Recording struct {
	record, replay string
	hidden         store.Hidden // what is not recorded
	recorder       *cassette.Recorder
	player         *cassette.Player
}

// Register adds --record and --replay.
func (t *Recording) Register(f *pflag.FlagSet) {
	f.StringVar(&t.record, "record", "", "record requests and responses of the provider in a new `FILE`, without credentials")
	f.StringVar(&t.replay, "replay", "", "replay a `FILE` of --record, without API key and network; other requests fail")
}

// Check finds flags that contradict each other.
func (t *Recording) Check() error {
	if t.record != "" && t.replay != "" {
		return cmdutil.Usagef("--record and --replay cannot be combined")
	}
	return nil
}

// On reports whether something is recorded or replayed.
func (t *Recording) On() bool { return t.record != "" || t.replay != "" }

// Open makes the providers of the settings use the recording. A second call, for
// another session, continues it.
func (t *Recording) Open(set *Setup) (err error) {
	if !t.On() {
		return nil
	}
	set.hidden = &t.hidden
	opts, err := t.options(set)
	if err != nil {
		return err
	}
	switch {
	case t.recorder != nil || t.player != nil:
	case t.replay != "":
		if t.player, err = cassette.Replay(t.replay, opts); err != nil {
			return cmdutil.Usagef("--replay: %w", err)
		}
	default:
		if t.recorder, err = cassette.Record(t.record, wire.NewTransport(wire.DefaultConnectTimeout), opts); errors.Is(err, os.ErrExist) {
			return cmdutil.Usagef("--record: %s exists: remove it or name another file", t.record)
		} else if err != nil {
			return cmdutil.Usagef("--record: %w", err)
		}
	}
	if t.replays() {
		set.transport, set.replays = t.player, true
	} else {
		set.transport = t.recorder
	}
	return nil
}

func (t *Recording) replays() bool { return t.player != nil }

// volatile matches text that may differ between runs and machines.
var volatile = []string{
	`(?m)^(Platform|OS version|Today's date): .*$`,
	`\b\d+(\.\d+)? ?(ns|µs|ms|s)\b`,
	`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`,
	`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`,
}

func (t *Recording) options(set *Setup) (cassette.Options, error) {
	o := cassette.Options{
		Secrets: func() []string {
			_, secrets := t.hidden.Learnt()
			return append(set.KnownSecrets(), secrets...)
		},
		Hidden: func() []string {
			texts, _ := t.hidden.Learnt()
			return texts
		},
		Stable: []cassette.Stable{{Name: "workspace", Text: set.Dir}, {Name: "home", Text: set.UserHome}},
	}
	for _, text := range volatile {
		o.Ignore = append(o.Ignore, regexp.MustCompile(text))
	}
	for i, text := range set.Settings.Replay.Ignore {
		re, err := regexp.Compile(text)
		if err != nil {
			return o, &config.Error{Key: "replay.ignore", Err: fmt.Errorf("replay.ignore, entry %d: %w", i+1, err)}
		}
		o.Ignore = append(o.Ignore, re)
	}
	return o, nil
}

// Close ends the recording, and reports exchanges that a replay did not use
// unless the replay failed on a mismatch.
func (t *Recording) Close(notes io.Writer, failed error) {
	if t.recorder != nil {
		if err := t.recorder.Close(); err != nil {
			fmt.Fprintf(notes, "agent: --record: %v\n", err)
		}
	}
	var mismatch *cassette.MismatchError
	if t.player != nil && !errors.As(failed, &mismatch) {
		if unused, all := t.player.Unused(); unused > 0 {
			fmt.Fprintf(notes, "agent: --replay: %d of %d recorded exchanges were not used\n", unused, all)
		}
	}
}
