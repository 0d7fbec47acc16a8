// Package cmdutil is the kernel of every command: streams, exit codes and usage
// errors, questions to the user, signals, JSON and table output. It knows nothing
// about agents and sessions.
package cmdutil
