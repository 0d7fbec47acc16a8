package sdk_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/sdk"
	"github.com/seed-009c0928/agent/sdk/sdktest"
)

type deployForm struct {
	Host  string `json:"host"`
	Stage string `json:"stage" enum:"test,live" default:"test"`
}

func TestQuestions(t *testing.T) {
	p := sdktest.Start(t, plugin(
		sdk.Tool("choose", "Choose.", func(ctx *sdk.Context, _ struct{}) (string, error) { return ctx.Choose("Which?", "", "a", "b") }),
		sdk.Tool("text", "Ask.", func(ctx *sdk.Context, _ struct{}) (string, error) { return ctx.AskText("What?", "", "this") }),
		sdk.Tool("form", "Fill in.", func(ctx *sdk.Context, _ struct{}) (deployForm, error) {
			var form deployForm
			err := ctx.AskForm("Where?", "", &form)
			return form, err
		})))
	if res := p.Call(t, "choose", struct{}{}); res.Code != sdk.Permission || !strings.Contains(res.Text, "the user declined") {
		t.Errorf("declined: %+v", res)
	}
	p.Answers = map[string]any{"answer": "b", "host": "h", "stage": "live"}
	for tool, want := range map[string]string{"choose": "b", "text": "b"} {
		if got := p.Call(t, tool, struct{}{}).Text; got != want {
			t.Errorf("%s = %q", tool, got)
		}
	}
	res := p.Call(t, "form", struct{}{})
	if got := string(res.Structured); got != `{"host":"h","stage":"live"}` || strings.Join(res.Questions, "") != "Where?" {
		t.Errorf("form: %+v", res)
	}
}

func TestAskModel(t *testing.T) {
	p := sdktest.Start(t, plugin(sdk.Tool("sum", "Sum up.", func(ctx *sdk.Context, _ struct{}) (string, error) {
		c, err := ctx.AskModel(sdk.Prompt{System: "Be brief.", Messages: []sdk.Message{{Text: "hi"}}})
		return c.Text, err
	}, sdk.AsksModel())))
	if res := p.Call(t, "sum", struct{}{}); res.Code != sdk.Permission {
		t.Errorf("without a model: %+v", res)
	}
	p.Model = func(q sdk.Prompt) (string, error) { return q.System + q.Messages[0].Text, nil }
	if got := p.Call(t, "sum", struct{}{}).Text; got != "Be brief.hi" {
		t.Errorf("answer = %q", got)
	}
	p.Model = func(sdk.Prompt) (string, error) { return "", errors.New("overloaded") }
	if res := p.Call(t, "sum", struct{}{}); res.Code != sdk.IO || res.Text != "overloaded" {
		t.Errorf("a failing model: %+v", res)
	}
}
