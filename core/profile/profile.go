package profile

import (
	"context"
	_ "embed"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core"
)

//go:embed default.md
var defaultPrompt string

// Options fit a profile to a person.
type Options struct {
	// Append is the person's own text. It is the last part of the prompt and
	// so has the last word.
	Append string
}

// Default returns the profile for models that no other one is made for.
func Default(opts Options) core.Profile {
	return core.Profile{
		Name: "default",
		Prompt: func(_ context.Context, req core.PromptRequest) (string, error) {
			return prompt(defaultPrompt, req, opts), nil
		},
	}
}

// prompt puts the layers together, the later ones taking precedence.
func prompt(base string, req core.PromptRequest, opts Options) string {
	layers := []string{base, environment(req), opts.Append}
	var b strings.Builder
	for _, layer := range layers {
		if layer = strings.TrimSpace(layer); layer == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		// A checkout may turn the line breaks of the base prompt into CRLF.
		b.WriteString(strings.ReplaceAll(layer, "\r\n", "\n"))
	}
	b.WriteByte('\n')
	return b.String()
}

// environment tells the model where it is. What is not known is left out.
func environment(req core.PromptRequest) string {
	var b strings.Builder
	b.WriteString("<environment>\n")
	line := func(name, value string) {
		if value = oneLine(value); value != "" {
			b.WriteString(name + ": " + value + "\n")
		}
	}
	line("Working directory", req.Env.Dir)
	line("Platform", req.Env.OS)
	line("OS version", req.Env.OSVersion)
	if !req.Time.IsZero() {
		line("Today's date", req.Time.Format("2006-01-02"))
	}
	line("Model", req.Model)
	b.WriteString("</environment>")
	return b.String()
}

// oneLine keeps the name of a directory from adding lines to the prompt.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s))
}
