package hooks

import (
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// matchTime is how long a regular expression may take. One that takes longer matches, as a
// guard must not be lost.
const matchTime = 100 * time.Millisecond

// compileMatcher returns what tests a matcher. Empty and "*" match all; a matcher of
// letters, digits, _, -, spaces, commas and bars is a list of names; all others are
// JavaScript's regular expressions, not anchored.
func compileMatcher(text string) (func(names []string) bool, error) {
	if text = strings.TrimSpace(text); text == "" || text == "*" {
		return func([]string) bool { return true }, nil
	}
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ,|") == "" {
		var list []string
		for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '|' }) {
			list = append(list, strings.TrimSpace(name))
		}
		return func(names []string) bool {
			return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
		}, nil
	}
	re, err := regexp2.Compile(text, regexp2.ECMAScript)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTime
	return func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			ok, err := re.MatchString(n)
			return ok || err != nil
		})
	}, nil
}
