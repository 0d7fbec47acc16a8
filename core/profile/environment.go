package profile

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core"
)

// environment describes the environment to the model. Unknown values are left
// out.
func environment(req core.PromptRequest, repo *repository, facts Facts) string {
	var b strings.Builder
	b.WriteString("<environment>\n")
	line := func(name, value string) {
		if value = oneLine(value); value != "" {
			b.WriteString(name + ": " + value + "\n")
		}
	}
	line("Working directory", req.Env.Dir)
	if repo.looked {
		line("Is git repository", strconv.FormatBool(repo.root != ""))
		line("Git branch", repo.branch)
	}
	line("Platform", req.Env.OS)
	line("OS version", req.Env.OSVersion)
	if !req.Time.IsZero() {
		line("Today's date", req.Time.Format("2006-01-02"))
	}
	if facts.Name != "" && facts.Name != req.Model {
		line("Model", facts.Name+" ("+req.Model+")")
	} else {
		line("Model", req.Model)
	}
	line("Knowledge cutoff", facts.Cutoff)
	b.WriteString("</environment>")
	return b.String()
}

// oneLine keeps foreign text, such as directory names, from adding lines to the
// prompt.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s))
}
