package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"

	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/permissions"
)

// maxFile bounds a settings file.
const maxFile = 1 << 20

// Error is a mistake in the settings. It names its position: file, line and
// column, environment variable, or flag.
type Error struct {
	Key string // the dotted key at fault; may be empty
	Err error
	// CommandLine is set if a flag is at fault, not a file or a variable.
	CommandLine bool
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause, a *jsonpos.Error for a mistake in a file.
func (e *Error) Unwrap() error { return e.Err }

// LoadOptions are the sources of settings.
type LoadOptions struct {
	Keyring Keyring             // nil = none
	Env     func(string) string // looks up an environment variable; nil = none are set
	Home    string              // the user's home directory; empty = no user settings
	Managed string              // the managed settings file; empty = none
	Cwd     string              // the working directory, absolute
	Trusted bool                // whether the user trusts Cwd with its current contents
	Advice  string              // appended to the warning about an untrusted directory; may be empty

	UserFile     string   // takes the place of the user's settings file; must exist
	SettingsFile string   // --settings; must exist
	Sets         []string // --set, each KEY=VALUE
	Flags        []Flag   // flags that set keys
	Provider     string   // --provider
	Model        string   // --model: [PROVIDER/]MODEL
}

// Flag is a flag that sets a key.
type Flag struct {
	Name  string // for errors and Sources: "--effort"
	Key   string // "agent.effort"
	Value any    // of the key's type
}

// Layer is the precedence of settings: higher layers override lower ones.
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

// Source is the origin of a value.
type Source struct {
	Layer Layer
	Where string // file:line:column, a variable, a flag; empty for a default
}

// String returns Where, or the name of the layer.
func (s Source) String() string {
	if s.Where == "" {
		return s.Layer.String()
	}
	return s.Where
}

// FileStatus tells what happened with a file.
type FileStatus string

// The statuses.
const (
	FileRead      FileStatus = "read"
	FileMissing   FileStatus = "missing"
	FileUntrusted FileStatus = "untrusted" // only its ask and deny rules apply
)

// File is a settings file that was looked for.
type File struct {
	Path   string
	Layer  Layer
	Status FileStatus
}

// Rule is a permission rule as written in the settings.
type Rule struct {
	Verdict string // "allow", "ask" or "deny"
	Text    string
	When    *permissions.When // of a rule with a condition, which is then the Text
	Source  Source
	Trusted bool   // false: an allow rule must be ignored
	Refused string // another reason to ignore an allow rule; may be empty
}

// Loaded are the effective settings.
type Loaded struct {
	Settings Settings
	Sources  map[string]Source // by dotted key, without those at their default
	Files    []File            // lowest layer first
	Rules    []Rule            // of all layers, lowest first
	Hooks    []FileHooks       // of all files, lowest layer first
	Warnings []string
	Home     string // the agent's directory; empty = none
}

// FileHooks are the hooks of a file.
type FileHooks struct {
	Path  string
	Layer Layer
	Hooks Object // by event
}

// Source returns the origin of a dotted key's value.
func (l *Loaded) Source(key string) Source { return l.Sources[key] }

// Model returns the model of the default provider.
func (l *Loaded) Model() string {
	for _, f := range fieldsIn(&l.Settings) {
		if f.key == l.Settings.ModelKey(l.Settings.Providers.Default) {
			return f.value(&l.Settings).String()
		}
	}
	return ""
}

// KnownSecrets returns the values of all secrets except those of commands and
// keyrings that were not read yet. They must be kept out of session logs.
func (l *Loaded) KnownSecrets() []string {
	var known []string
	for _, s := range secrets(&l.Settings) {
		if v := s.known(); v != "" {
			known = append(known, v)
		}
	}
	return known
}

// ModelKey returns the dotted key of a provider's model. Azure and Foundry
// select models by deployment.
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

// Load reads the settings. The error is an [*Error].
func Load(opts LoadOptions) (*Loaded, error) {
	if opts.Env == nil {
		opts.Env = func(string) string { return "" }
	}
	l := &loader{opts: opts, fields: fields(), loaded: &Loaded{Sources: map[string]Source{}}, docs: map[string]*jsonpos.Document{}}
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
	docs   map[string]*jsonpos.Document // of the files that were read
	models []choice                     // lowest layer first
}

func (l *loader) load() error {
	s, err := defaults()
	if err != nil {
		return err
	}
	l.loaded.Settings = *s
	l.loaded.Home = Home(l.opts)
	for _, step := range []func() error{l.managedFile, l.userFile, l.projectFile, l.environment, l.settingsFile, l.commandLine, l.applyModels, l.checkProviders} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, f := range fieldsIn(&l.loaded.Settings) {
		for _, secret := range secretsOf(f.value(&l.loaded.Settings).Interface()) {
			secret.state.key, secret.state.env, secret.state.ring = f.key, l.opts.Env, l.opts.Keyring
		}
	}
	return nil
}

// commandLine applies the flags.
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

// Home returns the agent's directory, "" if there is none: the variable
// AGENT_HOME, or .agent in the user's home directory. It uses Env, Home and Cwd,
// and reads no file.
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
	if path := l.opts.UserFile; path != "" {
		if _, err := os.Stat(path); err != nil {
			return err
		}
		return l.file(path, LayerUser)
	}
	if l.loaded.Home == "" {
		return nil
	}
	return l.file(filepath.Join(l.loaded.Home, "settings.json"), LayerUser)
}

