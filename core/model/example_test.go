package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-009c0928/agent/core/model"
)

// A stream is joined into a response as it arrives. One that breaks off gives a
// partial response and an error.
func ExampleGatherer() {
	var g model.Gatherer
	g.Add(model.Delta{Kind: model.DeltaText, Text: "Let me "})
	g.Add(model.Delta{Kind: model.DeltaText, Text: "look."})
	g.Add(model.Delta{Kind: model.DeltaToolStart, Index: 1, ID: "c1", Name: "read_file"})
	g.Add(model.Delta{Kind: model.DeltaToolArgs, Index: 1, Text: `{"file_path":`})

	response, err := g.Response()
	fmt.Println(response.Parts.Text(), errors.Is(err, io.ErrUnexpectedEOF))

	g.Add(model.Delta{Kind: model.DeltaToolArgs, Index: 1, Text: `"go.mod"}`})
	g.Add(model.Delta{Kind: model.DeltaToolEnd, Index: 1})
	g.Add(model.Delta{Kind: model.DeltaDone, Stop: model.StopToolCalls})
	response, err = g.Response()
	fmt.Println(response.Parts.ToolCalls(), err)
	// Output:
	// Let me look. true
	// [{c1 read_file {"file_path":"go.mod"}}] <nil>
}

// Parts that this version does not know are kept unchanged.
func ExampleParts() {
	var parts model.Parts
	in := `[{"type":"text","text":"see:"},{"type":"hologram","voxels":9}]`
	if err := json.Unmarshal([]byte(in), &parts); err != nil {
		fmt.Println(err)
		return
	}
	out, err := json.Marshal(parts)
	fmt.Println(parts.Text(), string(out) == in, err)
	// Output: see: true <nil>
}

func ExampleWithRetry() {
	flaky := &fake{attempts: [][]step{
		{{err: &model.Error{Code: model.CodeRateLimited, Provider: "fake", Message: "slow down", RetryAfter: 2 * time.Second}}},
		{{delta: text(0, "Here I am.")}, {delta: done(model.StopEnd)}},
	}}
	policy := model.DefaultRetry
	policy.Sleep = func(context.Context, time.Duration) error { return nil } // so that the example is quick
	for d, err := range model.WithRetry(flaky, policy).Stream(context.Background(), &model.Request{}) {
		switch {
		case err != nil:
			fmt.Println("failed:", err)
		case d.Kind == model.DeltaRetry:
			fmt.Printf("%v: waiting %v\n", d.Retry.Err, d.Retry.Wait)
		case d.Kind == model.DeltaText:
			fmt.Println(d.Text)
		}
	}
	// Output:
	// fake: slow down: waiting 2s
	// Here I am.
}
