// Package remote is what the command knows of services on this and other machines:
// their addresses and tokens, and how their sessions are to be run.
package remote
