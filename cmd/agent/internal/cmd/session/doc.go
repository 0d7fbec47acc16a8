// Package session is the command agent sessions, which manages saved sessions.
package session
