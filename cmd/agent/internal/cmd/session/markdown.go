package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// markdownTranscript writes the conversation as Markdown, with tool calls
// folded in <details>.
type markdownTranscript struct {
	out       io.Writer
	open      []model.ToolCall  // without a result yet
	questions map[string]string // titles of open questions
}

func newMarkdownTranscript(out io.Writer) *markdownTranscript {
	return &markdownTranscript{out: out, questions: map[string]string{}}
}

func (t *markdownTranscript) begin(about store.Summary) {
	title := display.OneLine(about.Text, 100)
	if title == "" {
		title = "Session " + about.ID
	}
	t.write("# %s\n\n- Session: `%s`\n", plainMarkdown(title), about.ID)
	if about.Origin != "" {
		t.write("- Fork of: `%s`\n", display.OneLine(about.Origin, 200))
	}
	t.write("- Directory: %s\n- Started: %s\n", codeSpan(display.OneLine(about.Cwd, 1000)), about.Created.UTC().Format(time.RFC3339))
}

func (t *markdownTranscript) show(e event.Event) {
	switch b := e.Body.(type) {
	case event.SessionStart:
		by := codeSpan(display.OneLine(modelName(b.Provider, b.Model), 200))
		if b.Resumed {
			t.write("\n*Resumed at %s with %s.*\n", e.Time.UTC().Format(time.RFC3339), by)
		} else {
			t.write("- Model: %s\n", by)
		}
	case event.User:
		t.message("You", b.Content)
	case event.Steering:
		if b.Source == "user" {
			t.message("You (steering)", b.Content)
		} else {
			t.quote(b.Source + ": " + b.Content.Text())
		}
	case event.Message:
		t.endCalls()
		t.open = b.Content.ToolCalls()
		if text := partsText(b.Content); strings.TrimSpace(text) != "" || len(t.open) == 0 {
			t.message("Agent", b.Content)
		}
		if b.Partial {
			t.quote("The answer is incomplete.")
		}
	case event.ToolResult:
		t.result(e.Call, b)
	case event.Question:
		t.questions[b.QID] = b.Title
	case event.Answer:
		t.quote("? " + display.AnswerTo(display.OneLine(t.questions[b.QID], 1000), b))
		delete(t.questions, b.QID)
	default:
		if n, ok := display.NoteOf(b); ok {
			t.quote(n.String())
		}
	}
}

func (t *markdownTranscript) end() { t.endCalls() }

func (t *markdownTranscript) message(who string, content model.Parts) {
	t.write("\n## %s\n\n%s\n", who, strings.TrimSpace(display.Printable(partsText(content))))
}

func (t *markdownTranscript) quote(text string) {
	t.write("\n> %s\n", plainMarkdown(display.OneLine(text, 2000)))
}

// result writes a call with its result.
func (t *markdownTranscript) result(call string, b event.ToolResult) {
	c := model.ToolCall{ID: call, Name: b.Name}
	if i := slices.IndexFunc(t.open, func(c model.ToolCall) bool { return c.ID == call }); i >= 0 {
		c = t.open[i]
		t.open = slices.Delete(t.open, i, i+1)
	}
	outcome := "done"
	if b.IsError || display.CommandFailed(b) {
		outcome = "failed"
	}
	t.call(c, fmt.Sprintf("%s, %s", outcome, time.Duration(b.DurationMS)*time.Millisecond))
	text := partsText(b.Content)
	switch out := b.Output; {
	case out == nil:
	case out.Path != "":
		t.write("Full output (%s): %s\n\n", cmdutil.Size(out.Bytes), codeSpan(display.OneLine(out.Path, 1000)))
	default:
		text = out.Text
	}
	t.write("Result:\n\n%s\n</details>\n", fenced("", display.Printable(text)))
}

// call opens the fold of a call and writes its arguments.
func (t *markdownTranscript) call(c model.ToolCall, outcome string) {
	line := strings.TrimSpace(c.Name + " " + display.Arguments(c.Args, "", 100))
	t.write("\n<details>\n<summary>%s (%s)</summary>\n\n", html.EscapeString(display.OneLine(line, 150)), outcome)
	var args bytes.Buffer
	if json.Indent(&args, []byte(c.Args), "", "  ") != nil {
		args.Reset()
		args.WriteString(c.Args)
	}
	if args.Len() > 0 {
		t.write("Arguments:\n\n%s\n", fenced("json", display.Printable(args.String())))
	}
}

// endCalls writes the calls that have no result.
func (t *markdownTranscript) endCalls() {
	for _, c := range t.open {
		t.call(c, "no result")
		t.write("</details>\n")
	}
	t.open = nil
}

func (t *markdownTranscript) write(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format, args...)
}

// fenced returns a code block with a fence longer than any in text.
func fenced(language, text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// codeSpan returns one line as a code span.
func codeSpan(text string) string {
	fence := strings.Repeat("`", longestRun(text, '`')+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

func longestRun(text string, of byte) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] == of {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}

// plainMarkdown escapes the characters that have a meaning in Markdown.
func plainMarkdown(text string) string {
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "\\<", "#", "\\#", "|", "\\|").Replace(text)
}
