package langchain_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/fake"

	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
)

// A langchaingo model as a provider, such as for sdk/agent.
func ExampleProvider() {
	p := langchain.Provider(fake.NewFakeLLM([]string{"Hello from langchaingo."}), langchain.Traits{NoStopReason: true})

	resp, err := model.Complete(context.Background(), p, &model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Parts: model.TextParts("Hello")}},
	})
	fmt.Println(resp.Parts.Text(), err)
	// Output: Hello from langchaingo. <nil>
}

// A provider as a langchaingo model, for chains and agents.
func ExampleModel() {
	// Any provider of this module, such as openai.New or langchain.Local, will do.
	p := langchain.Provider(fake.NewFakeLLM([]string{"Hello from a provider."}), langchain.Traits{NoStopReason: true})

	m := langchain.Model(p)
	text, err := llms.GenerateFromSinglePrompt(context.Background(), m, "Hello")
	fmt.Println(text, err)
	// Output: Hello from a provider. <nil>
}
