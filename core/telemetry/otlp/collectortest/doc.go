// Package collectortest sends telemetry to a real OpenTelemetry Collector, built from
// the collector's own modules. It is a separate module, so that nothing else depends on
// them.
package collectortest
