package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/permissions"
)

// maxFile bounds a settings file.
const maxFile = 1 << 20

// Error is a mistake in the settings. It says where: file, line and column, the
// environment variable, or the flag.
type Error struct {
	Key string // dotted, where one key is at fault; may be empty
	Err error
	// CommandLine says that a flag is at fault, and not a file or a variable.
	CommandLine bool
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause, a *jsonpos.Error for a mistake in a file.
func (e *Error) Unwrap() error { return e.Err }

// LoadOptions say where settings come from.
type LoadOptions struct {
	Keyring Keyring             // nil = there is none
	Env     func(string) string // looks an environment variable up; nil = there is none
	Home    string              // the person's home directory; empty = no user settings
	Managed string              // the file of who runs the machine; empty = there is none
	Cwd     string              // where the session works, absolute
	Trusted bool                // whether the person trusts Cwd and what it holds
	Advice  string              // what the warning of an untrusted directory ends with; may be empty

	SettingsFile string   // --settings; must exist
	Sets         []string // --set, each KEY=VALUE
	Flags        []Flag   // flags that stand for keys
	Provider     string   // --provider
	Model        string   // --model: [PROVIDER/]MODEL
}

// Flag is a flag that stands for a key.
type Flag struct {
	Name  string // for errors and Sources: "--effort"
	Key   string // "agent.effort"
	Value any    // of the key's type
}

// Layer says how high settings stand: a higher layer wins.
type Layer int

// The layers, the lowest first.
const (
	LayerDefault Layer = iota
	LayerManaged
	LayerUser
	LayerProject
	LayerEnv
	LayerFile // --settings
	LayerSet  // --set
	LayerFlag
)

// String returns the layer's name.
func (l Layer) String() string {
	return [...]string{"default", "managed", "user", "project", "environment", "settings file", "--set", "flag"}[l]
}

// Source is where a value comes from.
type Source struct {
	Layer Layer
	Where string // file:line:column, a variable, a flag; empty for a default
}

// String returns the place, or "default".
func (s Source) String() string {
	if s.Where == "" {
		return s.Layer.String()
	}
	return s.Where
}

// FileStatus says what became of a file.
type FileStatus string

// The statuses.
const (
	FileRead      FileStatus = "read"
	FileMissing   FileStatus = "missing"
	FileUntrusted FileStatus = "untrusted" // only its ask and deny rules hold
)

// File is a settings file that was looked for.
type File struct {
	Path   string
	Layer  Layer
	Status FileStatus
}

// Rule is a permission rule as it stands in the settings.
type Rule struct {
	Verdict string // "allow", "ask" or "deny"
	Text    string
	When    *permissions.When // a rule with a condition; then Text is that
	Source  Source
	Trusted bool   // false: an allow rule must not count
	Refused string // why an allow rule must not count for another reason; may be empty
}

// Loaded are the settings in force.
type Loaded struct {
	Settings Settings
	Sources  map[string]Source // by dotted key; all keys but those at their default
	Files    []File            // the lowest layer first
	Rules    []Rule            // all layers', the lowest first
	Warnings []string
	Home     string // the directory of the agent's own files; empty = none
}

// Source returns where the value of a dotted key comes from.
func (l *Loaded) Source(key string) Source { return l.Sources[key] }

// Model returns the model of the provider that is used.
func (l *Loaded) Model() string {
	for _, f := range fields() {
		if f.key == l.Settings.ModelKey(l.Settings.Providers.Default) {
			return f.value(&l.Settings).String()
		}
	}
	return ""
}

// KnownSecrets returns the values of all keys that can be had without running
// a command, or whose command has run: what must be kept out of records.
func (l *Loaded) KnownSecrets() []string {
	var known []string
	for _, s := range secrets(&l.Settings) {
		if v := s.known(); v != "" {
			known = append(known, v)
		}
	}
	return known
}

// ModelKey returns the dotted key of a provider's model. Azure and Foundry know
// models by the names of their deployments.
func (s *Settings) ModelKey(provider string) string {
	name := "model"
	switch {
	case provider == "azure":
		name = "deployment"
	case provider == "foundry" && s.Providers.Foundry.Mode == "cloud":
		name = "modelDeployment"
	case provider == "foundry":
		name = "modelAlias"
	}
	return "providers." + provider + "." + name
}

// Load reads the settings. An error is an [*Error], and then there are none.
func Load(opts LoadOptions) (*Loaded, error) {
	if opts.Env == nil {
		opts.Env = func(string) string { return "" }
	}
	l := &loader{opts: opts, fields: fields(), loaded: &Loaded{Sources: map[string]Source{}}}
	if err := l.load(); err != nil {
		if e := (*Error)(nil); errors.As(err, &e) {
			return nil, err
		}
		return nil, &Error{Err: err}
	}
	return l.loaded, nil
}

type loader struct {
	opts   LoadOptions
	fields []field
	loaded *Loaded
	model  choice
}

func (l *loader) load() error {
	s, err := defaults()
	if err != nil {
		return err
	}
	l.loaded.Settings = *s
	l.loaded.Home = Home(l.opts)
	for _, step := range []func() error{l.managedFile, l.userFile, l.projectFile, l.environment, l.settingsFile, l.commandLine, l.applyModel} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, f := range l.fields {
		if secret, ok := f.value(&l.loaded.Settings).Interface().(Secret); ok && secret.IsSet() {
			secret.state.key, secret.state.env, secret.state.ring = f.key, l.opts.Env, l.opts.Keyring
		}
	}
	return nil
}

// commandLine lays the flags over what is there.
func (l *loader) commandLine() error {
	for _, step := range []func() error{l.sets, l.flags} {
		if err := step(); err != nil {
			e := &Error{Err: err}
			errors.As(err, &e)
			return &Error{Key: e.Key, Err: e.Err, CommandLine: true}
		}
	}
	return nil
}

// Home returns the directory of the agent's own files, "" if there is none: the
// variable AGENT_HOME, or .agent in the person's home directory. It uses Env,
// Home and Cwd, and reads no file.
func Home(opts LoadOptions) string {
	home := ""
	if opts.Env != nil {
		home = opts.Env("AGENT_HOME")
	}
	switch {
	case home != "" && !filepath.IsAbs(home):
		return filepath.Join(opts.Cwd, home)
	case home != "":
		return filepath.Clean(home)
	case opts.Home == "":
		return ""
	}
	return filepath.Join(opts.Home, ".agent")
}

func (l *loader) managedFile() error {
	if l.opts.Managed == "" {
		return nil
	}
	return l.file(l.opts.Managed, LayerManaged)
}

func (l *loader) userFile() error {
	if l.loaded.Home == "" {
		return nil
	}
	return l.file(filepath.Join(l.loaded.Home, "settings.json"), LayerUser)
}

func (l *loader) projectFile() error {
	path := filepath.Join(l.opts.Cwd, ".agent", "settings.json")
	for _, f := range l.loaded.Files { // the home directory itself is no project
		if same(f.Path, path) {
			return nil
		}
	}
	if l.opts.Trusted {
		return l.file(path, LayerProject)
	}
	return l.untrustedFile(path)
}

func same(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func (l *loader) settingsFile() error {
	path := l.opts.SettingsFile
	if path == "" {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.opts.Cwd, path)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--settings %s: %w", path, fs.ErrNotExist)
	}
	return l.file(path, LayerFile)
}

// file lays a file over what is there; one that is missing changes nothing.
func (l *loader) file(path string, layer Layer) error {
	data, info, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		l.loaded.Files = append(l.loaded.Files, File{path, layer, FileMissing})
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	refused := ""
	if layer != LayerProject { // trust in a project is in the content
		refused = writableByOthers(path, info)
	}
	doc, in, err := parse(path, data)
	if err != nil {
		return err
	}
	for _, f := range l.fields {
		line, col := doc.Position(f.pointer())
		if line == 0 {
			continue
		}
		if err := l.allowed(f, in, layer); err != nil {
			return &Error{Key: f.key, Err: doc.Errorf(f.pointer(), err.hint, "%s", err.message)}
		}
		if mode := in.Permissions.Mode; refused != "" && f.key == modeKey && strictness(f, mode) > strictness(f, "default") {
			l.warnf("%s: permission mode %s ignored: %s", path, mode, refused)
			continue
		}
		l.set(f, in, Source{layer, fmt.Sprintf("%s:%d:%d", path, line, col)})
	}
	l.rules(doc, in, Rule{Source: Source{layer, path}, Trusted: true, Refused: refused})
	l.loaded.Files = append(l.loaded.Files, File{path, layer, FileRead})
	l.checkMode(path, info.Mode(), in)
	return nil
}

func readFile(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, info, err
}

// parse decodes a file by itself and checks its values.
func parse(path string, data []byte) (*jsonpos.Document, *Settings, error) {
	doc, err := jsonpos.ParseJSONC(path, data)
	if err != nil {
		return nil, nil, err
	}
	var in Settings
	if line, _ := doc.Position("/version"); line > 0 {
		// First, since a newer file may have keys that are not known here.
		var head any
		if err := doc.Decode(&head); err != nil {
			return nil, nil, err
		}
		if members, ok := head.(map[string]any); ok {
			if v, ok := members["version"].(float64); ok && v != Version {
				return nil, nil, &Error{Key: "version", Err: doc.Errorf("/version", "update agent, or write version 1", "version %v of the settings is not known here", v)}
			}
		}
	}
	if err := doc.Decode(&in); err != nil {
		return nil, nil, err
	}
	for _, f := range fields() {
		if line, _ := doc.Position(f.pointer()); line == 0 {
			continue
		}
		if p := f.check(&in); p != nil {
			return nil, nil, &Error{Key: f.key, Err: doc.Errorf(f.pointer()+p.entry, p.hint, "%s", p.message)}
		}
	}
	return doc, &in, nil
}

const modeKey = "permissions.mode"

// allowed says why a layer may not set a key.
func (l *loader) allowed(f field, in *Settings, layer Layer) *problem {
	if layer != LayerProject {
		return nil
	}
	if f.userOnly() {
		return &problem{
			message: f.key + " must not stand in a project's settings, since whoever writes the project could redirect keys or widen what tools may do",
			hint:    "move it to " + filepath.Join(l.loaded.Home, "settings.json"),
		}
	}
	if mode := in.Permissions.Mode; f.key == modeKey && strictness(f, mode) > strictness(f, "default") {
		return &problem{
			message: fmt.Sprintf("permissions.mode %q must not stand in a project's settings, since it lets tools do more", mode),
			hint:    "a project can set default or read-only; use --permission-mode or your own settings for more",
		}
	}
	return nil
}

// strictness ranks the modes, the strictest first.
func strictness(f field, mode string) int { return slices.Index(f.enum(), mode) }

// set lays one value over what is there.
func (l *loader) set(f field, in *Settings, from Source) {
	to := f.value(&l.loaded.Settings)
	switch {
	case f.appends():
		to.Set(reflect.AppendSlice(to, f.value(in)))
	case f.key == modeKey && from.Layer == LayerProject && strictness(f, in.Permissions.Mode) >= strictness(f, to.String()):
		return // a project makes it only stricter
	default:
		to.Set(f.value(in))
	}
	l.loaded.Sources[f.key] = from
}

// rules notes the permission rules of a layer, like the given one in all but
// text. The document may be nil; then all come from one place.
func (l *loader) rules(doc *jsonpos.Document, in *Settings, like Rule) {
	where := like.Source.Where
	add := func(r Rule, list string, i int) {
		if doc != nil {
			at := fmt.Sprintf("/permissions/%s/%d", list, i)
			line, col := doc.Position(at + "/if") // of a rule with a condition
			if line == 0 {
				line, col = doc.Position(at)
			}
			r.Source.Where = fmt.Sprintf("%s:%d:%d", where, line, col)
		}
		l.loaded.Rules = append(l.loaded.Rules, r)
	}
	for _, list := range []struct {
		verdict string
		texts   []string
	}{{"allow", in.Permissions.Allow}, {"ask", in.Permissions.Ask}, {"deny", in.Permissions.Deny}} {
		for i, text := range list.texts {
			r := like
			r.Verdict, r.Text = list.verdict, text
			add(r, list.verdict, i)
		}
	}
	for i := range in.Permissions.When {
		r := like
		r.When = &in.Permissions.When[i]
		r.Verdict, r.Text = string(r.When.Then), r.When.If
		add(r, "when", i)
	}
}

// untrustedFile takes from a project's file what can only tighten. A file that
// is broken is not worth an error: the directory may be anybody's.
func (l *loader) untrustedFile(path string) error {
	data, _, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		l.loaded.Files = append(l.loaded.Files, File{path, LayerProject, FileMissing})
		return nil
	}
	l.loaded.Files = append(l.loaded.Files, File{path, LayerProject, FileUntrusted})
	var doc *jsonpos.Document
	var in *Settings
	if err == nil {
		doc, in, err = parse(path, data)
	}
	if err != nil {
		l.warnf("the settings of this untrusted directory are ignored: %v", err)
		return nil
	}
	for _, f := range l.fields {
		line, col := doc.Position(f.pointer())
		if line > 0 && (f.key == "permissions.ask" || f.key == "permissions.deny") {
			l.set(f, in, Source{LayerProject, fmt.Sprintf("%s:%d:%d", path, line, col)})
		}
	}
	l.rules(doc, in, Rule{Source: Source{LayerProject, path}})
	l.warnf("%s: this directory is not trusted, only the ask and deny rules of its settings hold%s", path, andHint(l.opts.Advice))
	return nil
}

