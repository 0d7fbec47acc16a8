package setup

import (
	"log/slog"
	"slices"

	"github.com/spf13/pflag"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/permissions"
)

// FlagGroup is a set of flags that a command registers together.
type FlagGroup uint

// The groups of flags. A command registers those that it uses.
const (
	DirFlag         FlagGroup = 1 << iota // --cd
	WorkspaceFlags                        // --env, --add-dir
	SettingsFlags                         // --settings, --set
	BareFlag                              // --bare
	ProviderFlags                         // --provider, --model
	ProfileFlag                           // --profile
	PromptFlags                           // --effort, --system-prompt-append
	PermissionFlags                       // permission mode and rules
	ToolFlags                             // --allowed-tools, --disallowed-tools
	LimitFlags                            // rounds, turns, tokens, cost
	DebugFlag                             // --debug

	// PolicyFlags are for commands that apply the permission policy.
	PolicyFlags = DirFlag | WorkspaceFlags | SettingsFlags | BareFlag | PermissionFlags | ToolFlags
	// OverrideFlags override settings.
	OverrideFlags = SettingsFlags | ProviderFlags | ProfileFlag | PromptFlags | PermissionFlags | ToolFlags | LimitFlags
	// SessionFlags are for commands that run a session.
	SessionFlags = DirFlag | WorkspaceFlags | BareFlag | OverrideFlags | DebugFlag
)

// Flags are the flags that commands share.
type Flags struct {
	Dir          string        // --cd; "" is the working directory
	Mode         string        // --permission-mode
	SettingsFile string        // --settings
	UserFile     string        // takes the place of the user's settings
	Sets         []string      // --set
	Extra        []config.Flag // more overrides of settings, above those of flags

	environment         string
	addDirs             []string
	bare                bool
	model, provider     string
	effort              string
	profile             string
	promptAppend        string
	skipPermissions     bool
	allow, deny         []string
	allowed, disallowed []string
	maxRounds           int
	maxTurns            int
	maxTokens           int
	maxCost             float64
	debug               bool

	set *pflag.FlagSet
}

// Register adds the flags of groups to those of a command.
func (o *Flags) Register(f *pflag.FlagSet, groups FlagGroup) {
	o.set = f
	for _, g := range []struct {
		group    FlagGroup
		section  cmdutil.Section
		register func(*pflag.FlagSet)
	}{
		{DirFlag, cmdutil.WorkspaceSection, o.registerDir},
		{WorkspaceFlags, cmdutil.WorkspaceSection, o.registerWorkspace},
		{BareFlag, cmdutil.WorkspaceSection, o.registerBare},
		{ProviderFlags, cmdutil.ModelSection, o.registerProvider},
		{ProfileFlag, cmdutil.ModelSection, o.registerProfile},
		{PromptFlags, cmdutil.ModelSection, o.registerPrompt},
		{PermissionFlags, cmdutil.PermissionSection, o.registerPermissions},
		{ToolFlags, cmdutil.PermissionSection, o.registerTools},
		{LimitFlags, cmdutil.LimitSection, o.registerLimits},
		{SettingsFlags, cmdutil.SettingsSection, o.registerSettings},
		{DebugFlag, cmdutil.DebugSection, o.registerDebug},
	} {
		if groups&g.group != 0 {
			cmdutil.FlagSection(f, g.section, g.register)
		}
	}
}

func (o *Flags) registerDir(f *pflag.FlagSet) {
	f.StringVarP(&o.Dir, "cd", "C", "", "work in `DIR`")
}

func (o *Flags) registerWorkspace(f *pflag.FlagSet) {
	f.StringVar(&o.environment, "env", "", "run tools in `ENV`: local, docker:IMAGE, docker:@CONTAINER, ssh:[USER@]HOST[:PORT][:/DIR] or k8s:[NAMESPACE/]POD[:DIR]")
	cmdutil.RepeatVar(f, &o.addDirs, "add-dir", "add `DIR` to the workspace")
}

func (o *Flags) registerBare(f *pflag.FlagSet) {
	f.BoolVar(&o.bare, "bare", false, "disable plugins, MCP servers, skills and AGENTS.md")
}

func (o *Flags) registerProvider(f *pflag.FlagSet) {
	f.StringVarP(&o.model, "model", "m", "", "model to use, as `[PROVIDER/]MODEL`")
	f.StringVar(&o.provider, "provider", "", "model provider `NAME`: see agent providers list")
}

func (o *Flags) registerProfile(f *pflag.FlagSet) {
	f.StringVar(&o.profile, "profile", "", "prompt and tool `PROFILE`: auto, default, openai, anthropic or gemini")
}

