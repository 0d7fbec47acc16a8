// Package skill implements the command agent skills: list, match, install,
// create and lint skills.
package skill
