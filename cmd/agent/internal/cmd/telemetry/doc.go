// Package telemetry is the command agent telemetry: a local dashboard for what sessions
// send, and what is known about the sending.
package telemetry