func (l *loader) projectFile() error {
	path := filepath.Join(l.opts.Cwd, ".agent", "settings.json")
	for _, f := range l.loaded.Files { // the home directory itself is not a project
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

// file applies a file, which may be missing.
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
	if layer != LayerProject { // trust in a project is tied to the file's content
		refused = writableByOthers(path, info)
	}
	doc, in, err := parse(path, data)
	if err != nil {
		return err
	}
	l.docs[path] = doc
	for _, f := range fieldsIn(in) {
		line, col := doc.Position(f.pointer())
		if line == 0 {
			continue
		}
		if p := l.allowed(f, in, layer); p != nil {
			return &Error{Key: f.key, Err: doc.Errorf(f.pointer(), p.hint, "%s", p.message)}
		}
		if mode := in.Permissions.Mode; refused != "" && f.key == modeKey && strictness(f, mode) > strictness(f, "default") {
			l.warnf("%s: permission mode %s ignored: %s", path, mode, refused)
			continue
		}
		if refused != "" && f.key == "permissions.allow" { // the policy warns of its rules
			continue
		}
		l.set(f, in, Source{layer, fmt.Sprintf("%s:%d:%d", path, line, col)})
	}
	l.rules(doc, in, Rule{Source: Source{layer, path}, Trusted: true, Refused: refused})
	switch {
	case len(in.Hooks) > 0 && refused != "":
		l.warnf("%s: hooks ignored: %s", path, refused)
	case len(in.Hooks) > 0:
		l.loaded.Hooks = append(l.loaded.Hooks, FileHooks{path, layer, in.Hooks})
	}
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

// parse decodes a file and checks its values.
func parse(path string, data []byte) (*jsonpos.Document, *Settings, error) {
	doc, err := jsonpos.ParseJSONC(path, data)
	if err != nil {
		return nil, nil, err
	}
	var in Settings
	if line, _ := doc.Position("/version"); line > 0 {
		// First, since a newer file may have unknown keys.
		var head any
		if err := doc.Decode(&head); err != nil {
			return nil, nil, err
		}
		if members, ok := head.(map[string]any); ok {
			if v, ok := members["version"].(float64); ok && v != settingsVersion {
				return nil, nil, &Error{Key: "version", Err: doc.Errorf("/version", "update agent, or use version 1", "unsupported settings version %v", v)}
			}
		}
	}
	if err := doc.Decode(&in); err != nil {
		return nil, nil, err
	}
	if err := in.Providers.checkNamed(); err != nil {
		return nil, nil, &Error{Key: "providers", Err: doc.Errorf("/providers", "", "%s", err)}
	}
	for _, f := range fieldsIn(&in) {
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

// allowed returns why a layer must not set a key, nil if it may.
func (l *loader) allowed(f field, in *Settings, layer Layer) *problem {
	if layer != LayerProject {
		return nil
	}
	if f.userOnly() {
		return &problem{
			message: f.key + " is not allowed in a project's settings, since a repository could redirect keys or widen permissions with it",
			hint:    "move it to " + filepath.Join(l.loaded.Home, "settings.json"),
		}
	}
	if mode := in.Permissions.Mode; f.key == modeKey && strictness(f, mode) > strictness(f, "default") {
		return &problem{
			message: fmt.Sprintf("permissions.mode %q is not allowed in a project's settings, since it widens permissions", mode),
			hint:    "use default or read-only, or set the mode in your own settings or with --permission-mode",
		}
	}
	return nil
}

// ProjectProblems returns why the settings file of a project would be refused, all
// keys that are not allowed there, with their positions. Home is the agent's
// directory. A missing file has none.
func ProjectProblems(home, path string) []error {
	data, _, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var doc *jsonpos.Document
	var in *Settings
	if err == nil {
		doc, in, err = parse(path, data)
	}
	if err != nil {
		return []error{err}
	}
	l := &loader{loaded: &Loaded{Home: home}}
	var problems []error
	for _, f := range fieldsIn(in) {
		if line, _ := doc.Position(f.pointer()); line == 0 {
			continue
		}
		if p := l.allowed(f, in, LayerProject); p != nil {
			problems = append(problems, doc.Errorf(f.pointer(), p.hint, "%s", p.message))
		}
	}
	return problems
}

// strictness ranks the modes, strictest first.
func strictness(f field, mode string) int { return slices.Index(f.enum(), mode) }

// set applies one value.
func (l *loader) set(f field, in *Settings, from Source) {
	to := f.value(&l.loaded.Settings)
	switch {
	case f.appends():
		to.Set(reflect.AppendSlice(to, f.value(in)))
	case f.key == modeKey && from.Layer == LayerProject && strictness(f, in.Permissions.Mode) >= strictness(f, to.String()):
		return // a project can only make it stricter
	default:
		to.Set(f.value(in))
	}
	l.loaded.Sources[f.key] = from
}

// rules adds the permission rules of a layer; like has their common fields. If
// the document is nil, all have the same position.
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

// untrustedFile applies only the ask and deny rules of a project's file. An
// invalid file is not an error, since the directory may be anybody's.
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
		l.warnf("ignoring the settings of this untrusted directory: %v", err)
		return nil
	}
	for _, f := range l.fields {
		line, col := doc.Position(f.pointer())
		if line > 0 && (f.key == "permissions.ask" || f.key == "permissions.deny") {
			l.set(f, in, Source{LayerProject, fmt.Sprintf("%s:%d:%d", path, line, col)})
		}
	}
	l.rules(doc, in, Rule{Source: Source{LayerProject, path}})
	l.warnf("%s: this directory is not trusted: only ask and deny rules apply%s%s", path, ignoredRules(in), andHint(l.opts.Advice))
	return nil
}

// ignoredRules says how many allow rules of an untrusted file are ignored.
func ignoredRules(in *Settings) string {
	n := len(in.Permissions.Allow)
	for _, w := range in.Permissions.When {
		if w.Then == permissions.ListAllow {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return " (1 allow rule is ignored)"
	}
	return fmt.Sprintf(" (%d allow rules are ignored)", n)
}

func (l *loader) warnf(format string, args ...any) {
	l.loaded.Warnings = append(l.loaded.Warnings, fmt.Sprintf(format, args...))
}

// checkMode warns about a key in a file that others can read.
func (l *loader) checkMode(path string, mode fs.FileMode, in *Settings) {
	if runtime.GOOS == "windows" || mode.Perm()&0o077 == 0 {
		return
	}
	if slices.ContainsFunc(secrets(in), Secret.Literal) {
		l.warnf("%s contains a key and is readable by others (mode %03o); run: chmod 600 %s", path, mode.Perm(), path)
	}
}

// secrets returns all secrets that are set.
func secrets(s *Settings) []Secret {
	var list []Secret
	for _, f := range fieldsIn(s) {
		value := f.value(s).Interface()
		if h, ok := value.(headers); ok && f.tag.Get("secret") == "" {
			list = append(list, h.credentials()...)
			continue
		}
		list = append(list, secretsOf(value)...)
	}
	return list
}

// secretsOf returns the secrets of a value that are set.
func secretsOf(value any) []Secret {
	var list []Secret
	switch v := value.(type) {
	case Secret:
		list = append(list, v)
	case headers:
		list = slices.AppendSeq(list, maps.Values(v))
	}
	return slices.DeleteFunc(list, func(s Secret) bool { return !s.IsSet() })
}

// choice is a model that was chosen by AGENT_MODEL or --model.
type choice struct {
	provider string // given separately; may be empty
	model    string // [PROVIDER/]MODEL
	from     Source
}
