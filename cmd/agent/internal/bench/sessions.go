package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

const (
	manySessions = 5_000
	manyEvents   = 100_000
	longSession  = "01980000-0000-7000-8000-000000000000"
	lastWords    = "the last words of the long session"
)

// answered is the result of a tool call.
type answered struct {
	event.ToolResult
	call string
}

// writeSession writes the log of a session, as the agent would have.
func writeSession(dir, id, workspace string, bodies []event.Body) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, id+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<16)
	start := event.SessionStart{Cwd: workspace, Provider: "local", Model: modelName}
	for i, body := range append([]event.Body{start}, bodies...) {
		e := event.Event{V: event.Version, Seq: event.Seq(i + 1), Time: time.Unix(1_700_000_000+int64(i), 0).UTC(), Session: id, Body: body}
		if r, ok := body.(answered); ok {
			e.Call, e.Body = r.call, r.ToolResult
		}
		e.Required = event.Rebuilds(e.Body)
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// turns are inputs that the model answers after a tool call, seven events each.
func turns(n int) []event.Body {
	bodies := make([]event.Body, 0, 7*n)
	output := model.TextParts(strings.Repeat("a line of output\n", 40))
	for i := range n {
		id := fmt.Sprint("call-", i)
		bodies = append(
			bodies,
			event.User{Content: model.TextParts("do the next thing")},
			event.LLMStart{Provider: "local", Model: modelName},
			event.Message{Content: model.Parts{model.ToolCall{ID: id, Name: "shell", Args: `{"command":"make test"}`}}, Stop: model.StopToolCalls},
			event.LLMEnd{Provider: "local", Model: modelName},
			answered{event.ToolResult{Name: "shell", Content: output, DurationMS: 1200}, id},
			event.Message{Content: model.TextParts("Done: all is well."), Stop: model.StopEnd},
			event.Idle{State: "idle", Stop: "done"},
		)
	}
	return bodies
}

// compactedSession writes a session of manyEvents events, which was compacted shortly
// before its end, as every session of that length is.
func compactedSession(dir, workspace string) error {
	bodies := turns((manyEvents - 100) / 7)
	bodies = append(bodies, event.Compacted{Content: model.TextParts("What was done so far."), Summarised: len(bodies) / 7 * 4})
	bodies = append(bodies, turns((manyEvents-len(bodies))/7)...)
	bodies = append(bodies, event.User{Content: model.TextParts("continue")}, event.Message{Content: model.TextParts(lastWords), Stop: model.StopEnd})
	return writeSession(dir, longSession, workspace, bodies)
}

// sessionsToList writes manySessions sessions of a directory, with a prompt as long
// as the agent's.
func sessionsToList(dir, workspace string) error {
	bodies := append([]event.Body{event.Prompt{Text: strings.Repeat("You are a coding agent.\n", 100)}}, turns(2)...)
	for i := range manySessions {
		if err := writeSession(dir, fmt.Sprintf("0198%04x-0000-7000-8000-000000000000", i), workspace, bodies); err != nil {
			return err
		}
	}
	return nil
}
