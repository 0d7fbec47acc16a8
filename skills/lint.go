package skills

import "slices"

// Lint returns all problems with a skill: the diagnostics of parsing it, weak
// triggers, and the findings of the static scan.
func (s *Skill) Lint() []Diagnostic {
	r := &report{file: s.File, list: slices.Clone(s.Diagnostics)}
	for _, d := range s.Demoted() {
		r.add(Warning, 1, 1, "the trigger %q (%s) matches %.0f %% of ordinary inputs and is only used for ranking: make it more specific", d.Trigger, d.By, 100*d.Share)
	}
	for _, k := range s.Triggers.Keywords {
		if content(words(k)) == 0 {
			r.add(Warning, 1, 1, "the keyword %q never matches: it has only common words", cut(k, 80))
		}
	}
	if s.Triggers.None() && !s.NoModel {
		r.add(Note, 1, 1, "no triggers: the skill is listed, and only activated if no other skill is similar")
	}
	if len(s.Triggers.Keywords) > 0 && len(s.Triggers.Verbs) == 0 && !slices.ContainsFunc(s.Triggers.Keywords, func(k string) bool { _, ok := newPhrase(k); return ok }) && len(s.Triggers.Patterns) == 0 {
		r.add(Warning, 1, 1, "all keywords are single words and there are no verbs, so none activates the skill: add phrases of two or more words")
	}
	return append(r.sorted(), s.scan()...)
}
