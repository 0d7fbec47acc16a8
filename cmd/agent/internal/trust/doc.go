// Package trust stores which directories the user trusts, with the hashes of
// the files that can make the agent do more, such as their settings. If one of
// these files is changed, added or removed, its directory is untrusted until the
// user trusts it again.
package trust
