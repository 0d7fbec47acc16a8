package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/trust"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/hooks"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/model/facts"
	"github.com/seed-009c0928/agent/core/model/wire"
	"github.com/seed-009c0928/agent/core/profile"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// Setup is what the settings and flags ask for.
type Setup struct {
	*config.Loaded
	env          func(string) string
	UserHome     string
	Dir          string
	addDirs      []string
	bundled      cmdutil.Bundled
	Trusted      bool // the directory is trusted
	advice       string
	bare         bool // --bare
	found        *foundServers
	foundBundles *foundBundles // see bundles
	Environment  Environment
	keyring      cmdutil.Keyring
	hooks        []hooks.Definition
	problems     []hooks.Problem // with hooks
	pluginHooks  bool            // hooks has those of the plugins

	lookForBundles sync.Once

	catalog   func() facts.Catalog // of the last update; nil is none
	transport http.RoundTripper    // shared by the providers; nil gives each its own
	replays   bool                 // transport replays a recording
	hidden    *store.Hidden        // what the recording must not have; nil without one
}

// Load reads the settings and prints their warnings.
func (o *Flags) Load(s *cmdutil.IO) (*Setup, error) {
	place, err := parseEnvironment(o.environment)
	if err != nil {
		return nil, err
	}
	dir, err := o.workingDir(s.Cwd)
	if err != nil {
		return nil, err
	}
	from := config.LoadOptions{
		Env: s.Env, Keyring: s.Keyring, Managed: s.ManagedSettings, Home: cmdutil.UserHome(), Cwd: dir, UserFile: o.UserFile, SettingsFile: o.SettingsFile, Sets: o.Sets,
		Flags: o.overrides(), Provider: o.provider, Model: o.model,
	}
	from.Trusted, from.Advice = Trusted(config.Home(from), dir)
	loaded, err := config.Load(from)
	if err != nil {
		return nil, err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintf(s.Err, "agent: %s\n", w)
	}
	set := &Setup{
		Loaded: loaded, env: s.Env, UserHome: from.Home, Dir: dir, bundled: s.Bundled, Trusted: from.Trusted, advice: from.Advice, bare: o.bare, Environment: place,
	}
	if w := set.langchainWarning(); w != "" {
		fmt.Fprintf(s.Err, "agent: %s\n", w)
	}
	if err := set.loadHooks(); err != nil {
		return nil, err
	}
	for _, p := range set.problems {
		if !slices.Contains(claudeSources, p.Source.Name) {
			fmt.Fprintf(s.Err, "agent: hooks: %s\n", display.OneLine(p.String(), 300))
		}
	}
	set.catalog = sync.OnceValue(set.loadCatalog)
	for _, d := range o.addDirs {
		if !filepath.IsAbs(d) {
			d = filepath.Join(s.Cwd, d)
		}
		set.addDirs = append(set.addDirs, d)
	}
	if err := set.checkSandbox(); err != nil {
		return nil, err
	}
	policy, err := set.Policy() // finds invalid rules early
	if err != nil {
		return nil, err
	}
	for _, w := range policy.Warnings() {
		if !set.untrustedFile(w) { // a warning of the settings has said it
			fmt.Fprintf(s.Err, "agent: %s\n", w)
		}
	}
	return set, nil
}

// untrustedFile reports whether a warning is about the settings file of an
// untrusted directory.
func (s *Setup) untrustedFile(warning string) bool {
	return slices.ContainsFunc(s.Files, func(f config.File) bool {
		return f.Status == config.FileUntrusted && strings.HasPrefix(warning, f.Path+": ")
	})
}

// workingDir returns the working directory without symbolic links.
func (o *Flags) workingDir(cwd string) (string, error) {
	dir := cwd
	if o.Dir != "" {
		if dir = o.Dir; !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", cmdutil.Usagef("--cd %s: not a readable directory", o.Dir)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", cmdutil.Usagef("--cd %s: %w", o.Dir, err)
	}
	return dir, nil
}

// CheckRules reports the first rule of loaded settings that is invalid, for a
// session in dir.
func CheckRules(s *cmdutil.IO, loaded *config.Loaded, dir string) error {
	_, err := (&Setup{Loaded: loaded, UserHome: cmdutil.UserHome(), Dir: dir}).Policy()
	return err
}

// Mode returns the permission mode.
func (s *Setup) Mode() string { return s.Settings.Permissions.Mode }

