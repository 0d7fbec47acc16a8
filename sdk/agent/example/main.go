// Command example is a program that embeds an agent: a tool written in Go, a
// session, and its answer. It is a separate module, like yours.
//
// It needs no key, as a script plays the model. For a real model, replace the
// provider, for example by langchain.Local(wire.Config{Model: "llama3.3"}).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/sdk/agent"
)

const script = `
name: example
turns:
  - when: {user: "weather"}
    calls:
      - {name: forecast, args: {city: Oslo}}
  - when: {tool: forecast, result: "rain"}
    text: Take an umbrella, it rains in Oslo.
`

// forecastArgs also defines the tool's schema.
type forecastArgs struct {
	City string `json:"city" jsonschema:"the city's name"`
}

// forecast is a tool that accesses nothing, so it needs no permission.
var forecast = core.NewTool(core.ToolDefinition{Name: "forecast", Description: "Forecast for a city.", ReadOnly: true}, nil,
	func(_ context.Context, _ *core.Call, in forecastArgs) (core.Result, error) {
		return core.TextResult(in.City + ": rain, 7 °C"), nil
	})

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s, err := scripted.Parse("script", []byte(script))
	if err != nil {
		return err
	}
	a, err := agent.Open(ctx, agent.Options{Tools: []core.Tool{forecast}})
	if err != nil {
		return err
	}
	defer a.Close()
	session, err := a.NewSession(ctx, agent.SessionOptions{Provider: s.Provider(scripted.Options{})})
	if err != nil {
		return err
	}
	defer session.Close()
	out, err := session.Submit(ctx, core.TextInput("What is the weather in Oslo?"))
	if err != nil {
		return err
	}
	fmt.Println(out.Text)
	return nil
}
