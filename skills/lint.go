package skills

import "slices"

// Lint returns everything that is odd about a skill: what its reading found,
// what the static scan found, and triggers that say too little.
func (s *Skill) Lint() []Diagnostic {
	r := &report{file: s.File, list: slices.Clone(s.Diagnostics)}
	for _, d := range s.Demoted() {
		r.add(Warning, 1, 1, "the trigger %q (%s) fires on %.0f %% of ordinary inputs and only ranks: make it longer", d.Trigger, d.By, 100*d.Share)
	}
	for _, k := range s.Triggers.Keywords {
		if content(words(k)) == 0 {
			r.add(Warning, 1, 1, "the keyword %q says nothing and never fires: it has only words that every text has", cut(k, 80))
		}
	}
	if s.Triggers.None() && !s.NoModel {
		r.add(Note, 1, 1, "there are no triggers: the skill is listed, and its text is disclosed only where nothing else is near")
	}
	if len(s.Triggers.Keywords) > 0 && len(s.Triggers.Verbs) == 0 && !slices.ContainsFunc(s.Triggers.Keywords, func(k string) bool { _, ok := newPhrase(k); return ok }) && len(s.Triggers.Patterns) == 0 {
		r.add(Warning, 1, 1, "all keywords are single words and there are no verbs, so that none discloses the skill: write phrases of two or more words")
	}
	return append(r.sorted(), s.Scan()...)
}
