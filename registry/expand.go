package registry

import (
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/rank"
)

// Weights of terms that are not in the query itself.
const (
	synonymWeight  = 0.3
	compoundWeight = 1.0
)

// synonyms are words that tools and users use for the same thing, one group per
// line. They are not specific to any service.
const synonyms = `
create new add make open write start insert
delete remove drop clear cancel discard forget
update edit change modify set rename
find search lookup query locate
get read fetch show view retrieve display download
list all every which
send post publish reply
run execute trigger launch invoke
stop end terminate kill shutdown
move transfer transition
copy duplicate clone
merge combine join
close resolve finish done complete
assign delegate
issue ticket bug task story
comment note remark
folder directory
file document
page wiki article
event meeting appointment
email mail message
user person people member colleague
repository repo project
picture image screenshot photo
log logs output
error failure exception
permission access restriction
status state
attach upload
history changelog log commits
schedule calendar
website web url
`

var thesaurus = sync.OnceValue(func() map[string][]string {
	related := map[string][]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(synonyms), "\n") {
		group := rank.Tokens(line)
		for _, term := range group {
			for _, other := range group {
				if other != term && !slices.Contains(related[term], other) {
					related[term] = append(related[term], other)
				}
			}
		}
	}
	return related
})

// expand returns the terms of a query and those that tools may use instead:
// synonyms, and adjacent words joined.
func expand(query string) []rank.Weighted {
	tokens := rank.Tokens(query)
	var terms []rank.Weighted
	for _, t := range tokens {
		terms = append(terms, rank.Weighted{Text: t, Weight: 1})
	}
	words := strings.Fields(strings.ToLower(query))
	for i := range len(words) - 1 {
		for _, t := range rank.Tokens(words[i] + words[i+1]) {
			terms = append(terms, rank.Weighted{Text: t, Weight: compoundWeight})
		}
	}
	for _, t := range tokens {
		for _, other := range thesaurus()[t] {
			terms = append(terms, rank.Weighted{Text: other, Weight: synonymWeight})
		}
	}
	return terms
}
