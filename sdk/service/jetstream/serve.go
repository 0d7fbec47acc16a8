package jetstream

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// ServeOptions are the settings of a server in this process.
type ServeOptions struct {
	Dir  string // of its files; only one server may use it
	Host string // for clients; empty = no port, only connections of this process
	Port int

	// Cluster is the name of the cluster that the server belongs to, if any, Name is its
	// own in it. It listens for the others at ClusterHost and ClusterPort; Routes are the
	// addresses of all, as nats://host:port.
	Cluster, Name string
	ClusterHost   string // empty = 127.0.0.1
	ClusterPort   int
	Routes        []string
}

// Server is a NATS server in this process.
type Server struct{ server *server.Server }

// readyWithin is the time that a server has to start. It reads its index, or all
// records if that is missing.
const readyWithin = time.Minute

// maxPayload is the size of a message, in bytes. Longer records are objects.
const maxPayload = 8 << 20

// Serve starts a server that syncs every record before it acknowledges it. The caller
// must close it.
func Serve(o ServeOptions) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("jetstream: Dir is required: the directory of the server's files")
	}
	opts := &server.Options{
		ServerName: o.Name, Host: o.Host, Port: o.Port, DontListen: o.Host == "",
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, MaxPayload: maxPayload, NoSigs: true, NoLog: true,
		JetStreamLimits: server.JSLimitOpts{DefaultMaxConsumers: -1}, // one for each session that is read or followed
	}
	if o.Cluster != "" {
		opts.Cluster = server.ClusterOpts{Name: o.Cluster, Host: cmp.Or(o.ClusterHost, "127.0.0.1"), Port: o.ClusterPort}
		opts.RoutesStr = strings.Join(o.Routes, ",")
		opts.Routes = server.RoutesFromStr(opts.RoutesStr)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("jetstream: start a server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(readyWithin) {
		s.Shutdown()
		return nil, fmt.Errorf("jetstream: the server is not ready within %v: is %s writable, and are the ports free?", readyWithin, o.Dir)
	}
	return &Server{s}, nil
}

// Connect returns a connection to the server within this process.
func (s *Server) Connect() (*nats.Conn, error) {
	return nats.Connect("", nats.InProcessServer(s.server), nats.MaxReconnects(-1))
}

// ConnectOptions say how to reach NATS servers. URL is required.
type ConnectOptions struct {
	URL   string // nats://host:port or tls://host:port; of several servers, with commas between them
	Creds string // file of credentials
	CA    string // file with certificates; whom they signed is trusted, and the connection uses TLS
}

// Connect connects to servers. A lost connection is made again.
func Connect(o ConnectOptions) (*nats.Conn, error) {
	opts := []nats.Option{nats.MaxReconnects(-1), nats.Name("agent")}
	if o.Creds != "" {
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	nc, err := nats.Connect(o.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", Redact(o.URL), err)
	}
	return nc, nil
}

// Redact returns the addresses of NATS servers without passwords and tokens.
func Redact(servers string) string {
	list := strings.Split(servers, ",")
	for i, one := range list {
		at := strings.LastIndex(one, "@")
		if at < 0 {
			continue
		}
		scheme, _, named := strings.Cut(one[:at], "://")
		if list[i] = one[at+1:]; named {
			list[i] = scheme + "://" + list[i]
		}
	}
	return strings.Join(list, ",")
}

// URL is the address for clients, if the server has a port.
func (s *Server) URL() string { return s.server.ClientURL() }

// Close ends the server, and waits until it has.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
