package bundles

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// hooks reads the files of hooks that the manifest names or has, and the default one.
func (r *reader) hooks(file string) {
	raw := r.manifest["hooks"]
	files, named := r.paths("hook", "hooks")
	if !named && raw != nil {
		r.addHooks(r.at, raw)
	}
	if !slices.Contains(files, file) {
		files = append(files, file)
	}
	for _, at := range files {
		data, err := r.load(at, maxFile)
		switch {
		case err == nil:
			r.addHooks(at, data)
		case at != file || !errors.Is(err, fs.ErrNotExist):
			r.skip("hook", at, "%v", err)
		}
	}
}

// handler is what the consent needs to know of a hook. Others' forms have more.
type handler struct {
	Type, Command, URL, Prompt, Server, Tool string
	Args                                     []string
}

func (h handler) does() string {
	switch {
	case h.Command != "":
		return strings.Join(append([]string{h.Command}, h.Args...), " ")
	case h.Tool != "":
		return h.Server + "/" + h.Tool
	}
	return h.URL + h.Prompt
}

// addHooks adds the hooks of {"hooks": {EVENT: [GROUP]}}, or of the inner object.
// A group is {"matcher": …, "hooks": [HANDLER]}, or with Cursor the handler itself.
// Handlers that are refused are taken out.
func (r *reader) addHooks(at string, data json.RawMessage) {
	var file struct {
		Hooks map[string]json.RawMessage `json:"hooks"`
	}
	err := json.Unmarshal(data, &file)
	events := file.Hooks
	if err == nil && events == nil {
		err = json.Unmarshal(data, &events)
	}
	if err != nil {
		r.skip("hook", at, "expected {\"hooks\": {EVENT: [{\"matcher\": …, \"hooks\": […]}]}}: %v", err)
		return
	}
	if r.b.Format == Cursor {
		for _, event := range slices.Sorted(maps.Keys(events)) {
			r.skip("hook", at+" "+event, "Cursor's hooks are not supported: they have other events and data")
		}
		return
	}
	h := Hooks{Path: at}
	kept := map[string][]json.RawMessage{}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		var groups []json.RawMessage
		if json.Unmarshal(events[event], &groups) != nil {
			if strings.HasPrefix(string(events[event]), "[") || file.Hooks != nil {
				r.skip("hook", at+" "+event, "expected a list of groups")
			}
			continue
		}
		for _, group := range groups {
			if clean := r.group(&h, event, group); clean != nil {
				kept[event] = append(kept[event], clean)
			}
		}
	}
	if len(kept) == 0 {
		return
	}
	h.Data, _ = json.Marshal(map[string]any{"hooks": kept}) // of valid JSON
	r.b.Hooks = append(r.b.Hooks, h)
}

// group checks the handlers of a group, and returns it without those that are
// refused; nil if none is left.
func (r *reader) group(h *Hooks, event string, raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	var handlers []json.RawMessage
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["hooks"], &handlers) != nil {
		r.skip("hook", h.Path+" "+event, "expected a group with a list of hooks")
		return nil
	}
	matcher := text(members["matcher"])
	var kept []json.RawMessage
	for _, one := range handlers {
		var is handler
		if err := json.Unmarshal(one, &is); err != nil {
			r.skip("hook", h.Path+" "+event, "%v", err)
			continue
		}
		if is.Type == "" && is.Command != "" {
			is.Type = "command"
		}
		if file := settingsIn(string(one)); file != "" {
			r.skip("hook", h.Path+" "+event, "it names %s: a plugin must not change settings", file)
			continue
		}
		h.List = append(h.List, Hook{event, line(matcher, 80), line(is.Type, 20), line(is.does(), 300)})
		kept = append(kept, one)
	}
	if len(kept) == 0 {
		return nil
	}
	members["hooks"], _ = json.Marshal(kept)
	clean, _ := json.Marshal(members)
	return clean
}

// settingsFile finds the settings of this and similar programs in a hook.
var settingsFile = lazy.Regexp(`(?i)\.(?:agent|claude|codex|gemini|cursor)[/\\]+(?:settings(?:\.local)?\.json|trust[^\s"']*|config\.toml|hooks\.json|plugin-links\.json|plugins[/\\]+lock\.json|mcp\.json)|\bmanaged-settings\.json|\.mcp\.json\b`)

func settingsIn(text string) string { return settingsFile().FindString(text) }
