package plugins

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/atomicfile"
	"github.com/seed-009c0928/agent/core/bundle"
	"github.com/seed-009c0928/agent/core/jsonpos"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/subagent"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/plugins/bundles"
	"github.com/seed-009c0928/agent/skills"
)

// terms are what the user approved with a plugin, in the lock file.
type terms struct {
	Spec
	// Pieces says that the plugin was read as a bundle; NoProgram, that it has no
	// process.
	Pieces    bool            `json:"pieces,omitempty"`
	NoProgram bool            `json:"noProgram,omitempty"`
	Entry     json.RawMessage `json:"entry,omitempty"`  // of its marketplace
	Hooked    []string        `json:"hooked,omitempty"` // events that its files have hooks for
}

func termsOf(e bundle.Entry) (t terms) {
	if e.Consent != nil {
		_ = json.Unmarshal(e.Consent.Terms, &t) // those of an older version have no pieces
	}
	return t
}

// Installed is the bundle of an installed plugin, with what the user set for it.
type Installed struct {
	*bundles.Bundle
	Source  string
	Linked  bool // it is used in place
	Choices Choices
	data    string
	home    string
	set     map[string]string // of Set
	store   *bundle.Store     // that it is installed in; nil if it is not
}

// Choices are what a user set for a plugin.
type Choices struct {
	// Values are the settings by key. Secrets are the keys of those in the keyring.
	Values  map[string]string `json:"values,omitempty"`
	Secrets []string          `json:"secrets,omitempty"`
	// Allow is what its MCP servers may access, besides the plugin's folder, its data
	// directory and the workspace, which they read. Only Read, Write and Network count.
	Allow Manifest `json:"allow,omitzero"`
}

// Bundles returns the bundles of the plugins that are installed in an agent's home or
// linked, by name. Those whose files are not the approved ones are errors, and linked ones
// that ask for more than was approved. If the program is all that uses the files of a
// plugin, only those are compared that are read here: the host compares all of them before
// it starts the program. With all set, every file is compared.
func Bundles(ctx context.Context, home string, all bool) (list []Installed, failed []error) {
	if home == "" {
		return nil, nil
	}
	choices, err := readChoices(home)
	if err != nil {
		failed = append(failed, err)
	}
	list, some := storedBundles(ctx, home, choices, all)
	linked, more := linkedBundles(home, choices)
	return append(list, linked...), slices.Concat(failed, some, more)
}

