package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
	"github.com/seed-009c0928/agent/permissions"
)

// caller calls the tools as a session does that works in one tree.
type caller struct {
	env     *env.Local
	policy  *permissions.Policy
	session core.SessionInfo
	grants  []core.Grant // of the last call
}

func newCaller(dir string) (*caller, error) {
	where, err := env.NewLocal(env.LocalOptions{Dir: dir})
	if err != nil {
		return nil, err
	}
	info := where.Info()
	policy, err := permissions.New(permissions.Options{Home: info.Home, Workspace: info.Roots, Env: where})
	if err != nil {
		return nil, err
	}
	return &caller{env: where, policy: policy, session: core.SessionInfo{ID: "bench", Dir: info.Dir}}, nil
}

func (c *caller) close() error { return c.env.Close() }

// run calls the tool of a query and returns its text.
func (c *caller) run(ctx context.Context, q *query) (string, error) {
	tool := tools.Glob()
	if q.grep() {
		tool = tools.Grep()
	}
	args, err := json.Marshal(q.args)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	call := &core.Call{ID: "1", Name: tool.Definition().Name, Args: args, Env: c.env, Output: &out, Session: c.session}
	accesses, err := tool.Access(ctx, call)
	if err != nil {
		return "", err
	}
	for i, a := range accesses {
		to, err := c.env.Resolve(ctx, a.Resource)
		if err != nil {
			return "", err
		}
		accesses[i].Resource, accesses[i].Inside = to.Path, to.Inside
	}
	decision := c.policy.Decide(ctx, core.PermissionRequest{Session: c.session, Call: call.ID, Tool: call.Name, Args: args, Accesses: accesses})
	if decision.Verdict != core.Allow {
		return "", fmt.Errorf("the policy does not allow it: %s", decision.Reason)
	}
	c.grants = decision.Grants
	call.Env = core.Restrict(c.env, c.grants, nil)
	result, err := tool.Run(ctx, call)
	if err != nil {
		return "", err
	}
	text := out.String() + model.Parts(result.Content).Text()
	if result.Code != "" {
		return "", fmt.Errorf("%s: %s", result.Code, text)
	}
	return text, nil
}

// otherwise reports whether a line of grep is of a file that its rival searches
// otherwise: one that the last call was not granted, such as a key, or that is in
// such a directory, or is not in UTF-8.
func (c *caller) otherwise(line string) bool {
	file, _, _ := strings.Cut(line, ":")
	if data, err := os.ReadFile(filepath.Join(c.session.Dir, file)); err == nil && !utf8.Valid(data) {
		return true
	}
	for path := filepath.Join(c.session.Dir, file); path != c.session.Dir; path = filepath.Dir(path) {
		if !slices.ContainsFunc(c.grants, func(g core.Grant) bool {
			return g.Scope == core.ScopeRead && (g.Except == nil || !g.Except(path))
		}) {
			return true
		}
	}
	return false
}

// found returns what a search found, sorted: files, with the numbers of lines or
// their count.
func (q *query) found(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimRight(line, "\r\n"), "./")
		if line == "" || line == "--" || strings.HasPrefix(line, "No ") || strings.HasPrefix(line, "(") && strings.HasSuffix(line, ")") {
			continue
		}
		if q.args.OutputMode == "content" {
			parts := strings.SplitN(line, ":", 3)
			if q.args.Context > 0 && len(parts) < 3 {
				continue // context
			}
			line = strings.Join(parts[:min(2, len(parts))], ":")
		}
		list = append(list, line)
	}
	slices.Sort(list)
	return list
}
