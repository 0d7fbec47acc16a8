package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// claudeSources name the settings of Claude Code, which may have hooks for events that
// are not here.
var claudeSources = []string{"Claude Code's user settings", "Claude Code's project settings"}

// Hooks returns the hooks of the settings and of the plugins, and what is wrong with
// some.
func (s *Setup) Hooks() ([]hooks.Definition, []hooks.Problem) {
	if !s.pluginHooks {
		s.pluginHooks = true
		s.bundleHooks()
	}
	return s.hooks, s.problems
}

// FrontHooks returns the hooks in the front matter of skills and agent types, which
// run only while those are active.
func (s *Setup) FrontHooks() (list []hooks.Definition, problems []hooks.Problem) {
	add := func(defs []hooks.Definition, more []hooks.Problem, err error) {
		list, problems = append(list, defs...), append(problems, more...)
		if err != nil {
			problems = append(problems, hooks.Problem{Source: hooks.Source{Name: "front matter"}, Text: err.Error()})
		}
	}
	if lib := s.SkillOptions().Library; lib != nil {
		for _, skill := range lib.Catalog().Active() {
			add(agent.SkillHooks(skill))
		}
	}
	types, _ := s.Definitions() // sessions warn of what is invalid
	for _, d := range types {
		add(agent.TypeHooks(d))
	}
	return list, problems
}

// PluginHooks returns the hooks that the programs of plugins serve, and what is wrong
// with them.
func (s *Setup) PluginHooks(ctx context.Context) (defs []hooks.Definition, problems []hooks.Problem, err error) {
	o := s.PluginOptions()
	if s.bare || !s.Settings.Plugins.Enabled {
		return nil, nil, nil
	}
	a, err := s.OpenPlugins(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range hooks.Events() {
		served, wrong := agent.PluginHooks(ctx, a.Plugins(), e)
		defs, problems = append(defs, served...), append(problems, wrong...)
	}
	return defs, problems, a.Close()
}

// loadHooks reads the hooks of all settings, and of Claude Code's. Those of a project
// count only if it is trusted.
func (s *Setup) loadHooks() error {
	for _, f := range s.Loaded.Hooks {
		data, err := json.Marshal(map[string]any{"hooks": f.Hooks})
		if err != nil {
			return err
		}
		if err := s.addHooks(hooks.Source{Name: f.Layer.String() + " settings", File: f.Path}, data); err != nil {
			return &config.Error{Key: "hooks", Err: err}
		}
	}
	if !s.Settings.Skills.Claude {
		return nil
	}
	files := []hooks.Source{}
	if s.UserHome != "" {
		files = append(files, hooks.Source{Name: claudeSources[0], File: filepath.Join(s.UserHome, ".claude", "settings.json")})
	}
	if s.Trusted && s.Dir != s.UserHome {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			files = append(files, hooks.Source{Name: claudeSources[1], File: filepath.Join(s.Dir, ".claude", name)})
		}
	}
	for _, src := range files {
		data, err := os.ReadFile(src.File)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("hooks: %w", err)
		}
		if err := s.claudeHooks(src, data); err != nil {
			return &config.Error{Key: "hooks", Err: err}
		}
	}
	return nil
}

// claudeHooks adds the hooks of Claude Code's settings, if they have any.
func (s *Setup) claudeHooks(src hooks.Source, data []byte) error {
	doc, err := jsonpos.ParseJSONC(src.File, data)
	if err != nil {
		return err
	}
	var file map[string]any
	if err := doc.Decode(&file); err != nil {
		return err
	}
	if file["hooks"] == nil || file["disableAllHooks"] == true {
		return nil
	}
	own, err := json.Marshal(map[string]any{"hooks": file["hooks"]})
	if err != nil {
		return err
	}
	return s.addHooks(src, own)
}

// addHooks adds the hooks of a file.
func (s *Setup) addHooks(src hooks.Source, data []byte) error {
	defs, problems, err := agent.ParseHooks(src, data)
	s.hooks, s.problems = append(s.hooks, defs...), append(s.problems, problems...)
	return err
}
