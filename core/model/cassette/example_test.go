package cassette_test

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/cassette"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// A test uses a recorded service.
func ExampleReplay() {
	player, err := cassette.Replay("testdata/hello.yaml", cassette.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := openai.New(openai.Config{Config: wire.Config{APIKey: "none", Model: "gpt-5-mini", Transport: player}})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := model.Complete(context.Background(), p, &model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Say hello.")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Parts.Text())
	// Output: Hello.
}
