// Package session is the command agent sessions: list, show, export, fork,
// repair and delete session logs.
package session
