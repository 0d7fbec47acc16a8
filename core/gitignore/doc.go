// Package gitignore parses .gitignore files, and decides which paths they ignore.
// Its rules are those of gitignore(5).
package gitignore
