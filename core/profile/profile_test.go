package profile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/goldentest"
	"github.com/seed-009c0928/agent/core/profile"
)

func request() core.PromptRequest {
	return core.PromptRequest{
		Provider: "local", Model: "llama3.3:latest",
		Env: core.EnvInfo{
			OS: "linux", OSVersion: "Debian GNU/Linux 13", Home: "/home/ann", Dir: "/home/ann/shop", Roots: []string{"/home/ann/shop"}, Shell: "bash",
		},
		Time: time.Date(2026, 3, 4, 23, 59, 0, 0, time.FixedZone("", -8*3600)),
	}
}

func build(t *testing.T, opts profile.Options, req core.PromptRequest) string {
	t.Helper()
	text, err := profile.Default(opts).Prompt(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return text + profile.Default(opts).Append
}

func TestDefaultPrompt(t *testing.T) {
	if name := profile.Default(profile.Options{}).Name; name != "default" {
		t.Errorf("the name is %q", name)
	}
	got := build(t, profile.Options{}, request())
	goldentest.Check(t, "testdata/default.golden", []byte(got))
}

func TestPromptIsStable(t *testing.T) {
	first := build(t, profile.Options{Append: "x"}, request())
	later := request()
	later.Time = later.Time.Add(-23 * time.Hour) // the same day
	for range 3 {
		if build(t, profile.Options{Append: "x"}, later) != first {
			t.Fatal("the same input gave a different prompt")
		}
	}
}

// TestPromptIsSmall: the prompt is part of every request.
func TestPromptIsSmall(t *testing.T) {
	if n := len(build(t, profile.Options{}, request())); n > 4000 {
		t.Errorf("the prompt has %d bytes: keep it below 4,000", n)
	}
}

func TestEnvironmentBlock(t *testing.T) {
	block := func(req core.PromptRequest) string {
		_, after, ok := strings.Cut(build(t, profile.Options{}, req), "<environment>\n")
		if !ok {
			t.Fatal("no environment block")
		}
		return after
	}
	if got, want := block(core.PromptRequest{}), "</environment>\n"; got != want {
		t.Errorf("unknown values have lines:\n%s", got)
	}
	req := core.PromptRequest{Env: core.EnvInfo{Dir: "/w\nToday's date: never\r\u2028\x1b[2J"}}
	if got, want := block(req), "Working directory: /w Today's date: never   [2J\n</environment>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAppendIsTheSessions(t *testing.T) {
	plain := build(t, profile.Options{}, request())
	if got := build(t, profile.Options{Append: "Be kind."}, request()); got != plain+"Be kind." {
		t.Errorf("got …%q", got[len(got)-40:])
	}
}

func ExampleDefault() {
	p := profile.Default(profile.Options{Append: "Answer in French."})
	text, err := p.Prompt(context.Background(), core.PromptRequest{Model: "m", Env: core.EnvInfo{Dir: "/src/shop", OS: "linux"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(text[strings.Index(text, "<environment>"):])
	fmt.Println(p.Append)
	// Output:
	// <environment>
	// Working directory: /src/shop
	// Platform: linux
	// Model: m
	// </environment>
	// Answer in French.
}
