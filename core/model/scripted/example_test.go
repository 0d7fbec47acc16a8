package scripted_test

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/scripted"
)

func Example() {
	script, err := scripted.Parse("greeter.yaml", []byte(`
name: greeter
turns:
  - when: {user: "(?i)hello"}
    text: Let me see who is there.
    calls:
      - {name: read_file, args: {file_path: "${workspace}/names.txt"}}
  - when: {tool: read_file, result: Ann}
    text: Hello, Ann.
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := script.Provider(scripted.Options{Vars: map[string]string{"workspace": "/tmp/w"}})

	req := &model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Hello!")}}}
	answer, err := model.Complete(context.Background(), provider, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := answer.Parts.ToolCalls()[0]
	fmt.Println(answer.Parts.Text(), call.Name, call.Args)

	// The tool is missing. The script does not continue.
	result := model.ToolResult{CallID: call.ID, Name: call.Name, Content: model.TextParts("there is no such tool"), IsError: true}
	req.Messages = append(req.Messages,
		model.Message{Role: model.RoleAssistant, Parts: answer.Parts},
		model.Message{Role: model.RoleTool, Parts: model.Parts{result}},
	)
	_, err = model.Complete(context.Background(), provider, req)
	fmt.Println(err)
	// Output:
	// Let me see who is there. read_file {"file_path":"/tmp/w/names.txt"}
	// scripted: script greeter.yaml: turn 2 (line 8) expects a success of read_file matching "Ann", but the last message is a failure of read_file: "there is no such tool"
}
