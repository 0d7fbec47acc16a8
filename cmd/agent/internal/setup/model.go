package setup

import (
	"fmt"
	"strings"
)

// ModelInfo is a model as lists show it.
type ModelInfo struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Default  bool   `json:"default"` // what the settings name for the provider
	Known    bool   `json:"known"`   // the program or the settings have facts about it
	Context  int    `json:"contextWindow,omitempty"`
	// Prices in USD for a million tokens, where they are known.
	Input  *float64 `json:"inputPrice,omitempty"`
	Output *float64 `json:"outputPrice,omitempty"`
}

// Model is a model with what is known of it.
func (s *Setup) Model(provider, name string) ModelInfo {
	m := s.facts(provider, name)
	info := ModelInfo{Provider: provider, Name: name, Default: name == s.Loaded.Model(), Known: m.Known || m.Context > 0, Context: m.Context}
	if m.Price != nil && (m.Price.Input > 0 || m.Price.Output > 0) {
		info.Known, info.Input, info.Output = true, &m.Price.Input, &m.Price.Output
	}
	return info
}

// String is the model's line in a list.
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
