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

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/langchain"
	"github.com/seed-009c0928/agent/core/model/wire"
)

// FirstRunAdvice returns what somebody can do who has no model yet: whose provider is
// not configured, or whose model server does not run. It looks for servers on
// this machine, for 300 ms at most, and for errors of these kinds only. For
// other errors the text is empty; it ends with a newline.
func FirstRunAdvice(ctx context.Context, err error) string {
	var bad *config.Error
	if errors.As(err, &bad) && strings.HasPrefix(bad.Key, "providers.") {
		return firstSteps(FindLocalServers(ctx, KnownServers))
	}
	var e *model.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.Code == model.CodeNotConfigured, e.Code == model.CodeNetwork && e.Permanent:
		return firstSteps(FindLocalServers(ctx, KnownServers))
	case e.Code == model.CodeModelNotFound:
		return fmt.Sprintf("agent models --provider %s lists the models there are; --model names one, agent providers setup keeps it.\n", e.Provider)
	}
	return ""
}

// Advising is a provider whose errors bring what can be done about them, for a
// session that has no other place to say it.
type Advising struct{ model.Provider }

// Stream implements [model.Provider].
func (a Advising) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range a.Provider.Stream(ctx, req) {
			if err != nil {
				if advice := FirstRunAdvice(ctx, err); advice != "" {
					e := *model.AsError(err)
					e.Message, e.Err = e.Error()+"\n"+advice, err
					e.Status, e.RequestID, e.Provider = 0, "", "" // the message names them
					err = &e
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func firstSteps(found []localServer) string {
	var b strings.Builder
	b.WriteString("What you can do:\n" +
		"  agent demo               watch it work with a scripted model: no key, no network\n" +
		"  agent providers setup    choose a provider, enter a key or an address, and test it\n")
	if len(found) == 0 {
		names := make([]string, len(KnownServers))
		for i, k := range KnownServers {
			names[i] = k.Name
		}
		fmt.Fprintf(&b, "No model server answers on this machine at the usual ports (%s).\n", strings.Join(names, ", "))
		return b.String()
	}
	b.WriteString("Model servers that answer on this machine:\n")
	for _, f := range found {
		fmt.Fprintf(&b, "  %s\n", f)
		if len(f.models) > 0 {
			fmt.Fprintf(&b, "    agent exec --provider local --set providers.local.baseUrl=%s --model %s PROMPT\n", f.URL, ShellWord(f.models[0]))
		}
	}
	return b.String()
}

// ShellWord quotes a name for a command line, if it needs that.
func ShellWord(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@"
	if name != "" && strings.Trim(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// KnownServer is where a model server listens unless it is told otherwise.
type KnownServer struct{ Name, URL string }

var KnownServers = []KnownServer{
	{"Ollama", "http://localhost:11434/v1"},
	{"LM Studio", "http://localhost:1234/v1"},
	{"vLLM", "http://localhost:8000/v1"},
	{"llama.cpp", "http://localhost:8080/v1"},
	{"Docker Model Runner", "http://localhost:12434/engines/v1"},
}

// localServer is a model server that answered.
type localServer struct {
	KnownServer
	models []string
}

// String is the server's line of a list. Its name is a guess by the port.
func (l localServer) String() string {
	text := fmt.Sprintf("%s (%s?): ", l.URL, l.Name)
	if len(l.models) == 0 {
		return text + "no models yet"
	}
	return text + cmdutil.Plural(len(l.models), "model") + ", such as " + l.models[0]
}

// probeTime is how long a server of this machine has to answer.
const probeTime = 300 * time.Millisecond

// FindLocalServers asks all candidates at once for their models and returns
// those that list them, in the order of the candidates. It sends no key, and
// nothing to other machines.
func FindLocalServers(ctx context.Context, candidates []KnownServer) []localServer {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dialer := &net.Dialer{Control: loopbackOnly}
	transport := &http.Transport{DialContext: dialer.DialContext} // and no proxy
	defer transport.CloseIdleConnections()
	answers := make([]*localServer, len(candidates))
	var asking sync.WaitGroup
	for i, c := range candidates {
		asking.Go(func() {
			p, err := langchain.Local(wire.Config{BaseURL: c.URL, Transport: transport})
			if err != nil {
				return
			}
			if models, err := model.ListModels(ctx, p); err == nil {
				answers[i] = &localServer{c, models}
			}
		})
	}
	asking.Wait()
	var found []localServer
	for _, a := range answers {
		if a != nil {
			found = append(found, *a)
		}
	}
	return found
}

// loopbackOnly refuses to connect to another machine, whatever the name
// localhost stands for here.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not an address of this machine", address)
	}
	return nil
}
