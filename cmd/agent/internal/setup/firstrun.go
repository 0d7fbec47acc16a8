package setup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// FirstRunAdvice returns what a user without a model can do: if err says that the
// provider is not configured, its server does not run, rejects the key or lacks the
// model.
// For other errors it returns "". The text ends with a newline. Looking for
// model servers on this machine takes up to a second.
func FirstRunAdvice(ctx context.Context, err error) string {
	var bad *config.Error
	if errors.As(err, &bad) && strings.HasPrefix(bad.Key, "providers.") {
		return firstSteps(FindLocalServers(ctx, KnownServers()))
	}
	var e *model.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.Code == model.CodeNotConfigured, e.Code == model.CodeNetwork && e.Permanent:
		return firstSteps(FindLocalServers(ctx, KnownServers()))
	case e.Code == model.CodeModelNotFound:
		return fmt.Sprintf("Run agent models --provider %s to list the models, and pass one with --model or save it with agent providers setup.\n", e.Provider)
	case e.Code == model.CodeAuthentication && e.Provider != "":
		return fmt.Sprintf("Run agent providers test %s to see where its key comes from, or agent providers setup %[1]s to replace it.\n", e.Provider)
	}
	return ""
}

// Advising is a provider that adds [FirstRunAdvice] to its errors, for sessions
// that show nothing but the error.
type Advising struct{ model.Provider }

// Stream implements [model.Provider].
func (a Advising) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range a.Provider.Stream(ctx, req) {
			if err != nil {
				if advice := FirstRunAdvice(ctx, err); advice != "" {
					e := *model.AsError(err)
					e.Message, e.Err = e.Error()+"\n"+advice, err
					e.Status, e.RequestID, e.Provider = 0, "", "" // already in the message
					err = &e
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func firstSteps(found []LocalServer) string {
	var b strings.Builder
	b.WriteString("What you can do:\n" +
		"  agent demo               run a demo with a scripted model: no key, no network\n" +
		"  agent providers setup    configure and test a provider\n")
	if len(found) == 0 {
		var names []string
		for _, k := range KnownServers() {
			names = append(names, k.Name)
		}
		fmt.Fprintf(&b, "No model server found on this machine at the default ports (%s).\n", strings.Join(names, ", "))
		return b.String()
	}
	b.WriteString("Model servers on this machine:\n")
	for _, f := range found {
		fmt.Fprintf(&b, "  %s\n", f)
		if len(f.models) > 0 {
			fmt.Fprintf(&b, "    agent exec --provider local --set providers.local.baseUrl=%s --model %s PROMPT\n", f.URL, ShellWord(f.models[0]))
		}
	}
	return b.String()
}

// ShellWord quotes a word for a shell, if needed.
func ShellWord(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@"
	if name != "" && strings.Trim(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// KnownServer is a model server with its default address.
type KnownServer struct{ Name, URL string }

// KnownServers returns the model servers that may run on this machine.
func KnownServers() []KnownServer {
	var servers []KnownServer
	for _, p := range config.Presets() {
		if p.Local {
			servers = append(servers, KnownServer{strings.TrimSuffix(p.About, " on this machine"), p.BaseURL})
		}
	}
	return servers
}

// LocalServer is a model server found on this machine.
type LocalServer struct {
	KnownServer
	models []string
}

// String returns the server's line in a list. The name is a guess by the port.
func (l LocalServer) String() string {
	text := fmt.Sprintf("%s (%s?): ", l.URL, l.Name)
	if len(l.models) == 0 {
		return text + "no models yet"
	}
	return text + display.Plural(len(l.models), "model") + ", such as " + l.models[0]
}

// probeTime is the time limit for local servers to answer.
const probeTime = time.Second

// FindLocalServers asks all candidates concurrently for their models and returns
// those that answer, in order. It sends no key, and nothing to other machines.
func FindLocalServers(ctx context.Context, candidates []KnownServer) []LocalServer {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dialer := &net.Dialer{Control: loopbackOnly}
	transport := &http.Transport{DialContext: dialer.DialContext} // without a proxy
	defer transport.CloseIdleConnections()
	answers := make([]*LocalServer, len(candidates))
	var asking sync.WaitGroup
	for i, c := range candidates {
		asking.Go(func() {
			p, err := langchain.Local(wire.Config{BaseURL: c.URL, Transport: transport})
			if err != nil {
				return
			}
			if models, err := model.ListModels(ctx, p); err == nil {
				answers[i] = &LocalServer{c, models}
			}
		})
	}
	asking.Wait()
	var found []LocalServer
	for _, a := range answers {
		if a != nil {
			found = append(found, *a)
		}
	}
	return found
}

// loopbackOnly refuses to connect to other machines, even if localhost resolves
// to one.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not an address of this machine", address)
	}
	return nil
}
