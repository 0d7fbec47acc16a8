package permissions

// WithDenied returns the policy with more deny rules, which the user has added in the
// session.
func (p *Policy) WithDenied(rules []string) (*Policy, error) {
	q := *p
	q.deny = ruleList{}
	for _, r := range p.deny.rules {
		own := *r // the list numbers its rules
		q.deny.add(&own)
	}
	set := &RuleSet{Source: SourceSession, Settings: Settings{Deny: rules}}
	anchors := anchor{home: p.home, bases: p.workspace}
	if err := q.compileList(&q.deny, set, ListDeny, rules, anchors); err != nil {
		return nil, err
	}
	return &q, nil
}
