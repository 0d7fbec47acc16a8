package otlp_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// collector is a server that keeps what it gets, as JSON.
type collector struct {
	tracepb.UnimplementedTraceServiceServer
	url string

	mu      sync.Mutex
	got     map[string]string // by signal
	headers string
}

type (
	metricsService struct {
		metricspb.UnimplementedMetricsServiceServer
		*collector
	}
	logsService struct {
		logspb.UnimplementedLogsServiceServer
		*collector
	}
)

func (c *collector) keep(signal string, m proto.Message, header string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got[signal] += protojson.MarshalOptions{}.Format(m)
	c.headers += header
}

func (c *collector) of(signal string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[signal]
}

func key(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get("x-key"), ",")
}

func (c *collector) Export(ctx context.Context, r *tracepb.ExportTraceServiceRequest) (*tracepb.ExportTraceServiceResponse, error) {
	c.keep("traces", r, key(ctx))
	return &tracepb.ExportTraceServiceResponse{}, nil
}

func (s metricsService) Export(ctx context.Context, r *metricspb.ExportMetricsServiceRequest) (*metricspb.ExportMetricsServiceResponse, error) {
	s.keep("metrics", r, key(ctx))
	return &metricspb.ExportMetricsServiceResponse{}, nil
}

func (s logsService) Export(ctx context.Context, r *logspb.ExportLogsServiceRequest) (*logspb.ExportLogsServiceResponse, error) {
	s.keep("logs", r, key(ctx))
	return &logspb.ExportLogsServiceResponse{}, nil
}

func grpcCollector(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{got: map[string]string{}, url: "http://" + l.Addr().String()}
	s := grpc.NewServer()
	tracepb.RegisterTraceServiceServer(s, c)
	metricspb.RegisterMetricsServiceServer(s, metricsService{collector: c})
	logspb.RegisterLogsServiceServer(s, logsService{collector: c})
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		s.Stop()
		serving.Wait()
	})
	return c
}

func httpCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{got: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signal := strings.TrimPrefix(r.URL.Path, "/v1/")
		m := map[string]proto.Message{"traces": &tracepb.ExportTraceServiceRequest{}, "metrics": &metricspb.ExportMetricsServiceRequest{}, "logs": &logspb.ExportLogsServiceRequest{}}[signal]
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		data, err := io.ReadAll(body)
		if err != nil || m == nil || proto.Unmarshal(data, m) != nil {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		c.keep(signal, m, r.Header.Get("x-key"))
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}
