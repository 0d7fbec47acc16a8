package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type where struct {
	Country string `json:"country,omitempty" default:"CH"`
	Street  string `json:"street,omitempty"`
}

type args struct {
	City  string          `json:"city" jsonschema:"the city"`
	Unit  string          `json:"unit" enum:"celsius,kelvin" default:"celsius"`
	Days  int             `json:"days" enum:"1,7" default:"1"`
	Tags  []string        `json:"tags,omitempty"`
	Limit *int            `json:"limit,omitempty"`
	Where *where          `json:"where,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Big   int64           `json:"big,omitempty"`
}

func plugin(extensions ...sdk.Extension) sdk.Plugin {
	return sdk.Plugin{Name: "test", Version: "1.0.0", Extensions: extensions}
}

func echo() sdk.Extension {
	return sdk.Tool("echo", "Return the arguments.", func(_ *sdk.Context, in args) (args, error) { return in, nil })
}

func TestSchemaIsWhatModelsTake(t *testing.T) {
	d := sdktest.Start(t, plugin(echo())).Describe(t)
	var s struct {
		Required   []string
		Properties map[string]map[string]any
	}
	if err := json.Unmarshal(d.Tools[0].InputSchema, &s); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(d.Tools[0].InputSchema), "null") {
		t.Errorf("the schema offers null: %s", d.Tools[0].InputSchema)
	}
	if fmt.Sprint(s.Required) != "[city]" {
		t.Errorf("required = %v, want only what has no default", s.Required)
	}
	for name, want := range map[string]string{
		"city": `map[description:the city type:string]`,
		"unit": `map[default:celsius enum:[celsius kelvin] type:string]`,
		"days": `map[default:1 enum:[1 7] type:integer]`,
		"raw":  `map[description:any JSON value]`,
		"tags": `map[items:map[type:string] type:array]`,
	} {
		if got := fmt.Sprint(s.Properties[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestArgumentsAreCheckedAndCompleted(t *testing.T) {
	p := sdktest.Start(t, plugin(echo()))
	var got args
	res := p.Call(t, "echo", json.RawMessage(`{"city": "Bern", "where": {"street": "Gasse"}, "raw": {"a": [1.50]}, "big": 9007199254740993}`))
	res.Decode(t, &got)
	if got.Unit != "celsius" || got.Days != 1 || got.Where.Country != "CH" || got.Where.Street != "Gasse" {
		t.Errorf("the defaults are missing: %+v", got)
	}
	if string(got.Raw) != `{"a":[1.50]}` || got.Big != 9007199254740993 {
		t.Errorf("numbers lost digits: %s %d", got.Raw, got.Big)
	}
	for in, want := range map[string]string{
		`{}`:                              "city",
		`{"city": 3}`:                     "string",
		`{"city": "Bern", "unit": "F"}`:   "enum",
		`{"city": "Bern", "rain": true}`:  "rain",
		`{"city": "Bern", "tags": null}`:  "null",
		`[]`:                              "not a JSON object",
		`null`:                            "not a JSON object",
		`{"city": "Bern", "days": "one"}`: "integer",
	} {
		if res := p.Call(t, "echo", json.RawMessage(in)); res.Code != sdk.Validation || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %s %q, want VALIDATION_ERROR with %q", in, res.Code, res.Text, want)
		}
	}
}

func TestResults(t *testing.T) {
	type none struct{}
	large := strings.Repeat("a line of text\n", 200_000) // 3 MB
	image := bytes.Repeat([]byte{0x89, 'P'}, 700_000)    // more than a frame
	p := sdktest.Start(t, plugin(
		sdk.Tool("text", "t", func(*sdk.Context, none) (string, error) { return "hello \xff", nil }),
		sdk.Tool("nothing", "t", func(*sdk.Context, none) (none, error) { return none{}, nil }),
		sdk.Tool("data", "t", func(*sdk.Context, none) (map[string]int, error) { return map[string]int{"n": 1}, nil }),
		sdk.Tool("large", "t", func(*sdk.Context, none) (sdk.Result, error) {
			return sdk.Result{Text: large, Structured: []string{large}, Images: []sdk.Image{{MediaType: "image/png", Data: image}}}, nil
		}),
		sdk.Tool("live", "t", func(ctx *sdk.Context, _ none) (string, error) {
			ctx.Progress(1, 2, "half")
			ctx.Logf(slog.LevelWarn, "careful")
			_, err := fmt.Fprint(ctx, "first, ")
			return "then the rest", err
		}),
		sdk.Tool("fails", "t", func(*sdk.Context, none) (string, error) { return "", errors.New("no luck") }),
		sdk.Tool("coded", "t", func(*sdk.Context, none) (string, error) { return "", sdk.Errorf(sdk.NotFound, "no %s", "such") }),
		sdk.Tool("panics", "t", func(*sdk.Context, none) (string, error) { panic("boom") }),
		sdk.Tool("unfit", "t", func(*sdk.Context, none) (any, error) { return func() {}, nil }),
		sdk.Tool("asks", "t", func(ctx *sdk.Context, _ none) (bool, error) { return ctx.Confirm("Really?", "It is far.") }),
	))
	call := func(tool string) sdktest.Result { return p.Call(t, tool, none{}) }
	for tool, want := range map[string]string{"text": "hello \uFFFD", "nothing": "done", "live": "first, then the rest"} {
		if res := call(tool); res.Code != "" || res.Text != want {
			t.Errorf("%s: %q %q, want %q", tool, res.Code, res.Text, want)
		}
	}
	for tool, want := range map[string]string{"data": `{"n":1}`, "asks": "true"} {
		if got := string(call(tool).Structured); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	for tool, want := range map[string]sdktest.Result{
		"fails":  {Code: sdk.Unknown, Text: "no luck"},
		"coded":  {Code: sdk.NotFound, Text: "no such"},
		"panics": {Code: sdk.Unknown, Text: "the plugin panicked: boom"},
	} {
		if res := call(tool); res.Code != want.Code || res.Text != want.Text {
			t.Errorf("%s: %s %q, want %s %q", tool, res.Code, res.Text, want.Code, want.Text)
		}
	}
	if res := call("unfit"); res.Code == "" || !strings.Contains(res.Text, "cannot be encoded") {
		t.Errorf("unfit: %s %q", res.Code, res.Text)
	}
	if res := call("asks"); fmt.Sprint(res.Questions) != "[Really?]" {
		t.Errorf("questions: %v", res.Questions)
	}
	res := call("large")
	var data []string
	res.Decode(t, &data)
	if res.Text != large || data[0] != large || len(res.Images) != 1 || !bytes.Equal(res.Images[0].Data, image) {
		t.Errorf("a large result did not come through: %d bytes of text, %d images", len(res.Text), len(res.Images))
	}
}

func TestContextsAndCommands(t *testing.T) {
	p := sdktest.Start(t, plugin(
		sdk.ContextSource("ticket", "The ticket of this branch.", func(_ *sdk.Context, r sdk.ContextRequest) (string, error) {
			return fmt.Sprintf("%d: %s", r.MaxTokens, r.Input), nil
		}),
		sdk.Command("weather", "CITY", "Show the weather.", func(_ *sdk.Context, args string) (sdk.Reply, error) {
			if args == "" {
				return sdk.Reply{}, sdk.Errorf(sdk.Validation, "which city?")
			}
			return sdk.Reply{Prompt: "What is the weather in " + args}, nil
		}),
	))
	d := p.Describe(t)
	if len(d.Contexts) != 1 || len(d.Commands) != 1 || d.Commands[0].Args != "CITY" {
		t.Errorf("the description is %v", d)
	}
	if got := p.Context(t, "ticket", "go on", 100).Text; got != "100: go on" {
		t.Errorf("context = %q", got)
	}
	if got := p.Command(t, "weather", "Bern").Text; got != "What is the weather in Bern" {
		t.Errorf("command = %q", got)
	}
	if got := p.Command(t, "weather", ""); got.Code != sdk.Validation {
		t.Errorf("command without arguments = %+v", got)
	}
}

func TestDynamic(t *testing.T) {
	ready := make(chan error, 2)
	more := sdk.Tool("more", "More.", func(*sdk.Context, struct{}) (string, error) { return "more", nil })
	p := plugin(echo())
	p.Dynamic = func(ctx context.Context, offer func(...sdk.Extension) error) {
		ready <- offer(more, more)
		ready <- offer(more)
		<-ctx.Done()
	}
	running := sdktest.Start(t, p)
	if err := <-ready; err == nil || !strings.Contains(err.Error(), `duplicate tool "more"`) {
		t.Errorf("offering a tool twice: %v", err)
	}
	if err := <-ready; err != nil {
		t.Error(err)
	}
	if d := running.Describe(t); len(d.Tools) != 2 || !d.Dynamic {
		t.Errorf("the description is %v", d)
	}
	if got := running.Call(t, "more", struct{}{}).Text; got != "more" {
		t.Errorf("more = %q", got)
	}
}

func TestMistakesOfAuthorsAreNamed(t *testing.T) {
	text := func(*sdk.Context, args) (string, error) { return "", nil }
	tests := []struct {
		plugin sdk.Plugin
		want   string
	}{
		{sdk.Plugin{Name: "Weather!", Version: "1"}, `plugin name "Weather!"`},
		{sdk.Plugin{Name: "weather"}, "no version"},
		{plugin(sdk.Tool("a b", "x", text)), `tool "a b": use only letters`},
		{plugin(sdk.Tool("a", "", text)), `tool "a" has no description`},
		{plugin(sdk.Tool[args, string]("a", "x", nil)), `tool "a" has no function`},
		{plugin(sdk.Tool("a", "x", text), sdk.Tool("a", "x", text)), `duplicate tool "a"`},
		{plugin(sdk.Tool("a", "x", func(*sdk.Context, string) (string, error) { return "", nil })), "use a struct"},
		{plugin(sdk.Tool("a", "x", text, sdk.Schema(json.RawMessage(`{"type": "array"}`)))), `"type": "object"`},
		{plugin(sdk.Tool("a", "x", text, sdk.Schema(json.RawMessage(`{`)))), "invalid schema"},
		{plugin(sdk.Tool("a", "x", func(*sdk.Context, struct {
			N int `json:"n" default:"many"`
		},
		) (string, error) {
			return "", nil
		})), `field N: default "many"`},
		{plugin(sdk.Command("", "", "x", nil)), `command ""`},
		{plugin(nil), "extension 1 is nil"},
	}
	for _, tt := range tests {
		if _, err := sdk.NewServer(tt.plugin); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
	}
}

func TestOptionsReachTheDescription(t *testing.T) {
	p := sdktest.Start(t, plugin(sdk.Tool("fetch", "Fetch.", func(*sdk.Context, struct {
		URL string `json:"url"`
	},
	) (string, error) {
		return "", nil
	}, sdk.ReadOnly(), sdk.Timeout(3*time.Second), sdk.Connects("/url"), sdk.ConnectsTo("a.example"), sdk.ReadsTree("/dir"), sdk.Writes("/out"), sdk.Deletes("/old"), sdk.Reads("/in"))))
	tool := p.Describe(t).Tools[0]
	if !tool.ReadOnly || tool.TimeoutMs != 3000 || len(tool.Access) != 6 || tool.Access[0].Scope != "network" || !tool.Access[2].Recursive {
		t.Errorf("the tool is described as %v", tool)
	}
}
