// Package acp is version 1 of the Agent Client Protocol, with which editors drive
// sessions: a driver over sdk/host. Each session has its own host, so that one
// that takes long to open does not hold up the others. What a session is made of, such
// as settings and trust, comes in as [Options].Open.
//
// A later version of the protocol gets its own package beside this one, chosen by
// the version that the client asks for.
package acp
