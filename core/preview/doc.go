// Package preview tells what a tool call would change in files, for a user who
// decides on it before it runs.
package preview
