package sdk_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// describe returns what a plugin with an extension tells its host.
func describe(e sdk.Extension) *toolproto.Description {
	s, err := sdk.NewServer(sdk.Plugin{Name: "demo", Version: "1.0.0"}, e)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	d, err := s.Describe(context.Background(), &toolproto.DescribeRequest{})
	if err != nil {
		panic(err)
	}
	return d
}

// A complete plugin: the main function of its program.
func Example() {
	type args struct {
		City string `json:"city" jsonschema:"the city, in English"`
		Days int    `json:"days,omitempty" default:"1"`
	}
	forecast := sdk.Tool("forecast", "Weather forecast for a city.",
		func(ctx *sdk.Context, in args) (string, error) {
			ctx.Progress(0, 0, "asking the weather service")
			return fmt.Sprintf("%d sunny days in %s", in.Days, in.City), nil
		}, sdk.ReadOnly(), sdk.ConnectsTo("api.example.com"))

	_ = func() { // func main()
		sdk.Serve(sdk.Plugin{
			Name: "weather", Version: "1.0.0", Summary: "Weather forecasts",
			Manifest: sdk.Manifest{Network: []string{"api.example.com"}},
		}, forecast)
	}
	// Output:
}

// The schema of the arguments is inferred from a struct and its tags.
func ExampleTool() {
	type args struct {
		City string `json:"city" jsonschema:"the city, in English"`
		Unit string `json:"unit" enum:"celsius,fahrenheit" default:"celsius"`
	}
	e := sdk.Tool("temperature", "Current temperature in a city.", func(_ *sdk.Context, in args) (string, error) {
		return "20 degrees " + in.Unit, nil
	})
	fmt.Println(string(describe(e).Tools[0].InputSchema))
	// Output: {"type":"object","properties":{"city":{"type":"string","description":"the city, in English"},"unit":{"type":"string","default":"celsius","enum":["celsius","fahrenheit"]}},"required":["city"],"additionalProperties":false}
}

// Declared accesses are checked against the user's permission rules.
func ExampleReads() {
	type args struct {
		Paths []string `json:"paths"`
	}
	e := sdk.Tool("count_lines", "Count the lines of files.", func(_ *sdk.Context, in args) (string, error) {
		lines := 0
		for _, name := range in.Paths {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", sdk.Errorf(sdk.IO, "%w: check the path", err)
			}
			lines += strings.Count(string(text), "\n")
		}
		return fmt.Sprint(lines), nil
	}, sdk.ReadOnly(), sdk.Reads("/paths"))
	for _, a := range describe(e).Tools[0].Access {
		fmt.Println(a.Scope, a.Arg)
	}
	// Output: fs-read /paths
}

// A context source adds text to the user's inputs, if it has something relevant.
func ExampleContextSource() {
	e := sdk.ContextSource("ticket", "The ticket of the current branch.",
		func(_ *sdk.Context, req sdk.ContextRequest) (string, error) {
			if !strings.Contains(req.Input, "ticket") {
				return "", nil
			}
			return "APP-17: The login page is slow", nil
		})
	fmt.Println(describe(e).Contexts[0].Name)
	// Output: ticket
}

// A command sends a prompt to the model, or shows text to the user.
func ExampleCommand() {
	e := sdk.Command("standup", "[DAYS]", "Summarize recent work.",
		func(_ *sdk.Context, args string) (sdk.Reply, error) {
			if args == "help" {
				return sdk.Reply{Text: "/standup summarizes the last day, or the last DAYS."}, nil
			}
			return sdk.Reply{Prompt: "Summarize the git log of the last " + args + " days."}, nil
		})
	c := describe(e).Commands[0]
	fmt.Println("/"+c.Name, c.Args)
	// Output: /standup [DAYS]
}

// Confirm asks the user before something that cannot be undone.
func ExampleContext_Confirm() {
	type args struct {
		Name string `json:"name"`
	}
	_ = sdk.Tool("drop_table", "Drop a table of the test database.", func(ctx *sdk.Context, in args) (string, error) {
		ok, err := ctx.Confirm("Drop table "+in.Name+"?", "This cannot be undone.")
		if err != nil || !ok {
			return "the table was not dropped", err
		}
		ctx.Progress(0, 0, "dropping "+in.Name)
		return "dropped " + in.Name, nil
	})
	// Output:
}
