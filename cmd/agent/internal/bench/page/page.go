package page

import (
	"fmt"
	"os"
	"strings"
)

// Start and End are the lines between which the text of a mark is.
func Start(mark string) string { return "<!-- " + mark + " -->\n" }

// End is the line after the text.
func End(mark string) string { return "<!-- end of " + mark + " -->\n" }

// Replace writes the text of a mark into a file, in place of the one before.
func Replace(file, mark, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	start, end := Start(mark), End(mark)
	before, rest, found := strings.Cut(string(data), start)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s: expected the lines %q and %q, between which the table goes", file, strings.TrimSpace(start), strings.TrimSpace(end))
	}
	return os.WriteFile(file, []byte(before+start+text+end+after), 0o644)
}

// Load tells the load average, where the system has a file of it: what else runs
// makes times worse.
func Load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	average, _, _ := strings.Cut(string(data), " ")
	return ", load average " + average
}