// storedBundles returns the bundles of the installed plugins.
func storedBundles(ctx context.Context, home string, choices map[string]Choices, all bool) (list []Installed, failed []error) {
	store := bundle.Open(storeDir(home), bundle.Options{})
	if _, err := os.Lstat(store.LockFile()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	entries, err := store.List(ctx)
	if err != nil {
		failed = append(failed, err)
	}
	for _, e := range entries {
		t := termsOf(e)
		if !t.Pieces {
			continue
		}
		b, err := storedBundle(ctx, store, e, t.Entry, all)
		if err != nil {
			failed = append(failed, &brokenBundle{&Error{e.Name, err}, t.Hooked})
			continue
		}
		list = append(list, Installed{Bundle: b, Source: sourceText(e.Source), Choices: choices[e.Name], data: DataDir(home, e.Name), home: home, store: store})
	}
	return list, failed
}

// storedBundle reads the bundle of an installed plugin, and compares its files.
func storedBundle(ctx context.Context, store *bundle.Store, e bundle.Entry, market json.RawMessage, all bool) (*bundles.Bundle, error) {
	files, err := store.Approved(e)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	if !e.Consented() {
		return nil, fmt.Errorf("its files changed since you approved them: run 'agent plugins update %s'", e.Name)
	}
	b, unreadable := bundles.ReadFiles(files, store.Path(e.Name), e.Name, market)
	changes, err := files.Verify()
	if err == nil && len(changes) == 0 && (all || unreadable != nil || !b.ProgramOnly()) {
		_, changes, err = store.Verify(ctx, e.Name)
	}
	switch {
	case err != nil:
		return nil, err
	case len(changes) > 0:
		return nil, &ChecksumError{Plugin: e.Name, Changes: changes}
	case unreadable != nil:
		return nil, unreadable
	case b.Name != e.Name:
		return nil, fmt.Errorf("its name is %q, expected %q", b.Name, e.Name)
	}
	return b, nil
}

// brokenBundle is the error of a bundle that cannot be used, and the events that the user
// approved hooks for.
type brokenBundle struct {
	err    *Error
	hooked []string
}

// Error implements error.
func (b *brokenBundle) Error() string { return b.err.Error() }

// Unwrap returns the error with the name of the plugin.
func (b *brokenBundle) Unwrap() error { return b.err }

// DataDir returns the directory in which a plugin keeps files.
func DataDir(home, name string) string { return filepath.Join(home, "plugin-data", name) }

// Values returns what the bundle's variables stand for. Secret looks up a secret of
// the plugin, "" if it is not set. A setting that is not set has its default, or the
// value of its environment variable.
func (i *Installed) Values(workspace string, secret func(plugin, key string) string) bundles.Values {
	v := bundles.Values{Root: i.Dir, Data: sandbox.Resolve(i.data), Workspace: workspace, Settings: map[string]string{}, Secrets: map[string]string{}}
	for _, s := range i.Settings {
		into, value := v.Settings, i.Choices.Values[s.Key]
		if s.Secret {
			into = v.Secrets
			if slices.Contains(i.Choices.Secrets, s.Key) && secret != nil {
				value = secret(i.Name, s.Key)
			}
		}
		if value = cmp.Or(i.set[s.Key], value, os.Getenv(s.Env), s.Default); value != "" {
			into[s.Key] = value
		}
	}
	return v
}

// InFolder returns the bundle in a folder that is used as it is: it is not installed, and
// nothing compares its files. Its processes keep their files below home, the agent's. The
// values are those of its settings, secrets included.
func InFolder(home, dir string, values map[string]string) (*Installed, error) {
	if home == "" {
		return nil, errors.New("a home for the files of plugins is required")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b, err := bundles.Read(dir, "", nil)
	if err != nil {
		return nil, err
	}
	i := &Installed{Bundle: b, Source: dir, data: DataDir(home, b.Name), home: home}
	return i, i.Set(values)
}

// Set sets values of the settings, secrets included, in place of those that the user
// set. It stores nothing. A value that the setting does not take is an error.
func (i *Installed) Set(values map[string]string) error {
	for key, value := range values {
		at := slices.IndexFunc(i.Settings, func(s bundles.Setting) bool { return s.Key == key })
		if at < 0 {
			return &Error{i.Name, fmt.Errorf("it has no setting %q", key)}
		}
		if err := i.Settings[at].Check(value); err != nil {
			if i.Settings[at].Secret { // no part of it goes into a message
				err = errors.New("the value cannot be used")
			}
			return &Error{i.Name, fmt.Errorf("setting %s: %w", key, err)}
		}
	}
	i.set = values
	return nil
}

// SkillPlace returns where the skills of the bundle are; without Folders, it has none.
func (i *Installed) SkillPlace(v bundles.Values) skills.Place {
	p := skills.Place{
		Scope: skills.ScopeUser, Dir: i.Dir, Plugin: i.Name, Within: i.Dir, HookVars: i.HookVars(v),
		Fill: func(text string) string { return i.FillText(text, v) },
	}
	for _, s := range i.Skills {
		p.Folders = append(p.Folders, s.Path)
	}
	return p
}

// AgentTypes returns the agent types of the bundle.
func (i *Installed) AgentTypes(v bundles.Values) (list []subagent.Definition) {
	for _, a := range i.Agents {
		d := a.Definition
		d.Prompt = i.FillText(d.Prompt, v)
		if i.Format != bundles.Own && i.Format != bundles.Agents && i.Format != bundles.Gemini {
			d = bundles.FromClaude(d)
		}
		list = append(list, d)
	}
	return list
}

// MCPServers returns the MCP servers of the bundle. Their processes see the system's
// programs, the plugin's folder, its data directory, which is created, and the
// workspace, which they only read; and what the user allowed.
func (i *Installed) MCPServers(v bundles.Values, environ func(string) (string, bool)) (list []mcp.Configured) {
	for _, s := range i.Servers {
		c := mcp.Configured{Name: s.Name, Source: "plugin " + i.Name}
		c.Server, c.Problem = i.Fill(s, v, environ)
		if c.Server.Transport() == mcp.TransportStdio {
			if err := os.MkdirAll(i.data, 0o700); err != nil && c.Problem == nil {
				c.Problem = err
			}
			c.Server.Sandbox, c.Widen = i.confine(i.Choices.Allow, v), i.widen(v)
			c.Hint = fmt.Sprintf("it is confined to its folder, its data directory and reading the workspace; "+
				"if it needs more, see 'agent plugins allow %s --help'", i.Name)
		}
		list = append(list, c)
	}
	return list
}

// confine returns the sandbox of the bundle's MCP servers.
func (i *Installed) confine(allow Manifest, v bundles.Values) *mcp.Confine {
	return &mcp.Confine{
		Private: true, Hosts: allow.Network,
		Readable: append(expandPaths(allow.Read, v.Workspace), sandbox.Resolve(i.Dir)),
		Writable: append(expandPaths(allow.Write, v.Workspace), sandbox.Resolve(i.data)),
	}
}

// widen returns what adds to the choices of the plugin, and returns the sandbox that
// follows.
func (i *Installed) widen(v bundles.Values) func(context.Context, core.Access) (*mcp.Confine, error) {
	return func(ctx context.Context, more core.Access) (*mcp.Confine, error) {
		var allow Manifest
		switch add := []string{more.Resource}; more.Scope {
		case core.ScopeNetwork:
			allow.Network = add
		case core.ScopeRead:
			allow.Read = add
		case core.ScopeWrite:
			allow.Write = add
		}
		if err := CheckAllow(allow); err != nil {
			return nil, err
		}
		err := SetChoices(ctx, i.home, i.Name, func(c *Choices) {
			c.Allow.Add(allow)
			allow = c.Allow
		})
		return i.confine(allow, v), err
	}
}

// Add adds the hosts and paths of another manifest.
func (m *Manifest) Add(more Manifest) {
	for _, list := range []struct {
		to   *[]string
		from []string
	}{{&m.Network, more.Network}, {&m.Read, more.Read}, {&m.Write, more.Write}} {
		for _, one := range list.from {
			if !slices.Contains(*list.to, one) {
				*list.to = append(slices.Clip(*list.to), one)
			}
		}
	}
}

// expandPaths replaces $WORKSPACE and $HOME in granted paths.
func expandPaths(paths []string, workspace string) []string {
	home, _ := os.UserHomeDir() // may be empty
	return (&Host{workspace: workspace, home: home}).expand(paths)
}

// ContextSource returns the context files as a source; nil without any.
func (i *Installed) ContextSource() core.ContextSource {
	if len(i.Context) == 0 {
		return nil
	}
	return &contextFiles{dir: i.Dir, name: i.Name, files: i.Context, told: map[string]bool{}}
}

// contextFiles tells each session the context files of a plugin once.
type contextFiles struct {
	dir, name string
	files     []string
	mu        sync.Mutex
	told      map[string]bool // sessions
}

// Context implements [core.ContextSource].
func (c *contextFiles) Context(_ context.Context, req core.ContextRequest) (blocks []core.Block, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[req.Session.ID] {
		return nil, nil
	}
	c.told[req.Session.ID] = true
	for _, at := range c.files {
		data, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(at)))
		if err != nil {
			return blocks, &Error{c.name, err}
		}
		blocks = append(blocks, core.Block{Source: "plugin " + c.name + ": " + at, Text: cleanText(string(data))})
	}
	return blocks, nil
}

