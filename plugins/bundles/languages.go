package bundles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// Language is a language server: a program of the user's machine.
type Language struct {
	Name       string            `json:"name"` // PLUGIN_SERVER
	Command    string            `json:"command"`
	Args       []string          `json:"args,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Extensions map[string]string `json:"extensions"` // IDs of languages by extension
	Options    json.RawMessage   `json:"options,omitempty"`
	Settings   json.RawMessage   `json:"settings,omitempty"`
}

// languages reads the language servers of .lsp.json, or those that the manifest names
// or has.
func (r *reader) languages() {
	const file = ".lsp.json"
	raw := r.manifest["lspServers"]
	files, named := r.paths("language", "lspServers")
	if raw != nil && !named {
		r.addLanguages(r.at, raw)
	}
	if raw == nil {
		files = []string{file}
	}
	for _, at := range files {
		switch data, err := r.load(at, maxFile); {
		case err == nil:
			r.addLanguages(at, data)
		case named || !errors.Is(err, fs.ErrNotExist):
			r.skip("language", at, "%v", err)
		}
	}
}

func (r *reader) addLanguages(at string, data json.RawMessage) {
	var all map[string]struct {
		Command             string
		Args                []string
		Env                 map[string]string
		ExtensionToLanguage map[string]string
		InitOptions         json.RawMessage `json:"initializationOptions"`
		Settings            json.RawMessage
		Transport           string
	}
	if err := json.Unmarshal(data, &all); err != nil {
		r.skip("language", at, "expected an object of language servers: %v", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		in := all[name]
		l := Language{
			Name: serverName(r.b.Name, name), Command: in.Command, Args: in.Args, Env: in.Env, Extensions: in.ExtensionToLanguage,
			Options: in.InitOptions, Settings: in.Settings,
		}
		err := l.check()
		if err == nil && in.Transport != "" && in.Transport != "stdio" {
			err = fmt.Errorf("it needs the transport %q: only stdio is supported", clip(in.Transport))
		}
		switch {
		case err != nil:
			r.skip("language", name, "%v", err)
		case len(r.b.Languages) < maxPieces && r.claim("language", l.Name, at):
			r.b.Languages = append(r.b.Languages, l)
		}
	}
}

var programName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$`)

// check refuses what a plugin must not ask for: language servers are programs of the
// user, not of the plugin.
func (l *Language) check() error {
	if !programName().MatchString(l.Command) {
		return fmt.Errorf("its command %q is not the name of an installed program", clip(l.Command))
	}
	for name := range l.Env {
		if controls(name) || !envName().MatchString(name) {
			return fmt.Errorf("a plugin cannot set the variable %s", clip(name))
		}
	}
	for ending := range l.Extensions {
		if !strings.HasPrefix(ending, ".") || strings.ContainsAny(ending, `/\`) {
			return fmt.Errorf("%q is not an extension of files", clip(ending))
		}
	}
	if len(l.Extensions) == 0 {
		return errors.New(`it has no files: "extensionToLanguage" is missing`)
	}
	return nil
}
