package otlp

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
)

// target is where to send to.
type target struct {
	endpoint string // shown; the exporters read their variables themselves
	protocol string // grpc, http/protobuf
	fromEnv  bool   // a variable names the endpoint
	headers  map[string]string
}

const (
	protocolGRPC = "grpc"
	protocolHTTP = "http/protobuf"
)

func findTarget(opts Options) (target, error) {
	t := target{protocol: cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), opts.Protocol, protocolGRPC), headers: opts.Headers}
	switch t.protocol {
	case "http":
		t.protocol = protocolHTTP
	case protocolGRPC, protocolHTTP:
	default:
		return t, fmt.Errorf("telemetry: the protocol %q is not supported: use grpc or http/protobuf", t.protocol)
	}
	for _, signal := range []string{"", "TRACES_", "METRICS_", "LOGS_"} {
		if at := os.Getenv("OTEL_EXPORTER_OTLP_" + signal + "ENDPOINT"); at != "" {
			t.endpoint, t.fromEnv, t.headers = withoutUser(at), true, nil // whose own variables have the headers
			return t, nil
		}
	}
	t.endpoint = cmp.Or(strings.TrimSpace(opts.Endpoint), map[string]string{protocolGRPC: "http://localhost:4317", protocolHTTP: "http://localhost:4318"}[t.protocol])
	u, err := url.Parse(t.endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return t, fmt.Errorf("telemetry: the endpoint %q is not a URL such as http://localhost:4317", withoutUser(t.endpoint))
	}
	t.endpoint = strings.TrimRight(t.endpoint, "/")
	return t, nil
}

// withoutUser removes a password from a URL.
func withoutUser(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "[not a URL]"
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// sampler decides which traces are sent: all of a trace or nothing.
type sampler struct {
	bound  uint64 // of the last 8 bytes of an ID, as in OpenTelemetry's own sampler
	parent bool   // the program whose span is above decides

	mu      sync.Mutex
	decided map[string]bool // by the programs above, by trace
}

// maxDecided limits the memory for decisions of programs above.
const maxDecided = 10_000

// newSampler follows OTEL_TRACES_SAMPLER if it is set, else the ratio.
func newSampler(ratio *float64) (s *sampler, err error) {
	share, name := 1.0, os.Getenv("OTEL_TRACES_SAMPLER")
	if ratio != nil {
		share = *ratio
	}
	kind, parent := strings.CutPrefix(name, "parentbased_")
	s = &sampler{parent: parent || name == "", decided: map[string]bool{}}
	switch kind {
	case "":
	case "always_on":
		share = 1
	case "always_off":
		share = 0
	case "traceidratio":
		if share, err = strconv.ParseFloat(cmp.Or(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), "1"), 64); err != nil {
			return s, fmt.Errorf("telemetry: OTEL_TRACES_SAMPLER_ARG is not a number: %w", err)
		}
	default:
		return s, fmt.Errorf("telemetry: the sampler %q of OTEL_TRACES_SAMPLER is not supported: use always_on, always_off or traceidratio, or one of them after parentbased_", name)
	}
	if share < 0 || share > 1 {
		return s, fmt.Errorf("telemetry: the sample ratio %v is not between 0 and 1", share)
	}
	s.bound = uint64(share * (1 << 63))
	return s, nil
}

func (s *sampler) sampled(trace string) bool {
	s.mu.Lock()
	decision, known := s.decided[trace]
	s.mu.Unlock()
	if known {
		return decision
	}
	id, err := hex.DecodeString(trace)
	return err == nil && len(id) == 16 && binary.BigEndian.Uint64(id[8:])>>1 < s.bound
}

// follow takes the decision of a program whose span is above.
func (s *sampler) follow(trace string, sampled bool) {
	if !s.parent {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.decided) >= maxDecided {
		clear(s.decided)
	}
	s.decided[trace] = sampled
}
