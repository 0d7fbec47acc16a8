package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/service/client"
	"github.com/seed-009c0928/agent/sdk/service/workspace"
)

// Spec says how a session of a service is to be run. What it leaves out is as the
// settings of the service say.
type Spec struct {
	Model     string  `json:"model,omitempty"` // [PROVIDER/]MODEL
	Profile   string  `json:"profile,omitempty"`
	Effort    string  `json:"effort,omitempty"`
	Mode      string  `json:"permissionMode,omitempty"` // at most the one that the service allows
	MaxRounds int     `json:"maxRounds,omitempty"`      // tool rounds per input
	MaxTurns  int     `json:"maxTurns,omitempty"`
	MaxTokens int     `json:"maxSessionTokens,omitempty"`
	MaxCost   float64 `json:"maxCostUsd,omitempty"`
}

// ParseSpec reads a spec; nothing is the zero value. Unknown members are refused.
func ParseSpec(data json.RawMessage) (s Spec, err error) {
	if len(data) == 0 || string(data) == "null" {
		return s, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&s); err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text after the object")
		}
	}
	if err != nil {
		return s, fmt.Errorf("spec: %w", err)
	}
	if s.Mode != "" && !slices.Contains(permissions.Modes(), permissions.Mode(s.Mode)) {
		return s, fmt.Errorf("spec: permissionMode is %q: use one of %v", s.Mode, permissions.Modes())
	}
	return s, nil
}

// unsuited are flags of sessions that a service does not take, with what to do instead.
var unsuited = map[string]string{
	"provider": "use --model PROVIDER/MODEL", "continue": "use --resume ID", "dangerously-skip-permissions": "use --permission-mode bypass, if the service allows it",
}

// suited are flags that do not say how the session is run.
var suited = [...]string{Flag, "cd", "resume", "on-ask", "reason", "print", "output-format", "output-last-message", "verbose", "debug"}

// SessionOf returns the session that flags ask for; without --cd, it works in a directory
// of the service for it alone. A flag that a service does not take is an error.
func SessionOf(flags map[string]string) (n client.NewSession, err error) {
	s, err := specOf(flags)
	if err != nil {
		return n, err
	}
	dir := cmp.Or(flags["cd"], workspace.New)
	if dir != workspace.New && !filepath.IsAbs(dir) {
		return n, cmdutil.Usagef("--cd %s: with --%s use the absolute path of a directory on the machine of the service", dir, Flag)
	}
	n.Workspace.Directory = dir
	n.Spec, err = json.Marshal(s)
	return n, err
}

// Kept reports whether flags ask for nothing that a session has from its creation.
func Kept(flags map[string]string) bool {
	s, err := specOf(flags)
	return err == nil && s == Spec{} && flags["cd"] == ""
}

func specOf(flags map[string]string) (s Spec, err error) {
	number := func(text string) (n int) {
		n, err = strconv.Atoi(text)
		return n
	}
	for _, name := range cmdutil.SortedKeys(flags) {
		switch text := flags[name]; name {
		case "model":
			s.Model = text
		case "profile":
			s.Profile = text
		case "effort":
			s.Effort = text
		case "permission-mode":
			s.Mode = text
		case "max-rounds":
			s.MaxRounds = number(text)
		case "max-turns":
			s.MaxTurns = number(text)
		case "max-session-tokens":
			s.MaxTokens = number(text)
		case "max-cost":
			s.MaxCost, err = strconv.ParseFloat(text, 64)
		default:
			if !slices.Contains(suited[:], name) {
				return s, cmdutil.Usagef("--%s: not with --%s, as the settings of the service hold; %s", name, Flag, cmp.Or(unsuited[name], "leave it out"))
			}
		}
		if err != nil {
			return s, cmdutil.Usagef("--%s: %w", name, err)
		}
	}
	return s, nil
}

// Apply sets flags as the spec says.
func (s Spec) Apply(f *setup.Flags) {
	if s.Model != "" {
		f.SetModel(s.Model)
	}
	f.Extra = slices.Clone(f.Extra)
	for _, o := range []struct {
		name, key string
		given     bool
		value     any
	}{
		{"profile", "agent.profile", s.Profile != "", s.Profile},
		{"effort", "agent.effort", s.Effort != "", s.Effort},
		{"permissionMode", "permissions.mode", s.Mode != "", s.Mode},
		{"maxRounds", "agent.maxRounds", s.MaxRounds > 0, s.MaxRounds},
		{"maxTurns", "agent.maxTurns", s.MaxTurns > 0, s.MaxTurns},
		{"maxSessionTokens", "agent.maxSessionTokens", s.MaxTokens > 0, s.MaxTokens},
		{"maxCostUsd", "agent.maxCostUsd", s.MaxCost > 0, s.MaxCost},
	} {
		if o.given {
			f.Extra = append(f.Extra, config.Flag{Name: "the session's " + o.name, Key: o.key, Value: o.value})
		}
	}
}

// rights orders the permission modes by what they allow.
var rights = [...][]permissions.Mode{
	{permissions.ModePlan, permissions.ModeReadOnly}, {permissions.ModeDefault}, {permissions.ModeAcceptEdits, permissions.ModeWorkspace}, {permissions.ModeBypass},
}

// Within reports whether a permission mode allows no more than another.
func Within(mode, most permissions.Mode) bool {
	rank := func(m permissions.Mode) int {
		return slices.IndexFunc(rights[:], func(list []permissions.Mode) bool { return slices.Contains(list, m) })
	}
	return rank(mode) <= rank(most)
}
