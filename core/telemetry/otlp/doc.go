// Package otlp sends what sessions do to an OpenTelemetry collector: spans, metrics
// and, if wanted, the events as logs. Its only input is the events, see
// [Exporter.Event]; docs/telemetry.md lists what it sends.
//
// Nothing waits for the collector: what does not fit into the queue is dropped and
// counted, and a collector that cannot be reached is one warning.
package otlp
