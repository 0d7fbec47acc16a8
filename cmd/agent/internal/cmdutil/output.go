package cmdutil

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
)

// ValueText formats a setting's value on one line: text as it is, anything else
// as JSON.
func ValueText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case config.Secret:
		return v.String()
	}
	text, err := json.Marshal(value)
	if err != nil { // no type of the settings fails
		return err.Error()
	}
	return string(text)
}

// SortedKeys returns the keys of m in order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Age formats how long ago something was, in its largest unit.
func Age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// Size formats a number of bytes in its largest unit.
func Size(n int64) string {
	units := []string{"B", "kB", "MB", "GB"}
	f, i := float64(n), 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1000
	}
	if i == 0 || f >= 10 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Tilde shortens the home directory and paths below it.
func Tilde(path, home string) string {
	rest, inHome := strings.CutPrefix(path, home)
	if home != "" && inHome && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}

// WriteJSON prints v as indented JSON.
func WriteJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
