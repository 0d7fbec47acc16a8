package plugins

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/plugins/bundles"
)

// settings are what the user set for the plugins.
type settings struct {
	home   string
	secret func(plugin, key string) string

	mu      sync.Mutex
	stamp   string // of the file
	choices map[string]Choices
	secrets map[[2]string]string // by plugin and key
}

// of returns what the user set for a plugin, with secrets.
func (s *settings) of(plugin string, list []bundles.Setting) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stamp := stampOf(filepath.Join(s.home, choicesFile)); stamp != s.stamp {
		choices, err := readChoices(s.home)
		if err != nil {
			return nil, err
		}
		s.stamp, s.choices, s.secrets = stamp, choices, map[[2]string]string{}
	}
	mine, values := s.choices[plugin], map[string]string{}
	for _, setting := range list {
		value := mine.Values[setting.Key]
		if setting.Secret && s.secret != nil && slices.Contains(mine.Secrets, setting.Key) {
			key := [2]string{plugin, setting.Key}
			known, ok := s.secrets[key]
			if !ok {
				known = s.secret(plugin, setting.Key)
				s.secrets[key] = known
			}
			value = known
		}
		values[setting.Key] = cmp.Or(value, os.Getenv(setting.Env), setting.Default)
	}
	return values, nil
}

// settings returns the plugin's settings as a JSON object; nil if it has none.
func (p *Plugin) settings() (json.RawMessage, error) {
	spec := p.Spec()
	if len(spec.Settings) == 0 {
		return nil, nil
	}
	list, err := bundles.SettingsOf(spec.Name, spec.Settings)
	if err != nil {
		return nil, p.wrap(err)
	}
	values, err := p.host.settings.of(p.name, list)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	for _, s := range list {
		value := values[s.Key]
		if value == "" && s.Required {
			return nil, fmt.Errorf("the plugin %s needs the setting %s: run 'agent plugins config %s'", p.name, s.Key, p.name)
		}
		if value == "" {
			continue
		}
		if object[s.Key], err = s.Value(value); err != nil {
			return nil, fmt.Errorf("the setting %s of the plugin %s: %w: run 'agent plugins config %s'", s.Key, p.name, err, p.name)
		}
	}
	return json.Marshal(object)
}

// secretSettings returns the values of the plugin's secret settings. The lock is held.
func (p *Plugin) secretSettings() (secrets []string) {
	list, err := bundles.SettingsOf(p.name, p.now.spec.Settings)
	if err != nil {
		return nil
	}
	values, err := p.host.settings.of(p.name, list)
	for _, s := range list {
		if err == nil && s.Secret && values[s.Key] != "" {
			secrets = append(secrets, values[s.Key])
		}
	}
	return secrets
}

// Installed returns the plugin with its settings and what the user set.
func (p *Plugin) Installed() (Installed, error) {
	spec := p.Spec()
	list, err := bundles.SettingsOf(spec.Name, spec.Settings)
	if err != nil {
		return Installed{}, p.wrap(err)
	}
	choices, err := readChoices(p.host.agentHome)
	return Installed{Bundle: &bundles.Bundle{Name: spec.Name, Dir: p.Dir(), Settings: list}, Choices: choices[p.name]}, err
}
