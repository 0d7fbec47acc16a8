// Package telemetry makes spans from the events of sessions: what an input, a model
// call, a tool call or a question took, and how they are nested. The same events give
// the same spans, with the same IDs, whether they come from a running session or from
// its log. Names and attributes are those of the semantic conventions for generative AI
// of OpenTelemetry, version [Version]; what these have no name for begins with "agent.".
//
// The package depends on nothing else; core/telemetry/otlp exports what it returns.
package telemetry
