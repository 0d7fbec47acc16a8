package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/sdk"
)

type none struct{}

type repeatArgs struct {
	Text  string `json:"text"`
	Times int    `json:"times" default:"2"`
}

func ask(ctx *sdk.Context, _ none) (string, error) {
	sure, err := ctx.Confirm("Sure?", "")
	if err != nil {
		return "", err
	}
	way, err := ctx.Choose("Which?", "", "left", "right")
	if err != nil {
		return "", err
	}
	name, err := ctx.AskText("Name?", "", "v1")
	if err != nil {
		return "", err
	}
	var form struct {
		Host  string `json:"host"`
		Stage string `json:"stage" enum:"test,live" default:"test"`
	}
	err = ctx.AskForm("Where?", "", &form)
	return fmt.Sprint(sure, " ", way, " ", name, " ", form.Host, " ", form.Stage), err
}

func consult(ctx *sdk.Context, _ none) (string, error) {
	c, err := ctx.AskModel(sdk.Prompt{System: "Be brief.", Messages: []sdk.Message{{Text: "hi"}}})
	return c.Text + " " + c.Model, err
}

var more = make(chan struct{}, 10)

// grow offers another tool whenever more is asked for.
func grow(ctx context.Context, offer func(...sdk.Extension) error) {
	var list []sdk.Extension
	for {
		select {
		case <-more:
			list = append(list, sdk.Tool(fmt.Sprint("grown", len(list)), "New.", func(*sdk.Context, none) (string, error) { return "new", nil }))
			if err := offer(list...); err != nil {
				panic(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func main() {
	sdk.Serve(sdk.Plugin{Name: "author", Version: "0.1.0", Dynamic: grow},
		sdk.Tool("settings", "Show the settings.", func(ctx *sdk.Context, _ none) (map[string]any, error) {
			values := map[string]any{}
			err := ctx.Settings(&values)
			return values, err
		}),
		sdk.Tool("keep", "Keep a text.", func(ctx *sdk.Context, in struct {
			Text string `json:"text"`
		},
		) (string, error) {
			at := filepath.Join(ctx.DataDir(), "kept")
			if err := os.WriteFile(at, []byte(in.Text), 0o600); err != nil {
				return "", err
			}
			data, err := os.ReadFile(at)
			return string(data), err
		}),
		sdk.Tool("ask", "Ask the user.", ask),
		sdk.Tool("consult", "Ask the model.", consult, sdk.AsksModel()),
		sdk.Tool("sneak", "Ask the model undeclared.", consult),
		sdk.Tool("repeat", "Repeat a text.", func(_ *sdk.Context, in repeatArgs) (sdk.Result, error) {
			return sdk.Result{Text: strings.Repeat(in.Text, in.Times), Structured: map[string]int{"times": in.Times}}, nil
		}),
		sdk.Tool("large", "Return much.", func(ctx *sdk.Context, _ none) (sdk.Result, error) {
			fmt.Fprint(ctx, "live ")
			return sdk.Result{Text: strings.Repeat("x", 3<<20) + " end", Images: []sdk.Image{{MediaType: "image/png", Data: []byte("png")}}}, nil
		}),
		sdk.Tool("lose", "Fail.", func(*sdk.Context, none) (string, error) { return "", sdk.Errorf(sdk.NotFound, "no such ticket") }),
		sdk.Tool("wait", "Wait.", func(ctx *sdk.Context, _ none) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
		sdk.Tool("grow", "Get a tool.", func(ctx *sdk.Context, _ none) (string, error) {
			select {
			case more <- struct{}{}:
				return "grown", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}),
		sdk.Command("say", "TEXT", "Say it", func(_ *sdk.Context, args string) (sdk.Reply, error) { return sdk.Reply{Text: args}, nil }),
		sdk.Command("plan", "TEXT", "Plan it", func(_ *sdk.Context, args string) (sdk.Reply, error) {
			return sdk.Reply{Prompt: "Plan " + args + "."}, nil
		}),
		sdk.ContextSource("ticket", "The ticket", func(_ *sdk.Context, r sdk.ContextRequest) (string, error) {
			return fmt.Sprintf("ticket 1 about %s, %d", r.Input, r.MaxTokens), nil
		}),
		sdk.Hook(sdk.PreToolUse, "guard", func(_ *sdk.Context, e *sdk.HookEvent) (sdk.HookReply, error) {
			var in struct{ Command string }
			err := json.Unmarshal(e.Args, &in)
			return sdk.HookReply{Verdict: sdk.Deny, Reason: "no " + in.Command}, err
		}, sdk.If("Bash(rm *)")),
		sdk.Hook(sdk.PostToolUse, "note", func(*sdk.Context, *sdk.HookEvent) (sdk.HookReply, error) {
			return sdk.HookReply{Context: "noted", Message: "seen"}, nil
		}),
		sdk.Hook(sdk.UserPromptSubmit, "block", func(_ *sdk.Context, e *sdk.HookEvent) (sdk.HookReply, error) {
			if e.Prompt != "block me" {
				return sdk.HookReply{}, nil
			}
			return sdk.HookReply{Verdict: sdk.Deny, Reason: "not now"}, nil
		}))
}
