package scripted

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/model"
)

// condition is what a turn expects of a request's last message.
type condition struct {
	tool    string // empty = the user's text
	text    *regexp.Regexp
	isError bool
}

// met reports whether the last message is what the condition says. No
// condition is always met.
func (c *condition) met(last *model.Message) bool {
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

// String says what is expected.
func (c *condition) String() string {
	what := "a message of the user"
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
	return fmt.Sprintf("%s that matches %q", what, c.text)
}

// describe says what a request's last message is.
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
	return fmt.Sprintf("the last message is one of the %s: %s", last.Role, quote(last.Parts.Text()))
}

// quote quotes the beginning of a text.
func quote(text string) string {
	const most = 200 // characters
	if utf8.RuneCountInString(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	n := 0
	for i := range text {
		if n == most {
			text = text[:i]
			break
		}
		n++
	}
	return fmt.Sprintf("%q…", text)
}
