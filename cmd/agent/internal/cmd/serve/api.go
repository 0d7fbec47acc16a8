package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/cmd/agent/internal/remote"
	"github.com/seed-009c0928/agent/sdk/service"
	"github.com/seed-009c0928/agent/sdk/service/api"
)

const (
	headerTime = 10 * time.Second // for the head of a request
	stopTime   = 10 * time.Second // for requests that are being answered at the end
)

// apiOptions are those of the HTTP API.
type apiOptions struct {
	listen    string
	hosts     []string
	cert, key string
}

func (o *apiOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", defaultListen, "listen at `ADDRESS`, a host or an IP address, and a port; 0 is a free one")
	cmdutil.RepeatVar(f, &o.hosts, "host", "be reached as `NAME`, such as that of a proxy; requests for other hosts are refused")
	f.StringVar(&o.cert, "tls-cert", "", "use TLS, with the certificates in `FILE`")
	f.StringVar(&o.key, "tls-key", "", "with --tls-cert: the key in `FILE`")
}

// open listens.
func (o *apiOptions) open() (net.Listener, error) {
	if (o.cert == "") != (o.key == "") {
		return nil, cmdutil.Usagef("--tls-cert and --tls-key: give both or neither")
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return nil, cmdutil.Usagef("--listen %s: use an address with a port, such as %s", o.listen, defaultListen)
	}
	var secure *tls.Config
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	l, err := net.Listen("tcp", o.listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use, perhaps by another agent serve: end that one, or use --listen with another port", o.listen)
	case err != nil:
		return nil, fmt.Errorf("--listen: %w", err)
	case secure != nil:
		l = tls.NewListener(l, secure)
	}
	return l, nil
}

// url is the address of a listener for clients on this machine.
func (o *apiOptions) url(l net.Listener) string {
	scheme := "http"
	if o.cert != "" {
		scheme = "https"
	}
	host := l.Addr().String()
	if addr, ok := l.Addr().(*net.TCPAddr); ok && addr.IP.IsUnspecified() {
		host = net.JoinHostPort("127.0.0.1", strconv.Itoa(addr.Port))
	}
	return scheme + "://" + host
}

// names are the hosts that the API is reached by.
func (o *apiOptions) names() []string {
	host, _, _ := net.SplitHostPort(o.listen)
	return append([]string{host}, o.hosts...)
}

// serve runs sessions and the API until ctx is done.
func (o *options) serve(ctx context.Context) error {
	listener, err := o.api.open()
	if err != nil {
		return err
	}
	defer listener.Close()
	log, err := o.ready(ctx)
	if err != nil {
		return err
	}
	held, err := lock(o.work.data)
	if err != nil {
		return err
	}
	defer held.Close()
	m, err := o.open(ctx, log)
	if err != nil {
		return err
	}
	defer m.close()
	list := tokenList{o.work.data}
	fresh, err := list.first(ctx) // when nothing else can fail: it is shown only once
	if err != nil {
		return err
	}
	handler, done, err := o.handler(m, list, log)
	if err != nil {
		return err
	}
	defer done()
	o.greet(listener, fresh)
	return serveHTTP(ctx, listener, handler, m.worker, log)
}

// handler returns the API and the page. Done closes the audit log.
func (o *options) handler(m *machine, list tokenList, log *slog.Logger) (h http.Handler, done func() error, err error) {
	audit, err := os.OpenFile(filepath.Join(o.work.data, "audit.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := list.tokens()
	if err == nil {
		var a *api.API
		a, err = api.New(api.Options{
			Engine: m.db, Quotas: m.quotas, Tokens: tokens, Hosts: o.api.names(), Check: o.checkSpec, Audit: audit, Workspaces: m.root, PrivateWebhooks: o.work.nearHooks, Logger: log,
		})
		h = &reloading{list: list, log: log, api: a, Handler: page.NewService(page.Service{Engine: m.db, API: a, Price: o.price})}
	}
	if err != nil {
		return nil, nil, errors.Join(err, audit.Close())
	}
	return h, audit.Close, nil
}

// greet says where the service is, and at the first start how to use it.
func (o *options) greet(l net.Listener, fresh string) {
	url := o.api.url(l)
	fmt.Fprintf(o.Err, "agent: serving at %s\n", url)
	if addr, ok := l.Addr().(*net.TCPAddr); ok && !addr.IP.IsLoopback() && o.api.cert == "" {
		fmt.Fprintf(o.Err, "agent: other machines can connect, and tokens are sent in the clear: use --tls-cert, or a proxy with TLS\n")
	}
	if fresh == "" {
		return
	}
	fmt.Fprintf(o.Err, "agent: your token is in %s, where agent exec --on %s finds it on this machine; it is shown only now:\n", remote.TokenFile(o.work.data), url)
	fmt.Fprintln(o.Out, fresh)
}

// serveHTTP answers requests and runs sessions until ctx is done or the listener fails.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, w *service.Worker, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, BaseContext: func(net.Listener) context.Context { return ctx }, // ends the streams of events
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	running.Go(func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	stop()
	running.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
