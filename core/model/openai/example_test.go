package openai_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/modeltest"
	"github.com/seed-009c0928/agent/core/model/openai"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// The transport replaces the service; a program leaves it out.
func ExampleNew() {
	service := modeltest.Canned(http.StatusOK, modeltest.Events(
		`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hello!"}`,
		`{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"gpt-5-mini","usage":{"input_tokens":8,"output_tokens":2}}}`,
	))
	p, err := openai.New(openai.Config{Config: wire.Config{APIKey: "sk-example", Model: "gpt-5-mini", Transport: service}})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := model.Complete(context.Background(), p, &model.Request{
		Effort:   model.EffortLow,
		Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Say hello.")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Parts.Text(), answer.Stop, answer.Usage.Total())
	// Output: Hello! end 10
}
