package demo

import (
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/plugins"
	"github.com/seed-009c0928/agent/plugins/web"
)

//go:embed files/guide.html
var demoGuide []byte

// demoSite is a web server on this machine with the page that the demo fetches.
type demoSite struct {
	server *http.Server
	host   string
	done   chan error
}

// serveGuide serves the page on loopback.
func serveGuide() (*demoSite, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving a page for the demo: %w", err)
	}
	s := &demoSite{
		server: &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(demoGuide)
		})},
		host: l.Addr().String(), done: make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

// url returns the address of the page.
func (s *demoSite) url() string { return "http://" + s.host + "/slugs" }

func (s *demoSite) close() {
	_ = s.server.Close()
	<-s.done
}

// plugins are the bundled ones. The plugin web may
// fetch from this machine, which it refuses otherwise.
func (s *demoSite) plugins(home, command string) *plugins.Options {
	return &plugins.Options{
		Home: home, Bundled: setup.BundledPlugins().All(), BundledCommand: []string{command, setup.InternalPlugin},
		UserHome: cmdutil.UserHome(), Sandbox: sandbox.ModeAuto, Environ: append(os.Environ(), web.AllowPrivateEnv+"="+s.host),
	}
}
