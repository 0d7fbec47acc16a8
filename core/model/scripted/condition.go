package scripted

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/model"
)

// condition is the "when" of a turn, for the last message of the request.
type condition struct {
	tool    string // empty = text of the user
	text    *regexp.Regexp
	isError bool
}

// matches reports whether the last message matches. No condition always does.
func (c *condition) matches(last *model.Message) bool {
	switch {
	case c == nil:
		return true
	case last == nil:
		return false
	case c.tool == "":
		return last.Role == model.RoleUser && c.text.MatchString(last.Parts.Text())
	}
	for _, p := range last.Parts {
		r, ok := p.(model.ToolResult)
		if ok && r.Name == c.tool && r.IsError == c.isError && c.text.MatchString(r.Content.Text()) {
			return true
		}
	}
	return false
}

// String describes the expected message.
func (c *condition) String() string {
	what := "a user message"
	switch {
	case c == nil:
		return "any message"
	case c.tool != "" && c.isError:
		what = "a failure of " + c.tool
	case c.tool != "":
		what = "a success of " + c.tool
	}
	if c.text.String() == "" {
		return what
	}
	return fmt.Sprintf("%s matching %q", what, c.text)
}

// describe describes the last message of a request.
func describe(last *model.Message) string {
	if last == nil {
		return "there is no message"
	}
	var results []string
	for _, p := range last.Parts {
		r, ok := p.(model.ToolResult)
		if !ok {
			continue
		}
		outcome := "success"
		if r.IsError {
			outcome = "failure"
		}
		results = append(results, fmt.Sprintf("a %s of %s: %s", outcome, r.Name, quote(r.Content.Text())))
	}
	if len(results) > 0 {
		return "the last message is " + strings.Join(results, " and ")
	}
	return fmt.Sprintf("the last message is a %s message: %s", last.Role, quote(last.Parts.Text()))
}

// quote quotes the beginning of a text.
func quote(text string) string {
	const maxLength = 200 // characters
	if utf8.RuneCountInString(text) <= maxLength {
		return fmt.Sprintf("%q", text)
	}
	n := 0
	for i := range text {
		if n == maxLength {
			text = text[:i]
			break
		}
		n++
	}
	return fmt.Sprintf("%q…", text)
}
