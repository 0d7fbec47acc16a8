package wire

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// waitOf returns how long an error body asks to wait: in one of the usual members,
// at any depth, or in the words of its message.
func waitOf(body []byte, message string) time.Duration {
	var value any
	if json.Unmarshal(body, &value) == nil {
		const maxDepth = 6
		if d := waitIn(value, maxDepth); d > 0 {
			return d
		}
	}
	return waitInText(message)
}

// waitMembers are the members for a time to wait, without case, _ and -, and the
// unit of a bare number.
var waitMembers = map[string]time.Duration{
	"retryafter": time.Second, "retryafterseconds": time.Second, "retryafterms": time.Millisecond,
	"retrydelay": time.Second, "retryaftersec": time.Second, "retryaftersecs": time.Second,
}

func waitIn(value any, depth int) time.Duration {
	if depth == 0 {
		return 0
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			unit, ok := waitMembers[strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))]
			if !ok {
				continue
			}
			if d := duration(v[name], unit); d > 0 {
				return d
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if d := waitIn(v[name], depth-1); d > 0 {
				return d
			}
		}
	case []any:
		for _, element := range v {
			if d := waitIn(element, depth-1); d > 0 {
				return d
			}
		}
	}
	return 0
}

// duration reads a number of units, or a text such as "7.5s".
func duration(value any, unit time.Duration) time.Duration {
	switch v := value.(type) {
	case float64:
		return units(v, unit)
	case string:
		if n, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return units(n, unit)
		}
		d, err := time.ParseDuration(strings.TrimSpace(v))
		if err == nil && d > 0 && d <= maxWait {
			return d
		}
	}
	return 0
}

// maxWait is more than any server means.
const maxWait = 1_000_000 * time.Second

func units(n float64, unit time.Duration) time.Duration {
	if n > 0 && n <= float64(maxWait/unit) {
		return time.Duration(n * float64(unit))
	}
	return 0
}

const waitUnit = `(\d+(?:\.\d+)?)\s*(hours?|h|milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s)`

// waitWords match a time to wait in a message, and one amount in it.
var waitWords = sync.OnceValues(func() (phrase, amount *regexp.Regexp) {
	return regexp.MustCompile(`(?i)\b(?:try again|retry(?:ing)?|wait)(?: in| after| for| at least| about| another)*:? ((?:` + waitUnit + `(?:,? and |,? )?)+)`),
		regexp.MustCompile(`(?i)` + waitUnit)
})

func waitInText(text string) time.Duration {
	phrase, amount := waitWords()
	m := phrase.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	var total time.Duration
	for _, a := range amount.FindAllStringSubmatch(m[1], -1) {
		n, err := strconv.ParseFloat(a[1], 64)
		if err != nil {
			continue
		}
		unit := time.Second
		switch u := strings.ToLower(a[2]); {
		case strings.HasPrefix(u, "h"):
			unit = time.Hour
		case strings.HasPrefix(u, "ms") || strings.HasPrefix(u, "milli"):
			unit = time.Millisecond
		case strings.HasPrefix(u, "m"):
			unit = time.Minute
		}
		total = min(total+units(n, unit), maxWait)
	}
	return total
}
