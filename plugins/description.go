package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Bounds of a plugin's description.
const (
	maxDescription = 4 << 20 // bytes in total
	maxTools       = 200
	maxToolText    = 16 << 10 // bytes of a tool's description
	maxSchema      = 256 << 10
	maxTimeout     = time.Hour
)

var toolName = lazy.Regexp(`^[A-Za-z0-9_-]{1,64}$`)

// accessScopes are the scopes that a plugin's tools may declare, in addition to
// the plugin scope. The programs that a plugin starts are bound by its manifest.
var accessScopes = []core.Scope{core.ScopeRead, core.ScopeWrite, core.ScopeDelete, core.ScopeNetwork}

// checkDescription validates a plugin's description.
func checkDescription(s *Spec, d *toolproto.Description) error {
	if d.Name != s.Name {
		return fmt.Errorf("its name is %q, but %s has %q: correct one of them", cleanLine(d.Name), SpecFile, s.Name)
	}
	if d.Version != s.Version && s.Version != anyVersion {
		return fmt.Errorf("its version is %q, but %s has %q: correct one of them", cleanLine(d.Version), SpecFile, s.Version)
	}
	if len(d.Tools) > maxTools {
		return fmt.Errorf("it has %d tools: the maximum is %d", len(d.Tools), maxTools)
	}
	if d.Dynamic && !s.Dynamic {
		return fmt.Errorf(`its tools may change at any time, but %s does not set "dynamic": true`, SpecFile)
	}
	if m := d.Manifest; m != nil {
		asked := Manifest{Read: m.Read, Write: m.Write, Network: m.Network, Exec: m.Exec, Env: m.Env, Secrets: m.Secrets}
		if more := asked.beyond(s.Manifest); len(more) > 0 {
			return fmt.Errorf("it needs more than the manifest in its %s grants: %s", SpecFile, cleanLine(strings.Join(more, ", ")))
		}
	}
	if len(d.Contexts) > 0 && s.Context == nil {
		return fmt.Errorf(`it adds context to inputs, but %s grants no budget, such as "context": {"maxTokens": 500}`, SpecFile)
	}
	seen := map[string]bool{}
	for _, t := range d.Tools {
		if seen[t.Name] {
			return fmt.Errorf("duplicate tool %q", cleanLine(t.Name))
		}
		seen[t.Name] = true
		if t.AsksModel && s.Manifest.Model.MaxTokens == 0 {
			return fmt.Errorf(`tool %q asks the model, but the manifest in %s grants none, such as "model": {"maxTokens": 1000}`, cleanLine(t.Name), SpecFile)
		}
		if err := checkTool(t); err != nil {
			return fmt.Errorf("tool %q: %w", cleanLine(t.Name), err)
		}
	}
	return cmp.Or(checkNames(d), checkHooks(s, d))
}

func checkTool(t *toolproto.Tool) error {
	switch {
	case !toolName().MatchString(t.Name):
		return errors.New("invalid name: use at most 64 letters, digits, _ and -")
	case strings.TrimSpace(t.Description) == "" || len(t.Description) > maxToolText:
		return fmt.Errorf("expected a description of at most %d bytes", maxToolText)
	case len(t.InputSchema) > maxSchema:
		return fmt.Errorf("its schema has %d bytes: the maximum is %d", len(t.InputSchema), maxSchema)
	case t.TimeoutMs < 0 || t.TimeoutMs > maxTimeout.Milliseconds():
		return fmt.Errorf("its timeout is %d ms: the maximum is %s", t.TimeoutMs, maxTimeout)
	}
	var root struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(t.InputSchema, &root); err != nil || root.Type != "object" {
		return errors.New(`its schema must be a JSON object with "type": "object"`)
	}
	for _, a := range t.Access {
		switch {
		case !slices.Contains(accessScopes, core.Scope(a.Scope)):
			return fmt.Errorf("access to %q: expected fs-read, fs-write, fs-delete or network", cleanLine(a.Scope))
		case (a.Arg == "") == (a.Resource == ""):
			return fmt.Errorf("access %s: expected either arg or resource", a.Scope)
		case a.Arg != "" && !strings.HasPrefix(a.Arg, "/"):
			return fmt.Errorf("access %s: arg %q is not a JSON pointer such as /path", a.Scope, cleanLine(a.Arg))
		}
	}
	return nil
}

// checkNames checks the names of commands and context sources.
func checkNames(d *toolproto.Description) error {
	seen := map[string]bool{}
	for _, c := range d.Commands {
		if !toolName().MatchString(c.Name) || seen[c.Name] {
			return fmt.Errorf("command %q: expected a unique name of letters, digits, _ and -", cleanLine(c.Name))
		}
		seen[c.Name] = true
	}
	for _, c := range d.Contexts {
		if !toolName().MatchString(c.Name) {
			return fmt.Errorf("context source %q: expected a name of letters, digits, _ and -", cleanLine(c.Name))
		}
	}
	return nil
}

// differences describes how a description changed, for display.
func differences(before, after *toolproto.Description) []string {
	var list []string
	old := map[string]*toolproto.Tool{}
	for _, t := range before.GetTools() {
		old[t.Name] = t
	}
	for _, t := range after.GetTools() {
		was, ok := old[t.Name]
		delete(old, t.Name)
		switch {
		case !ok:
			list = append(list, fmt.Sprintf("tool %q is new", t.Name))
		case string(was.InputSchema) != string(t.InputSchema):
			list = append(list, fmt.Sprintf("tool %q has another schema", t.Name))
		case was.Description != t.Description:
			list = append(list, fmt.Sprintf("tool %q has another description", t.Name))
		case !proto.Equal(was, t):
			list = append(list, fmt.Sprintf("tool %q has other properties", t.Name))
		}
	}
	for name := range old {
		list = append(list, fmt.Sprintf("tool %q is gone", name))
	}
	slices.Sort(list)
	if len(list) == 0 && !proto.Equal(before, after) {
		list = append(list, "other properties changed")
	}
	return list
}

// cache stores descriptions by the hash of the plugin's files. It is not
// trusted: its entries are checked like a plugin's answer, and a process must
// return the same description before it gets a call.
type cache struct{ dir string } // "" disables it

func (c cache) file(hash string) string {
	return filepath.Join(c.dir, fmt.Sprintf("%s.v%d", hash, toolproto.Version))
}

// load returns nil if there is no valid entry.
func (c cache) load(s *Spec, hash string) *toolproto.Description {
	if c.dir == "" || hash == "" {
		return nil
	}
	info, err := os.Stat(c.file(hash))
	if err != nil || info.Size() > maxDescription {
		return nil
	}
	data, err := os.ReadFile(c.file(hash))
	if err != nil {
		return nil
	}
	d := &toolproto.Description{}
	if proto.Unmarshal(data, d) != nil || checkDescription(s, d) != nil {
		return nil
	}
	return d
}

func (c cache) save(hash string, d *toolproto.Description) error {
	if c.dir == "" || hash == "" {
		return nil
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(c.file(hash), data, 0o600)
}

// forget removes the entry for a hash.
func (c cache) forget(hash string) {
	if c.dir == "" || hash == "" {
		return
	}
	if err := os.Remove(c.file(hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // it is read as any other the next time
	}
}
