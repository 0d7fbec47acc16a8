// Package skill is the command agent skills: list, match, install, write and lint
// skills.
package skill
