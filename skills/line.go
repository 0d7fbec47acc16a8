package skills

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/lazy"
)

// A line of a list has a skill's name, its purpose and when to use it. It comes in
// these lengths, in characters; the better a skill ranks, the longer its line.
var lineForms = []struct{ below, length int }{ // ranks below it have a line up to that long
	{3, maxDescription + maxBrief},
	{12, 2 * maxBrief},
	{lastRank + 1, maxBrief},
}

// lastRank is a rank of skills that do not rank at all.
const lastRank = 1 << 20

var (
	// when is where a description begins to say when to use the skill.
	when = lazy.Regexp(`(?i)\b(?:(?:this skill )?(?:should be used|is used|use|used|invoke|activate|apply|applies|trigger|triggers)(?: this skill| this| it)?(?: proactively| only)?(?: when(?:ever)?\b| for\b| if\b| on\b| to\b|:)|when(?:ever)? (?:the user|asked|you|working|creating|building|writing)\b)`)
	// wordy is what can be said in fewer words.
	wordy = lazy.Regexp(`(?i)^(?:this skill )?(?:should be used|is used|use|used|invoke|activate|apply|applies)(?: this skill| this| it)?(?: proactively)? (when(?:ever)?|for|if|to)\b`)
	asked = lazy.Regexp(`(?i)\bthe user (?:asks|wants|needs|requests)(?: you)? to\b`)
)

// purposes divides what a skill's author says of it into its purpose, when to use
// it, and when not to.
func purposes(s *Skill) (purpose, use, not string) {
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	text := flat(s.Description + " " + s.WhenToUse)
	if at := negates().FindStringIndex(text); at != nil {
		text, not = text[:at[0]], text[at[0]:]
	}
	purpose = text
	if at := when().FindStringIndex(text); at != nil {
		purpose, use = text[:at[0]], text[at[0]:]
	}
	if s.Brief != brief(s.Description) {
		purpose = s.Brief
	}
	use = asked().ReplaceAllString(wordy().ReplaceAllString(use, "Use $1"), "asked to")
	return strings.TrimSpace(purpose), strings.TrimSpace(use), not
}

// listLine returns the line of a skill that has a rank, 0 being the best. What
// does not fit is cut from the purpose and from when to use it alike.
func listLine(s *Skill, rank int) string {
	form := lineForms[slices.IndexFunc(lineForms, func(f struct{ below, length int }) bool { return rank < f.below })]
	purpose, use, not := purposes(s)
	use = shorten(use, max(form.length/2, form.length-utf8.RuneCountInString(purpose)))
	text := strings.TrimSpace(shorten(purpose, form.length-utf8.RuneCountInString(use)) + " " + use)
	if utf8.RuneCountInString(text+not) < form.length {
		text = strings.TrimSpace(text + " " + not)
	}
	return fmt.Sprintf("- %s: %s\n", s.Name, strings.ReplaceAll(text, "</context", "< /context"))
}

// shorten cuts a text between words.
func shorten(text string, most int) string {
	short := cut(text, most)
	if at := strings.LastIndexByte(short, ' '); short != text && at > 0 {
		return strings.TrimRight(short[:at], " ,;:–-") + "…"
	}
	return short
}

// listLines returns the lines of skills, as long as fits into a budget in tokens,
// the best-ranked first. The others have the shortest form.
func listLines(list []*Skill, ranked []Match, budget int) map[*Skill]string {
	lines := map[*Skill]string{}
	for _, s := range list {
		lines[s] = listLine(s, lastRank)
		budget -= len(lines[s]) / 4
	}
	for rank, m := range ranked {
		if short, ok := lines[m.Skill]; ok {
			long := listLine(m.Skill, rank)
			if more := (len(long) - len(short)) / 4; more <= budget {
				lines[m.Skill] = long
				budget -= more
			}
		}
	}
	return lines
}

// fitting returns how many lines of the shortest form fit into a budget in tokens,
// at least one.
func fitting(list []*Skill, budget int) int {
	for i, s := range list {
		if budget -= (len("- : \n") + len(s.Name) + min(len(s.Description)+len(s.WhenToUse), maxBrief)) / 4; budget < 0 {
			return max(i, 1)
		}
	}
	return len(list)
}

// hasLine reports whether a text has the line of a skill, of any length.
func hasLine(s *Skill, text string) bool {
	return slices.ContainsFunc(lineForms, func(f struct{ below, length int }) bool { return strings.Contains(text, listLine(s, f.below-1)) })
}