func (o *Flags) registerPrompt(f *pflag.FlagSet) {
	f.StringVar(&o.effort, "effort", "", "reasoning effort `LEVEL`: none, low, medium, high or xhigh")
	f.StringVar(&o.promptAppend, "system-prompt-append", "", "append `TEXT` to the system prompt")
}

func (o *Flags) registerPermissions(f *pflag.FlagSet) {
	f.StringVar(&o.Mode, "permission-mode", "", "permission `MODE` when no rule matches: plan, read-only, default, workspace, accept-edits or bypass")
	f.BoolVar(&o.skipPermissions, "dangerously-skip-permissions", false, "alias for --permission-mode bypass")
	cmdutil.RepeatVar(f, &o.allow, "allow", "allow calls that match `RULE`, such as 'shell(go test *)'")
	cmdutil.RepeatVar(f, &o.deny, "deny", "deny calls that match `RULE`, in every mode")
}

func (o *Flags) registerTools(f *pflag.FlagSet) {
	cmdutil.ListVar(f, &o.allowed, "allowed-tools", "use only tools with these `NAMES`; * matches any characters")
	cmdutil.ListVar(f, &o.disallowed, "disallowed-tools", "do not use tools with these `NAMES`")
}

func (o *Flags) registerLimits(f *pflag.FlagSet) {
	f.IntVar(&o.maxRounds, "max-rounds", 0, "stop after `N` tool rounds per prompt (0 = unlimited; default agent.maxRounds)")
	f.IntVar(&o.maxTurns, "max-turns", 0, "stop after `N` user and assistant turns in the session (0 = unlimited)")
	f.IntVar(&o.maxTokens, "max-session-tokens", 0, "stop after `N` tokens in the session (0 = unlimited)")
	f.Float64Var(&o.maxCost, "max-cost", 0, "stop when the session has cost `USD`, if prices are known (0 = unlimited)")
}

func (o *Flags) registerSettings(f *pflag.FlagSet) {
	f.StringVar(&o.SettingsFile, "settings", "", "load additional settings from `FILE` (overrides other files)")
	cmdutil.RepeatVar(f, &o.Sets, "set", "override a setting, as `KEY=VALUE`")
}

func (o *Flags) registerDebug(f *pflag.FlagSet) {
	f.BoolVar(&o.debug, "debug", false, "write debug logs to stderr")
}

// AddDirs adds directories to those of --add-dir.
func (o *Flags) AddDirs(dirs ...string) { o.addDirs = slices.Concat(o.addDirs, dirs) }

// SetModel sets --model.
func (o *Flags) SetModel(name string) { o.model = name }

// Local reports whether tools work on this machine: --env says so.
func (o *Flags) Local() bool {
	e, err := parseEnvironment(o.environment)
	return err == nil && e.Local()
}

// Logger returns the logger of --debug, which writes to stderr; nil without it.
func (o *Flags) Logger(s *cmdutil.IO) *slog.Logger {
	if !o.debug {
		return nil
	}
	return slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Changed reports whether a flag of the command was given.
func (o *Flags) Changed(name string) bool {
	return o.set != nil && o.set.Changed(name)
}

// Given returns the flags of the command that were given, with their values.
func (o *Flags) Given() map[string]string {
	given := map[string]string{}
	if o.set != nil {
		o.set.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	}
	return given
}

// overrides returns the settings that the given flags override.
func (o *Flags) overrides() []config.Flag {
	var out []config.Flag
	add := func(flag, key string, value any) {
		if o.Changed(flag) {
			out = append(out, config.Flag{Name: "--" + flag, Key: key, Value: value})
		}
	}
	add("profile", "agent.profile", o.profile)
	add("effort", "agent.effort", o.effort)
	add("permission-mode", "permissions.mode", o.Mode)
	add("mode", "permissions.mode", o.Mode) // of permissions check
	if o.skipPermissions {
		add("dangerously-skip-permissions", "permissions.mode", string(permissions.ModeBypass))
	}
	add("allow", "permissions.allow", o.allow)
	add("deny", "permissions.deny", o.deny)
	add("allowed-tools", "tools.allowed", o.allowed)
	add("disallowed-tools", "tools.disallowed", o.disallowed)
	add("max-rounds", "agent.maxRounds", o.maxRounds)
	add("max-turns", "agent.maxTurns", o.maxTurns)
	add("max-session-tokens", "agent.maxSessionTokens", o.maxTokens)
	add("max-cost", "agent.maxCostUsd", o.maxCost)
	add("system-prompt-append", "agent.systemPrompt", o.promptAppend)
	return append(out, o.Extra...)
}