func (l *loader) warnf(format string, args ...any) {
	l.loaded.Warnings = append(l.loaded.Warnings, fmt.Sprintf(format, args...))
}

// checkMode warns of a key in a file that others can read.
func (l *loader) checkMode(path string, mode fs.FileMode, in *Settings) {
	if runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 {
		return
	}
	if slices.ContainsFunc(secrets(in), Secret.Literal) {
		l.warnf("%s holds a key and can be read by others (mode %03o); run: chmod 600 %s", path, mode.Perm(), path)
	}
}

// secrets returns all keys that are set.
func secrets(s *Settings) []Secret {
	var list []Secret
	for _, f := range fields() {
		if secret, ok := f.value(s).Interface().(Secret); ok && secret.IsSet() {
			list = append(list, secret)
		}
	}
	return list
}

// providerNames lists the providers.
func providerNames(list []field) []string {
	for _, f := range list {
		if f.key == "providers.default" {
			return f.enum()
		}
	}
	return nil
}

// choice is a model that was named apart from its provider's settings.
type choice struct {
	provider, model string // no provider: the one in use
	from            Source
}

// split takes a [PROVIDER/]MODEL apart. Names of models can hold a slash too:
// with a provider given, only that one's name counts as one.
func split(text, given string, providers []string) (provider, model string) {
	head, tail, ok := strings.Cut(text, "/")
	if !ok || tail == "" || !slices.Contains(providers, head) || given != "" && given != head {
		return given, text
	}
	return head, tail
}