// AgentOptions returns the options of the agent.
func (s *Setup) AgentOptions(log *slog.Logger) agent.Options {
	configured, _ := s.Hooks()
	o := agent.Options{
		Dir: s.Dir, AddDirs: s.addDirs, Version: cmdutil.Version(), Logger: log, Subreaper: true,
		Allowed: s.Settings.Tools.Allowed, Disallowed: s.Settings.Tools.Disallowed, PassEnv: s.Settings.Tools.PassEnv,
		ToolSearch:  agent.ToolSearch{Budget: s.Settings.Tools.SearchBudget, Off: s.Settings.Tools.Search == "off", ByCall: s.Settings.Tools.Search == "call"},
		Permissions: s.permissionOptions(),
		Sandbox:     s.sandbox(), MaxSubagentDepth: s.Settings.Agent.MaxSubagentDepth,
		Hidden:      s.hidden,
		Hooks:       configured,
		NoSnapshots: !s.Settings.Session.Undo,
		Secrets:     s.KnownSecrets(), UnguardedWrites: !s.Settings.Tools.ReadBeforeWrite,
		Store: agent.StoreOptions{
			Optional: !s.Settings.Session.Strict,
			MaxBytes: int64(s.Settings.Session.MaxContextMB) << 20,
			MaxAge:   time.Duration(s.Settings.Session.ContextMaxAgeDays) * 24 * time.Hour,
		},
	}
	if s.Settings.Graph.Enabled != "off" {
		o.Symbols = symbolChanges
	}
	_, o.WebSearch = s.webSearch()
	if self, err := os.Executable(); err == nil {
		o.PDFCommand = []string{self, InternalPDF}
	}
	o.MCP = s.mcpOptions()
	o.Secrets = append(append(o.Secrets, mcpSecrets(o.MCP.Servers)...), s.bundleSecrets()...)
	if s.Settings.Session.Save {
		o.Home = s.Home
	}
	o.Skills = s.SkillOptions()
	if s.Settings.Plugins.Enabled && !s.bare {
		o.Plugins = s.PluginOptions()
	}
	return o
}

func (s *Setup) permissionOptions() permissions.Options {
	return permissions.Options{Sets: append(s.ruleSets(), s.modeSet()), AgentHome: s.Home, Confine: s.Trusted}
}

// Policy returns the permission policy. The error is an invalid rule.
func (s *Setup) Policy() (*permissions.Policy, error) {
	o := s.permissionOptions()
	o.Home, o.Workspace = s.UserHome, append([]string{s.Dir}, s.addDirs...)
	p, err := permissions.New(o)
	if err != nil {
		var rule *permissions.RuleError
		byFlag := errors.As(err, &rule) && rule.Where == string(permissions.SourceFlag)
		return nil, &config.Error{Key: "permissions", Err: err, CommandLine: byFlag}
	}
	return p, nil
}

// Profile returns the profile of the settings or, if that is "auto", the one for
// the model.
func (s *Setup) Profile(provider, modelName string) (core.Profile, error) {
	name := s.Settings.Agent.Profile
	if name == "auto" {
		name = profile.For(provider, modelName)
	}
	return profile.New(name, provider, modelName, profile.Options{
		Append: s.Settings.Agent.SystemPrompt, Bare: s.bare,
		Facts: func(provider, modelName string) profile.Facts {
			m := s.facts(provider, modelName)
			f := profile.Facts{Name: m.Name, Cutoff: m.Cutoff, ContextWindow: m.Context}
			if m.Context == 0 {
				f.ContextWindow = assumedWindow(provider)
				f.WindowNote = fmt.Sprintf("%s is not known, %d tokens are assumed: run agent models update, or set models.%s.contextWindow", modelName, f.ContextWindow, modelName)
			}
			return f
		},
	})
}

// SessionOptions fills in the settings of a session.
func (s *Setup) SessionOptions(o *agent.SessionOptions) (err error) {
	a := s.Settings.Agent
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	o.Request = core.RequestOptions{Effort: model.Effort(a.Effort), MaxTokens: a.MaxTokens, Temperature: a.Temperature, ProviderOptions: s.requestOptions()}
	o.Limits = core.Limits{
		MaxTurns: a.MaxTurns, MaxRounds: a.MaxRounds, MaxInputTokens: a.MaxInputTokens, MaxSessionTokens: a.MaxSessionTokens, MaxCost: a.MaxCostUSD, WarnAt: a.WarnAt, CompactAt: a.CompactAt,
		CommandTimeout: ms(a.CommandTimeoutMs), MaxCommandTimeout: ms(a.MaxCommandTimeoutMs),
		ParallelCalls: a.ParallelCalls, NoLoopDetection: !a.LoopDetection, LoopWindow: a.LoopWindow,
	}
	o.Cost = s.Prices()
	if len(s.Settings.Providers.Fallback) == 0 { // else each provider retries
		o.Retry = s.retry()
	}
	provider, modelName := s.Settings.Providers.Default, s.Loaded.Model()
	if o.Provider != nil {
		info := o.Provider.Info()
		provider, modelName = info.Name, cmp.Or(o.Model, info.Model)
	}
	o.Profile, err = s.Profile(provider, modelName)
	return err
}

// requestOptions returns the request options of each provider.
func (s *Setup) requestOptions() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, k := range s.ProviderKinds() {
		options := k.Values(&s.Settings.Providers).options
		if len(options) == 0 {
			continue
		}
		if text, err := json.Marshal(options); err == nil { // it was JSON when it was read
			all[k.Name] = text
		}
	}
	return all
}

