package skills_test

import (
	"fmt"

	"github.com/seed-009c0928/agent/skills"
)

func ExampleParse() {
	m, diagnostics := skills.Parse("SKILL.md", []byte(`---
name: release-notes
description: Writes release notes: what changed, for whom.
triggers:
  keywords: [release notes, changelog entry]
---

Read the commits since the last tag …
`))
	fmt.Println(m.Name, m.Triggers.Keywords)
	fmt.Println(m.Brief)
	for _, d := range diagnostics {
		fmt.Println(d)
	}
	// Output:
	// release-notes [release notes changelog entry]
	// Writes release notes: what changed, for whom.
	// SKILL.md:3:1: warning: the front matter is not valid YAML (mapping values are not allowed in this context) and was repaired: quote values that contain a colon, and indent with spaces
}
