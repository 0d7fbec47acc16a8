// Package trust keeps which directories a person trusts, and what was in them
// then: their settings and whatever else of theirs can make the agent do more.
// Trust is in the content. If a covered file changes, comes or goes, its
// directory is not trusted any more until the person says so again.
package trust
