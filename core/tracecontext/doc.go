// Package tracecontext places work in a trace, as W3C Trace Context describes it,
// and hands that place on to other processes. The IDs follow from a session and the
// number of an event, so that a session log gives the same trace as the running
// session.
package tracecontext
