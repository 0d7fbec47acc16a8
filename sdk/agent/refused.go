package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/sensitive"
	"github.com/seed-009c0928/agent/mcp"
)

// maxOffers limits the questions about what a server was refused, per server.
const maxOffers = 8

// nowhere is the only host that a server without granted ones can be connected to: so
// it has a proxy, which says what it refused.
const nowhere = "nothing.invalid"

// refusals are what the sandboxes of MCP servers refused.
type refusals struct {
	mu    sync.Mutex
	hosts map[string][]string        // by server, since they were taken
	asked map[string]map[string]bool // by server: what the user was asked about
}

func (r *refusals) host(server, at string) {
	if name, port, err := net.SplitHostPort(at); err == nil && (port == "443" || port == "80") {
		at = name
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts == nil {
		r.hosts = map[string][]string{}
	}
	if list := r.hosts[server]; len(list) < maxOffers && !slices.Contains(list, at) {
		r.hosts[server] = append(list, at)
	}
}

func (r *refusals) take(server string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.hosts[server]
	delete(r.hosts, server)
	return list
}

// first reports whether the user is to be asked about an access, which is once.
func (r *refusals) first(server string, more core.Access) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]map[string]bool{}
	}
	if r.asked[server] == nil {
		r.asked[server] = map[string]bool{}
	}
	key := string(more.Scope) + " " + more.Resource
	if r.asked[server][key] || len(r.asked[server]) >= maxOffers {
		return false
	}
	r.asked[server][key] = true
	return true
}

// widens returns the settings of a server that can be allowed more; nil if it cannot.
func (a *Agent) widens(server string) *mcp.Configured {
	i := slices.IndexFunc(a.opts.MCP.Servers, func(c mcp.Configured) bool { return c.Name == server })
	if i < 0 || a.opts.MCP.Servers[i].Widen == nil {
		return nil
	}
	return &a.opts.MCP.Servers[i]
}

// offerMore asks the user whether a server may do what its sandbox refused during a
// call, and adds to the result what came of it.
func (a *Agent) offerMore(ctx context.Context, server string, call *core.Call, res *core.Result) {
	c := a.widens(server)
	if c == nil {
		return
	}
	for _, more := range a.refused(ctx, server, res) {
		if !a.refusals.first(server, more) {
			continue
		}
		note := a.offer(ctx, c, call, more)
		res.Content = append(slices.Clone(res.Content), model.Text{Text: "\n[sandbox: " + note + "]"})
	}
}

func (a *Agent) offer(ctx context.Context, c *mcp.Configured, call *core.Call, more core.Access) string {
	what := map[core.Scope]string{core.ScopeNetwork: "connect to ", core.ScopeRead: "read ", core.ScopeWrite: "write "}[more.Scope] + more.Resource
	answer, err := call.Ask(ctx, core.Question{
		Kind: core.QuestionConfirm, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
		Title:  fmt.Sprintf("The sandbox of the %s did not let its MCP server %s. Allow it from now on?", c.Source, what),
		Detail: c.Hint,
	})
	switch {
	case errors.Is(err, core.ErrNonInteractive):
		return fmt.Sprintf("MCP server %s may not %s: %s", c.Name, what, c.Hint)
	case err != nil || answer.Choice != core.ChoiceYes:
		return fmt.Sprintf("the user does not let MCP server %s %s", c.Name, what)
	}
	confine, err := c.Widen(ctx, more)
	if err != nil {
		return fmt.Sprintf("MCP server %s could not be allowed to %s: %v", c.Name, what, err)
	}
	a.mcp.Confine(c.Name, confine)
	return fmt.Sprintf("the user now lets MCP server %s %s: call the tool again", c.Name, what)
}

// refused returns what the sandbox of a server refused, as far as its proxy and the
// text of a failed call say so. Files that are sensitive are left out.
func (a *Agent) refused(ctx context.Context, server string, res *core.Result) (list []core.Access) {
	for _, host := range a.refusals.take(server) {
		list = append(list, core.Access{Scope: core.ScopeNetwork, Resource: host})
	}
	process := a.confined.get(server)
	if res.Code == "" || process.profile == nil {
		return list
	}
	level, err := a.commands.Sandbox().Choose(ctx, process.profile.Mode)
	if err != nil {
		return list
	}
	for _, cause := range process.profile.Explain(level, a.env.Info().Dir, model.Parts(res.Content).Text()) {
		more := core.Access{Resource: cause.Path}
		switch cause.Kind {
		case sandbox.NoNetwork:
			more.Scope = core.ScopeNetwork
		case sandbox.Hidden:
			more.Scope, more.Resource = core.ScopeRead, existing(cause.Path)
		case sandbox.Outside:
			more.Scope, more.Resource = core.ScopeWrite, existing(cause.Path)
		}
		if more.Scope != "" && more.Resource != "" && !slices.ContainsFunc(list, func(o core.Access) bool { return o.Scope == more.Scope && o.Resource == more.Resource }) {
			list = append(list, more)
		}
	}
	return list
}

// existing returns a path, or its directory if there is no such file; nothing if that
// is too much or too sensitive to offer.
func existing(path string) string {
	if _, err := os.Lstat(path); err != nil {
		path = filepath.Dir(path)
		if _, err := os.Lstat(path); err != nil {
			return ""
		}
	}
	path = sandbox.Resolve(path)
	home, err := os.UserHomeDir()
	_, secret := sensitive.Match(path, 0)
	if secret || err == nil && sandbox.Below(path, sandbox.Resolve(home)) || strings.Count(path, string(filepath.Separator)) < 2 {
		return ""
	}
	return path
}
