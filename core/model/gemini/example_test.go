package gemini_test

import (
	"context"
	"fmt"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/gemini"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// The service needs a key and no BaseURL; here, a fake server answers.
func ExampleNew() {
	url, stop, err := modeltest.New(modeltest.Gemini, modeltest.Turn{Text: []string{"Hel", "lo!"}}).Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	p, err := gemini.New(gemini.Config{Config: wire.Config{BaseURL: url, APIKey: "AIza-1234567890", Model: "gemini-2.5-flash"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := model.Complete(context.Background(), p, &model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Say hello.")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Parts.Text(), answer.Stop)
	// Output: Hello! end
}
