package skills

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/invisible"
	"github.com/seed-009c0928/agent/core/model"
)

// Bounds of a SKILL.md. The first two are in bytes, the others in characters.
const (
	maxFile        = 1 << 20
	maxFrontMatter = 64 << 10
	MaxName        = 64
	maxDescription = 1024 // of the Agent Skills standard; longer ones are truncated
	maxBrief       = 160
)

// Manifest is the content of a SKILL.md. Its texts contain no control,
// bidirectional or tag characters.
type Manifest struct {
	Name          string // letters, digits and hyphens, at most MaxName
	Description   string
	Brief         string // one sentence
	WhenToUse     string
	Version       string
	License       string
	Compatibility string   // requirements ("compatibility")
	ArgumentHint  string   // for the arguments of /name
	Arguments     []string // their names, see [Values]
	Fork          bool     // a subagent does the work ("context: fork"), see [Fork]
	Agent         string   // its type; empty = general
	Model         string   // for the work; empty = the session's
	Effort        model.Effort
	Triggers      Triggers
	Toolsets      []string // names of binaries in toolsets/
	Scripts       []string // for information; all files in scripts/ can be run
	AllowedTools  []string // a request, which grants nothing
	Paths         []string // globs; unless a file of the conversation matches, only /name activates the skill
	Metadata      map[string]string
	Hooks         string // while the skill is active: a JSON object of events, see core/hooks

	Disabled bool // unless the user enables it ("default_enabled: false")
	NoModel  bool // only the user activates it ("disable-model-invocation")
	NoUser   bool // no /name command ("user-invocable: false")
	Body     string
	BodyLine int // the line of the file at which Body begins
}

// HookLines describes each of the Hooks for display: "PreToolUse Bash: ./check.sh".
func (m *Manifest) HookLines() (lines []string) {
	var of map[string][]struct {
		Matcher string
		Hooks   []struct {
			Command, URL, Prompt, Server, Tool string
			Args                               []string
		}
	}
	if m.Hooks == "" || json.Unmarshal([]byte(m.Hooks), &of) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for _, group := range of[name] {
			for _, h := range group.Hooks {
				does := strings.Join(slices.DeleteFunc(append([]string{h.Command, h.URL, h.Prompt, h.Server, h.Tool}, h.Args...), func(s string) bool { return s == "" }), " ")
				lines = append(lines, fmt.Sprintf("%s %s: %s", name, cmp.Or(group.Matcher, "*"), does))
			}
		}
	}
	return lines
}

// Triggers define which inputs activate a skill.
type Triggers struct {
	Keywords []string `json:"keywords,omitempty"` // words and phrases
	Verbs    []string `json:"verbs,omitempty"`
	Patterns []string `json:"patterns,omitempty"` // Go regular expressions
}

// None reports whether there are no triggers.
func (t Triggers) None() bool {
	return len(t.Keywords) == 0 && len(t.Verbs) == 0 && len(t.Patterns) == 0
}

// brief returns the first sentence of a description, or its beginning.
func brief(description string) string {
	text := strings.Join(strings.Fields(description), " ")
	for i, r := range text {
		if (r == '.' || r == '!' || r == '?') && (i+1 == len(text) || text[i+1] == ' ') && !abbreviates(text[:i]) {
			text = text[:i+1]
			break
		}
	}
	return cut(text, maxBrief)
}

// abbreviates reports whether a period after text does not end a sentence.
func abbreviates(text string) bool {
	word := text[strings.LastIndexAny(text, " (")+1:]
	switch strings.ToLower(word) {
	case "e.g", "i.e", "etc", "vs", "eg", "ie", "cf", "no", "approx":
		return true
	}
	return utf8.RuneCountInString(word) == 1
}

// cut shortens a text to at most that many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return strings.TrimSpace(string(runes[:most-1])) + "…"
}

// visible removes characters that a model reads but a user does not see:
// control characters, bidirectional marks, tag characters and supplementary
// variation selectors. It also returns how many were removed.
func visible(text string) (string, int) {
	removed := 0
	clean := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && invisible.Is(r) {
			removed++
			return -1
		}
		return r
	}, text)
	return clean, removed
}