// choicesFile is the file in the agent's home with what users set for plugins.
const choicesFile = "plugin-settings.json"

type choicesDocument struct {
	Version int                `json:"version"`
	Plugins map[string]Choices `json:"plugins"`
}

func readChoices(home string) (map[string]Choices, error) {
	file := filepath.Join(home, choicesFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Choices{}, nil
	}
	if err != nil {
		return nil, err
	}
	var doc choicesDocument
	if err := jsonpos.Decode(file, data, &doc); err != nil {
		return nil, err
	}
	if doc.Version != 1 {
		return nil, fmt.Errorf("%s has the unknown version %d: update agent", file, doc.Version)
	}
	return doc.Plugins, nil
}

// SetChoices changes what the user set for a plugin. It is safe with several
// processes.
func SetChoices(ctx context.Context, home, name string, change func(*Choices)) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	file := filepath.Join(home, choicesFile)
	lock := flock.New(file + ".lock")
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("%s: %w", lock.Path(), err)
	}
	defer lock.Close()
	all, err := readChoices(home)
	if err != nil {
		return err
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[string]Choices{}
	}
	c := all[name]
	change(&c)
	if all[name] = c; len(c.Values)+len(c.Secrets) == 0 && len(c.Allow.Read)+len(c.Allow.Write)+len(c.Allow.Network) == 0 {
		delete(all, name)
	}
	data, err := json.MarshalIndent(choicesDocument{1, all}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(data, '\n'), 0o600)
}

// CheckAllow reports what of a plugin's grants is invalid.
func CheckAllow(m Manifest) error {
	doc, err := jsonpos.Parse("allow", []byte("{}"))
	if err != nil {
		return err
	}
	if err := m.check(doc); err != nil {
		if e := (*jsonpos.Error)(nil); errors.As(err, &e) {
			return errors.Join(errors.New(e.Message + "; " + e.Hint))
		}
		return err
	}
	return nil
}
