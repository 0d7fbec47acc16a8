// Package questions keeps what the user was asked about the calls of the last
// answer, so that a question can outlive the process: which calls were started, and
// which answers are still to be used. It is built from the session's events.
package questions
