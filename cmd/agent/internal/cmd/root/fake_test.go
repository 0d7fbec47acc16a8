package root

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core/model/modeltest"
)

// fakeTurn is an answer of the fake server, as scripts write it in YAML.
type fakeTurn struct {
	Text      []string   `yaml:"text"` // the chunks in which it comes
	Reasoning []string   `yaml:"reasoning"`
	Calls     []fakeCall `yaml:"calls"`
	Finish    string     `yaml:"finish"` // finish_reason, where it is not what follows from the calls
	Prompt    int        `yaml:"prompt"` // tokens of usage
	Status    int        `yaml:"status"` // an HTTP error instead of an answer
	Cut       int        `yaml:"cut"`    // the connection is cut after so many frames
	End       int        `yaml:"end"`    // the stream ends after so many frames as if it were whole
	Body      string     `yaml:"body"`   // sent with status 200 instead of a stream
	Wait      string     `yaml:"wait"`   // a 429 with this Retry-After
	Touch     string     `yaml:"touch"`  // a file to make when the request is there
	Await     string     `yaml:"await"`  // a file to wait for before the answer
}

type fakeCall struct {
	Name string `yaml:"name"`
	Args any    `yaml:"args"` // an object, or the raw text of the arguments
}

// fakeModel is the model server of one script.
type fakeModel struct {
	chat *modeltest.Chat
	stop func()

	mu    sync.Mutex
	turns []modeltest.Turn
	calls int // so far; numbers their ids
}

func (f *fakeModel) start() (url string, err error) {
	f.chat = modeltest.NewChatFunc(func(*modeltest.Request) modeltest.Turn {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.turns) == 0 {
			return modeltest.Failure(http.StatusBadRequest, "invalid_request_error", "", "the script has no turn left")
		}
		t := f.turns[0]
		f.turns = f.turns[1:]
		return t
	})
	f.chat.Models = []string{"fake-2", "fake-1", "gpt-5-mini", "other"}
	url, f.stop, err = f.chat.Start()
	return url, err
}

// play replaces the turns to come. The files that turns name are in dir.
func (f *fakeModel) play(dir string, text []byte) error {
	var specs []fakeTurn
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&specs); err != nil {
		return fmt.Errorf("the model's turns: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turns = nil
	for _, spec := range specs {
		t, err := f.turn(dir, spec)
		if err != nil {
			return err
		}
		f.turns = append(f.turns, t)
	}
	return nil
}

func (f *fakeModel) turn(dir string, spec fakeTurn) (modeltest.Turn, error) {
	switch {
	case spec.Wait != "":
		return modeltest.RateLimited(spec.Wait), nil
	case spec.Body != "":
		return modeltest.Turn{Text: []string{""}, Edits: []modeltest.Edit{func([]string) []string { return []string{spec.Body} }}}, nil
	}
	switch spec.Status {
	case 0:
	case http.StatusUnauthorized:
		return modeltest.Unauthorized("sk-1234"), nil
	case http.StatusNotFound:
		return modeltest.NoSuchModel("fake-1"), nil
	default:
		return modeltest.ServerError(spec.Status), nil
	}
	t := modeltest.Turn{Text: spec.Text, Reasoning: spec.Reasoning, Finish: spec.Finish, Gate: spec.gate(dir)}
	if spec.Prompt > 0 {
		t.Usage = modeltest.Usage{Prompt: spec.Prompt, Completion: 10}
	}
	if spec.End > 0 {
		t.Edits = append(t.Edits, modeltest.CutFrames(spec.End))
	}
	for _, c := range spec.Calls {
		args, ok := c.Args.(string)
		if !ok {
			text, err := json.Marshal(c.Args)
			if err != nil {
				return t, fmt.Errorf("arguments of %s: %w", c.Name, err)
			}
			args = string(text)
		}
		f.calls++
		half := len(args) / 2
		t.Calls = append(t.Calls, modeltest.Call{ID: fmt.Sprintf("call_%d", f.calls), Name: c.Name, Args: []string{args[:half], args[half:]}})
	}
	return t, nil
}

// gate does what a turn says of files and of the connection.
func (spec fakeTurn) gate(dir string) func(context.Context, int) {
	return func(ctx context.Context, frame int) {
		switch {
		case spec.Cut > 0 && frame == spec.Cut:
			panic(http.ErrAbortHandler) // which is how a server cuts a connection
		case frame >= 0:
			return
		}
		if spec.Touch != "" {
			_ = os.WriteFile(filepath.Join(dir, spec.Touch), nil, 0o600) // who waits for it says that it is missing
		}
		if spec.Await != "" {
			_ = await(spec.Await, func() bool {
				_, err := os.Stat(filepath.Join(dir, spec.Await))
				return err == nil || ctx.Err() != nil
			})
		}
	}
}

// checkPrefixes compares each request's messages with those of the one before.
func (f *fakeModel) checkPrefixes() error {
	var before []json.RawMessage
	for i, r := range f.chat.Requests() {
		var body struct{ Messages []json.RawMessage }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			return err
		}
		for j, m := range before {
			if j >= len(body.Messages) || !bytes.Equal(m, body.Messages[j]) {
				return fmt.Errorf("request %d does not begin with the messages of the one before: message %d was\n%s\nand the request is\n%s", i+1, j, m, r.Body)
			}
		}
		before = body.Messages
	}
	return nil
}

// patience is when a wait has failed; it only ends tests that would hang.
const patience = 2 * time.Minute

// await waits until something has come about.
func await(what string, done func() bool) error {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come about within %s", what, patience)
		}
	}
	return nil
}
