// Package skill implements the command agent skills: list, match, test, install,
// create and lint skills.
package skill
