package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	m := newMachine(t, `{"agent": {"temperature": 0.5}, "providers": {"openai": {"apiKey": "sk-secret-1234"}}, "tools": {"disallowed": ["a"]}}`, "")
	l := load(t, m.options())
	values := l.Values()
	var keys []string
	byKey := map[string]Value{}
	for _, v := range values {
		keys = append(keys, v.Key)
		byKey[v.Key] = v
		if text := fmt.Sprint(v.Value); strings.Contains(text, "secret") {
			t.Errorf("%s shows itself: %s", v.Key, text)
		}
	}
	if !slices.Equal(keys, Keys()) || keys[0] != "$schema" {
		t.Errorf("keys %q", keys)
	}
	for key, want := range map[string]string{
		"agent.temperature": "0.5", "agent.maxRounds": "50", "tools.disallowed": "[a]", "tools.allowed": "<nil>",
		"providers.openai.apiKey": "[redacted]", "providers.local.apiKey": "",
	} {
		v, err := l.Lookup(key)
		if err != nil || fmt.Sprint(v.Value) != want || fmt.Sprint(byKey[key]) != fmt.Sprint(v) {
			t.Errorf("%s is %v, %v; want %s", key, v.Value, err, want)
		}
	}
	if v, _ := l.Lookup("agent.temperature"); v.Source.Layer != LayerUser || !strings.HasSuffix(v.Source.Where, "settings.json:1:27") {
		t.Errorf("agent.temperature is from %s", v.Source)
	}
	if v, _ := l.Lookup("agent.maxRounds"); v.Source.Layer != LayerDefault {
		t.Errorf("agent.maxRounds is from %s", v.Source)
	}
	e := (*Error)(nil)
	if _, err := l.Lookup("agent.maxRound"); !errors.As(err, &e) || !e.CommandLine || !strings.Contains(err.Error(), `did you mean "agent.maxRounds"?`) {
		t.Errorf("got %v", err)
	}
}
