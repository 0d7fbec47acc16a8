package model_test

import (
	"context"
	"fmt"
	"iter"

	"github.com/seed-009c0928/agent/core/model"
)

// canned answers with a text, or fails.
type canned struct {
	name string
	err  error
}

func (c canned) Info() model.ProviderInfo { return model.ProviderInfo{Name: c.name, Model: "m"} }

func (c canned) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if c.err != nil {
			yield(model.Delta{}, c.err)
			return
		}
		_ = yield(model.Delta{Kind: model.DeltaText, Text: "hello from " + c.name}, nil) &&
			yield(model.Delta{Kind: model.DeltaDone, Stop: model.StopEnd}, nil)
	}
}

func ExampleWithFallback() {
	busy := canned{"first", &model.Error{Code: model.CodeNetwork, Message: "overloaded"}}
	p := model.WithFallback(busy, canned{name: "second"})
	answer, err := model.Complete(context.Background(), p, &model.Request{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Parts.Text())
	// Output: hello from second
}
