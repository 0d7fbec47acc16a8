// Package invisible knows the characters that a model reads and a user does not see,
// or that change how others are shown.
package invisible
