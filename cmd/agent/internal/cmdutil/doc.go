// Package cmdutil is what every command is made of: the streams it reads and
// writes, exit codes and usage errors, questions to the user, signals, JSON and
// table output. It knows nothing of agents and sessions.
package cmdutil
