package setup

import (
	"fmt"
	"strings"
)

// ModelInfo is the JSON of a model.
type ModelInfo struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Default  bool   `json:"default"` // the configured one
	Known    bool   `json:"known"`   // there are facts about it, built in or in the settings
	Context  int    `json:"contextWindow,omitempty"`
	// Prices in USD per million tokens; nil = unknown.
	Input  *float64 `json:"inputPrice,omitempty"`
	Output *float64 `json:"outputPrice,omitempty"`
}

// Model returns what is known about a model.
func (s *Setup) Model(provider, name string) ModelInfo {
	m := s.facts(provider, name)
	info := ModelInfo{Provider: provider, Name: name, Default: name == s.Loaded.Model(), Known: m.Known || m.Context > 0, Context: m.Context}
	if m.Price != nil && (m.Price.Input > 0 || m.Price.Output > 0) {
		info.Known, info.Input, info.Output = true, &m.Price.Input, &m.Price.Output
	}
	return info
}

// String returns the model's line in a list: its name and, after a tab, facts.
func (i ModelInfo) String() string {
	var about []string
	if i.Context > 0 {
		about = append(about, fmt.Sprintf("%d k tokens", i.Context/1000))
	}
	if i.Input != nil {
		about = append(about, fmt.Sprintf("$%g in, $%g out", *i.Input, *i.Output))
	}
	mark := " "
	if i.Default {
		mark = "*"
	}
	return strings.TrimRight(mark+" "+i.Name+"\t"+strings.Join(about, ", "), "\t")
}
