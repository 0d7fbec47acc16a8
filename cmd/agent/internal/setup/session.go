package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// FindSession returns the agent's home directory and the ID of the session
// whose ID is prefix or begins with it.
func FindSession(s *cmdutil.IO, prefix string) (home, id string, err error) {
	if home, err = s.AgentHome(); err != nil {
		return "", "", err
	}
	id, err = store.Find(agent.SessionsDir(home), prefix)
	if errors.Is(err, store.ErrAmbiguous) {
		err = &cmdutil.UsageError{Err: err}
	}
	return home, id, err
}

// SessionAdvice adds advice to the error of a session log that is damaged or cannot
// be written.
func SessionAdvice(err error, id string) error {
	if errors.As(err, new(*core.JournalError)) {
		return cmdutil.Advise(err, "Free some space, or make the file writable, and resume the session. To work without a log: --ephemeral, or --set session.strict=false.\n")
	}
	if errors.Is(err, store.ErrCorrupt) {
		return cmdutil.Advise(err, fmt.Sprintf("Run agent sessions repair %s to cut off the damaged end; then the session can be resumed.\n", id))
	}
	return err
}

// WarnUnrecorded warns in a session that is not logged because there is no home
// directory.
func WarnUnrecorded(ctx context.Context, s *agent.Session, home string, ephemeral bool) {
	if home == "" && !ephemeral {
		s.Warn(ctx, "JOURNAL", "nothing is recorded, so this session cannot be resumed: there is no home directory; set HOME or AGENT_HOME, or use --ephemeral")
	}
}

// SaveRules adds allow rules to the user's settings.
func (s *Setup) SaveRules(_ context.Context, rules []string) error {
	return s.saveRules(rules, config.AddAllowRule)
}

// SaveDenyRules adds deny rules to the user's settings.
func (s *Setup) SaveDenyRules(_ context.Context, rules []string) error {
	return s.saveRules(rules, config.AddDenyRule)
}

func (s *Setup) saveRules(rules []string, add func(path, rule string) error) error {
	if s.Home == "" {
		return errors.New("no home directory to save the rule in: set HOME or AGENT_HOME")
	}
	for _, r := range rules {
		if err := add(filepath.Join(s.Home, "settings.json"), r); err != nil {
			return err
		}
	}
	return nil
}

// UseModel makes a session use another model, [PROVIDER/]MODEL, of the provider in
// use or of another. It returns their names.
func (s *Setup) UseModel(ctx context.Context, session *agent.Session, using, name string) (provider, modelName string, err error) {
	provider, modelName, err = config.SplitModel(name, "", using, s.Settings.Providers.Names())
	if err != nil {
		return "", "", err
	}
	var p model.Provider
	if provider = cmp.Or(provider, using); provider != using {
		if p, err = s.Switch(ctx, provider, modelName); err != nil {
			return "", "", err
		}
	}
	profile, err := s.Profile(provider, modelName)
	if err != nil {
		return "", "", err
	}
	session.SetModel(p, modelName)
	session.SetProfile(profile)
	return provider, modelName, nil
}
