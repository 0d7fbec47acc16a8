package event_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
)

// A host follows a session: it shows deltas as they arrive, and then the message
// with their complete text.
func ExampleLog() {
	log := event.NewLog(256, nil)
	for i, body := range []event.Body{
		event.MessageStart{},
		event.MessageDelta{Text: "Hello, "},
		event.MessageDelta{Text: "world"},
		event.Message{Content: model.TextParts("Hello, world"), Stop: model.StopEnd},
	} {
		log.Append(event.Event{V: event.Version, Seq: event.Seq(i + 1), Session: "s", Body: body})
	}
	log.Close()

	for e, err := range log.Read(context.Background(), 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch body := e.Body.(type) {
		case event.MessageDelta: // two that piled up are joined
			fmt.Printf("%d: + %s\n", e.Seq, body.Text)
		case event.Message:
			fmt.Printf("%d: %s\n", e.Seq, body.Content.Text())
		}
	}
	// Output:
	// 3: + Hello, world
	// 4: Hello, world
}

func ExampleEvent_MarshalJSON() {
	e := event.Event{V: event.Version, Seq: 2, Session: "4f", Call: "c1", Body: event.ToolUse{Name: "shell", Args: `{"command":"ls"}`}}
	out, err := json.Marshal(e)
	fmt.Println(string(out), err)
	// Output: {"v":1,"seq":2,"id":"4f-2","time":"0001-01-01T00:00:00Z","session":"4f","call":"c1","type":"tool_use","name":"shell","args":"{\"command\":\"ls\"}"} <nil>
}