// withTimeouts sets the time limits of a provider's requests.
func (s *Setup) withTimeouts(c wire.Config) wire.Config {
	limit := func(ms int) time.Duration {
		if ms == 0 {
			return -1 // none
		}
		return time.Duration(ms) * time.Millisecond
	}
	t := s.Settings.Timeouts
	c.FirstByteTimeout, c.IdleTimeout, c.TotalTimeout = limit(t.FirstByteMs), limit(t.IdleMs), limit(t.TotalMs)
	return c
}

// retry returns the retry policy.
func (s *Setup) retry() model.RetryPolicy {
	r := s.Settings.Retry
	if !r.Enabled {
		return model.RetryPolicy{}
	}
	policy := model.DefaultRetry
	policy.Max, policy.Broken, policy.MaxRetryAfter = r.MaxRetries, r.MaxBroken, time.Duration(r.MaxWaitMs)*time.Millisecond
	policy.Base, policy.Cap = time.Duration(r.BaseDelayMs)*time.Millisecond, time.Duration(r.MaxDelayMs)*time.Millisecond
	if !r.EnableJitter {
		policy.Jitter = 0
	}
	return policy
}

// ruleSets groups the rules by their source.
func (s *Setup) ruleSets() []permissions.RuleSet {
	type place struct{ line, column int }
	var sets []permissions.RuleSet
	places := map[string]map[permissions.List][]place{} // of each set's rules
	at := map[string]int{}
	for _, r := range s.Rules {
		file, line, column := splitPosition(r.Source.Where)
		i, ok := at[file]
		if !ok {
			i = len(sets)
			at[file] = i
			places[file] = map[permissions.List][]place{}
			sets = append(sets, permissions.RuleSet{
				Source: ruleSource(r.Source.Layer), Base: s.ruleBase(r.Source.Layer), Trusted: r.Trusted, Refused: r.Refused,
				Position: func(list permissions.List, n int) (int, int) {
					if all := places[file][list]; n < len(all) {
						return all[n].line, all[n].column
					}
					return 0, 0
				},
			})
			if line > 0 {
				sets[i].File = file
			}
		}
		list := permissions.List(r.Verdict)
		if r.When != nil {
			list = permissions.ListWhen
		}
		addRule(&sets[i].Settings, list, r)
		places[file][list] = append(places[file][list], place{line, column})
	}
	return sets
}

func addRule(set *permissions.Settings, list permissions.List, r config.Rule) {
	switch list {
	case permissions.ListWhen:
		set.When = append(set.When, *r.When)
	case permissions.ListAllow:
		set.Allow = append(set.Allow, r.Text)
	case permissions.ListAsk:
		set.Ask = append(set.Ask, r.Text)
	default:
		set.Deny = append(set.Deny, r.Text)
	}
}

// modeSet is a rule set with only the mode, so that the policy knows its source.
func (s *Setup) modeSet() permissions.RuleSet {
	from := s.Loaded.Source("permissions.mode")
	set := permissions.RuleSet{Source: ruleSource(from.Layer), Trusted: true}
	if file, line, _ := splitPosition(from.Where); line > 0 {
		set.File = file
	}
	if from.Layer != config.LayerDefault {
		set.Settings.Mode = s.Mode()
	}
	return set
}

// ruleBase is the directory of relative globs, which only a project's rules have.
func (s *Setup) ruleBase(l config.Layer) string {
	if l == config.LayerProject {
		return s.Dir
	}
	return ""
}

func ruleSource(l config.Layer) permissions.Source {
	switch l {
	case config.LayerManaged:
		return permissions.SourceManaged
	case config.LayerUser:
		return permissions.SourceUser
	case config.LayerProject:
		return permissions.SourceProject
	}
	return permissions.SourceFlag
}

// splitPosition splits "file:line:column". The line is 0 if where is only a name.
func splitPosition(where string) (file string, line, column int) {
	parts := strings.Split(where, ":")
	if n := len(parts); n >= 3 {
		line, err := strconv.Atoi(parts[n-2])
		column, err2 := strconv.Atoi(parts[n-1])
		if err == nil && err2 == nil {
			return strings.Join(parts[:n-2], ":"), line, column
		}
	}
	return where, 0, 0
}

// ManagedSettings returns the path of the managed settings file, "" for none.
func ManagedSettings(env func(string) string) string {
	switch runtime.GOOS {
	case "windows":
		if dir := env("ProgramData"); dir != "" {
			return filepath.Join(dir, "agent", "settings.json")
		}
		return ""
	case "darwin":
		return "/Library/Application Support/agent/settings.json"
	}
	return "/etc/agent/settings.json"
}

// IsRuleList reports whether a setting is a list of permission rules, to which all
// layers add.
func IsRuleList(key string) bool {
	return key == "permissions.allow" || key == "permissions.ask" || key == "permissions.deny" || key == "permissions.when"
}

// Trusted reports whether a directory is trusted and, if not, why or what to do.
func Trusted(home, dir string) (bool, string) {
	if home == "" {
		return false, ""
	}
	state, err := trust.Open(home).Check(dir)
	if err != nil {
		return false, err.Error()
	}
	return state.Status == trust.Trusted, state.Advice()
}
