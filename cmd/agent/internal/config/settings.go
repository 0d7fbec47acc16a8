package config

import (
	"encoding/json"

	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/permissions"
)

// settingsVersion is the version of the settings format.
const settingsVersion = 1

// Settings are all settings. Tags: doc is the documentation, default the
// default in JSON, enum the allowed values, min and max bound a number, env
// names the environment variable that sets a key, secret:"all" makes all headers
// secret, scope:"user" forbids a key in a project's file, merge:"append" appends a list to those of lower layers.
type Settings struct {
	Schema      string             `json:"$schema,omitempty" doc:"URL of the JSON Schema, for editors."`
	Version     int                `json:"version" default:"1" min:"1" max:"1" doc:"Version of the settings format."`
	Providers   Providers          `json:"providers" doc:"Model providers."`
	Models      modelTable         `json:"models" scope:"user" doc:"Properties of models, by MODEL or PROVIDER/MODEL: contextWindow and maxOutput in tokens, reasoning and vision, and inputPrice, cachedInputPrice, cacheWritePrice and outputPrice in USD per million tokens. They override the built-in table."`
	Agent       agentSettings      `json:"agent" doc:"Sessions and their limits."`
	Retry       retrySettings      `json:"retry" doc:"Retries after transient provider failures."`
	Timeouts    timeoutSettings    `json:"timeouts" doc:"Time limits of model calls."`
	Permissions permissionSettings `json:"permissions" doc:"Permission rules and mode."`
	Sandbox     Sandbox            `json:"sandbox" doc:"Sandbox levels of the processes that the agent starts; see sandbox.md."`
	Tools       toolSettings       `json:"tools" doc:"Tools that the model gets."`
	Hooks       Object             `json:"hooks" doc:"Hooks by event, in the form of Claude Code's; those of all files apply. See hooks.md."`
	Plugins     pluginSettings     `json:"plugins" doc:"Plugins; see plugins.md."`
	Web         webSettings        `json:"web" doc:"Search of the web; see web.md."`
	Graph       graphSettings      `json:"graph" doc:"The dependency graph of the code; see graph.md."`
	LSP         lspSettings        `json:"lsp" doc:"Language servers; see lsp.md."`
	Task        taskSettings       `json:"task" doc:"Tasks that commands verify; see tasks.md."`
	MCP         mcpSettings        `json:"mcp" doc:"MCP servers; see mcp.md. agent mcp add writes them."`
	Skills      skillSettings      `json:"skills" doc:"Skills; see skills.md."`
	Service     serviceSettings    `json:"service" doc:"Sessions for other programs and machines, with agent serve and agent worker; see service.md."`
	Session     sessionSettings    `json:"session" doc:"Storage of sessions."`
	Terminal    terminalSettings   `json:"terminal" doc:"The interactive session."`
	Telemetry   telemetrySettings  `json:"telemetry" doc:"Traces, metrics and logs for an OpenTelemetry collector; see telemetry.md. The OTEL_ variables take precedence."`
	Replay      replaySettings     `json:"replay" doc:"Comparison with a recording; see recording.md."`
}

// Providers are the settings of the model providers.
type Providers struct {
	Default   string            `json:"default" default:"\"local\"" env:"AGENT_PROVIDER" doc:"Default provider: one of the following, a preset, or a NAME that you define; see providers.md."`
	Fallback  []string          `json:"fallback" scope:"user" doc:"Fallbacks when all retries of the provider failed: PROVIDER or PROVIDER/MODEL, tried in order."`
	Local     localProvider     `json:"local" doc:"A server on this machine or network with the OpenAI chat API: Ollama, LM Studio, vLLM, Docker Model Runner."`
	OpenAI    openAIProvider    `json:"openai" doc:"OpenAI, or a service with its API."`
	Anthropic anthropicProvider `json:"anthropic" doc:"Anthropic."`
	Gemini    geminiProvider    `json:"gemini" doc:"Google's Gemini: the Developer API, or Vertex AI."`
	GitHub    gitHubProvider    `json:"github" doc:"GitHub Models."`
	Azure     azureProvider     `json:"azure" doc:"Azure OpenAI."`
	Foundry   foundryProvider   `json:"foundry" doc:"Azure AI Foundry: a project in the cloud, or Foundry Local on this machine."`

	// Named are presets and providers that the user defines, which are further
	// members of the object.
	Named map[string]*NamedProvider `json:"-" jsonpos:"others"`
}

// Object is a JSON object that is passed on unchanged.
type Object map[string]json.RawMessage

// localProvider is an OpenAI-compatible server that the user runs.
type localProvider struct {
	BaseURL string `json:"baseUrl" default:"\"http://localhost:11434/v1\"" scope:"user" format:"url" doc:"Base URL of the server."`
	Model   string `json:"model" default:"\"llama3.3:latest\"" doc:"Model, by its name on the server."`
	APIKey  Secret `json:"apiKey" scope:"user" doc:"API key, if the server needs one."`
	Options Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// openAIProvider is OpenAI.
type openAIProvider struct {
	APIKey       Secret `json:"apiKey" scope:"user" env:"OPENAI_API_KEY" doc:"API key."`
	Model        string `json:"model" default:"\"gpt-5-mini\"" doc:"Model."`
	BaseURL      string `json:"baseUrl" default:"\"https://api.openai.com/v1\"" scope:"user" format:"url" doc:"Base URL of the service."`
	API          string `json:"api" default:"\"responses\"" enum:"responses,chat" doc:"API to use. Compatible services mostly offer chat only."`
	Organization string `json:"organization" scope:"user" doc:"Organization to charge, if the key has several."`
	Project      string `json:"project" scope:"user" doc:"Project to charge, if the key has several."`
	Options      Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// anthropicProvider is Anthropic.
type anthropicProvider struct {
	APIKey  Secret `json:"apiKey" scope:"user" env:"ANTHROPIC_API_KEY" doc:"API key."`
	Model   string `json:"model" default:"\"claude-sonnet-4-5\"" doc:"Model."`
	BaseURL string `json:"baseUrl" default:"\"https://api.anthropic.com/v1\"" scope:"user" format:"url" doc:"Base URL of the service."`
	Options Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// geminiProvider is Google's Gemini.
type geminiProvider struct {
	APIKey      Secret `json:"apiKey" scope:"user" env:"GOOGLE_API_KEY,GEMINI_API_KEY" doc:"API key of the Developer API, or of Vertex AI in express mode."`
	Model       string `json:"model" default:"\"gemini-2.5-flash\"" doc:"Model."`
	BaseURL     string `json:"baseUrl" scope:"user" format:"url" doc:"Base URL of the service. Default: the Developer API, or the Vertex AI location."`
	UseVertexAI bool   `json:"useVertexai" default:"false" scope:"user" doc:"Use Vertex AI; without a key, with gcloud's application default credentials."`
	Project     string `json:"project" scope:"user" env:"GOOGLE_CLOUD_PROJECT" doc:"Google Cloud project for Vertex AI."`
	Location    string `json:"location" scope:"user" env:"GOOGLE_CLOUD_LOCATION" doc:"Location for Vertex AI, such as europe-west4. Default: global."`
	Options     Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// gitHubProvider is GitHub Models.
type gitHubProvider struct {
	Token    Secret `json:"token" scope:"user" env:"GITHUB_TOKEN" doc:"Token with the scope models:read. Default: the output of gh auth token."`
	Model    string `json:"model" default:"\"openai/gpt-4o-mini\"" doc:"Model, as PUBLISHER/NAME."`
	Endpoint string `json:"endpoint" default:"\"https://models.github.ai/inference\"" scope:"user" format:"url" doc:"Base URL of the service."`
	Org      string `json:"org" scope:"user" doc:"Organization to charge."`
	Options  Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// azureProvider is Azure OpenAI.
type azureProvider struct {
	APIKey     Secret `json:"apiKey" scope:"user" env:"AZURE_OPENAI_API_KEY" doc:"API key. Default: a token from az account get-access-token."`
	Endpoint   string `json:"endpoint" scope:"user" format:"url" env:"AZURE_OPENAI_ENDPOINT" doc:"URL of the resource, such as https://NAME.openai.azure.com."`
	Deployment string `json:"deployment" doc:"Deployment, used as the model's name."`
	APIVersion string `json:"apiVersion" default:"\"2024-06-01\"" scope:"user" doc:"API version: a date, or v1."`
	BaseModel  string `json:"baseModel" doc:"Model of the deployment, for its price and limits."`
	Options    Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// foundryProvider is Azure AI Foundry.
type foundryProvider struct {
	Mode            string `json:"mode" default:"\"local\"" enum:"local,cloud" scope:"user" doc:"Use Foundry Local on this machine, or a project in the cloud."`
	ModelAlias      string `json:"modelAlias" default:"\"phi-4\"" doc:"Alias of the model in Foundry Local."`
	BaseURL         string `json:"baseUrl" scope:"user" format:"url" doc:"Base URL of Foundry Local. Default: what its service reports."`
	ProjectEndpoint string `json:"projectEndpoint" scope:"user" format:"url" doc:"URL of the cloud project."`
	ModelDeployment string `json:"modelDeployment" default:"\"gpt-4o\"" doc:"Deployment in the cloud project."`
	APIKey          Secret `json:"apiKey" scope:"user" env:"AZURE_FOUNDRY_API_KEY" doc:"API key of the project. Default: a token from az account get-access-token."`
	Options         Object `json:"options" scope:"user" doc:"Members added unchanged to each request, for parameters without a setting."`
}

// modelTable maps names of models to their properties.
type modelTable map[string]modelFacts

// modelFacts are properties of a model that override the built-in table.
type modelFacts struct {
	ContextWindow    int      `json:"contextWindow" doc:"Maximum tokens of a request and its response."`
	MaxOutput        int      `json:"maxOutput" doc:"Maximum tokens of a response."`
	Reasoning        *bool    `json:"reasoning" doc:"Whether it is a reasoning model."`
	Vision           *bool    `json:"vision" doc:"Whether it accepts images."`
	InputPrice       *float64 `json:"inputPrice" doc:"USD per million input tokens."`
	CachedInputPrice *float64 `json:"cachedInputPrice" doc:"USD per million cached input tokens."`
	CacheWritePrice  *float64 `json:"cacheWritePrice" doc:"USD per million tokens written to the cache."`
	OutputPrice      *float64 `json:"outputPrice" doc:"USD per million output tokens."`
}

// agentSettings configures sessions.
type agentSettings struct {
	SystemPrompt        string   `json:"systemPrompt" doc:"Text appended to the system prompt."`
	MaxTokens           int      `json:"maxTokens" default:"0" min:"0" doc:"Maximum tokens of one response; 0 is the provider's default."`
	Temperature         *float64 `json:"temperature" min:"0" max:"2" doc:"Temperature of the model. Default: the provider's."`
	PlanModel           string   `json:"planModel" doc:"Model in permission mode plan: [PROVIDER/]MODEL. Default: the same as otherwise."`
	PlanDir             string   `json:"planDir" scope:"user" doc:"Directory for the plans of permission mode plan; ~/ is your home directory, another path is in the working directory. Default: plans in the agent's directory."`
	Effort              string   `json:"effort" enum:"none,low,medium,high,xhigh" doc:"Reasoning effort. Default: the provider's."`
	MaxRounds           int      `json:"maxRounds" default:"50" min:"0" doc:"Maximum tool rounds per prompt; 0 is no limit."`
	MaxTurns            int      `json:"maxTurns" default:"0" min:"0" doc:"Maximum user and assistant turns of the session; 0 is no limit."`
	MaxInputTokens      int      `json:"maxInputTokens" default:"0" min:"0" doc:"Maximum tokens used per prompt; 0 is no limit."`
	MaxSessionTokens    int      `json:"maxSessionTokens" default:"0" min:"0" doc:"Maximum tokens used in the session; 0 is no limit."`
	MaxCostUSD          float64  `json:"maxCostUsd" default:"0" min:"0" doc:"Maximum cost of the session in USD, if prices are known; 0 is no limit."`
	WarnAt              float64  `json:"warnAt" default:"0.8" min:"0" max:"1" doc:"Fraction of a token limit at which to warn."`
	CommandTimeoutMs    int      `json:"commandTimeoutMs" default:"10000" min:"1" doc:"Timeout of a command in milliseconds, unless its call sets one."`
	MaxCommandTimeoutMs int      `json:"maxCommandTimeoutMs" default:"600000" min:"1" doc:"Longest timeout that a call may set, in milliseconds."`
	ParallelCalls       int      `json:"parallelCalls" default:"8" min:"1" doc:"Maximum number of read-only tool calls that run in parallel."`
	LoopDetection       bool     `json:"loopDetection" default:"true" doc:"Warn a model that repeats its tool calls."`
	LoopWindow          int      `json:"loopWindow" default:"10" min:"2" doc:"Number of recent calls searched for repetitions."`
	MaxSubagentDepth    int      `json:"maxSubagentDepth" default:"1" min:"1" max:"3" doc:"Levels of subagents: with 2, a subagent can start others."`
	Profile             string   `json:"profile" default:"\"auto\"" enum:"auto,default,openai,anthropic,gemini" doc:"System prompt and built-in tools for a family of models; auto selects by the model's name."`
	CompactAt           float64  `json:"compactAt" default:"0.85" min:"0" max:"1" doc:"Fraction of the model's context window at which old turns are replaced by a summary; 0 is never."`
	CatalogURL          string   `json:"catalogUrl" default:"\"https://models.dev/api.json\"" scope:"user" format:"url" doc:"Address of the catalog of agent models update, in the form of the default."`
}

// retrySettings configures retries of failed requests.
type retrySettings struct {
	Enabled      bool `json:"enabled" default:"true" doc:"Retry requests after transient failures."`
	MaxRetries   int  `json:"maxRetries" default:"3" min:"0" max:"20" doc:"Maximum number of retries of a request that fails before its answer begins."`
	MaxBroken    int  `json:"maxBrokenRetries" default:"5" min:"0" max:"20" doc:"Maximum number of retries of an interrupted answer, and of requests to a server that answered before and is gone."`
	MaxWaitMs    int  `json:"maxRetryAfterMs" default:"300000" min:"0" doc:"Longest wait that a provider may ask for, in milliseconds; 0 is no limit."`
	BaseDelayMs  int  `json:"baseDelayMs" default:"1000" min:"0" doc:"Delay before the first retry in milliseconds; it doubles with each retry."`
	MaxDelayMs   int  `json:"maxDelayMs" default:"10000" min:"0" doc:"Longest delay in milliseconds, unless the provider asks for more."`
	EnableJitter bool `json:"enableJitter" default:"true" doc:"Vary delays at random by up to a quarter."`
}

// timeoutSettings are the time limits of a model call.
type timeoutSettings struct {
	FirstByteMs int `json:"firstByteMs" default:"120000" min:"0" doc:"Longest wait for the beginning of an answer in milliseconds; 0 is no limit."`
	IdleMs      int `json:"idleMs" default:"180000" min:"0" doc:"Longest silence within an answer in milliseconds; 0 is no limit."`
	TotalMs     int `json:"totalMs" default:"1800000" min:"0" doc:"Longest time for one answer in milliseconds; 0 is no limit."`
}

// permissionSettings are the permission rules and the mode.
type permissionSettings struct {
	Mode  string             `json:"mode" default:"\"default\"" enum:"plan,read-only,default,workspace,accept-edits,bypass" doc:"What happens when no rule matches. A project's file can only make it stricter."`
	Allow []string           `json:"allow" merge:"append" doc:"Allow rules, such as shell(go test *). Those of untrusted directories are ignored."`
	Ask   []string           `json:"ask" merge:"append" doc:"Ask rules: matching calls need approval."`
	Deny  []string           `json:"deny" merge:"append" doc:"Deny rules; they apply in every mode."`
	When  []permissions.When `json:"when" merge:"append" doc:"Rules with conditions: objects with if, then, why, match and notMatch; see permissions.md. Of untrusted directories, only those that ask or deny apply."`
}

// Sandbox configures how child processes are confined.
type Sandbox struct {
	Shell      string   `json:"shell" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for commands. auto is the best available level, or none, and then more calls need approval; require refuses to run commands without one; namespace and landlock select a level."`
	Skills     string   `json:"skills" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for scripts of skills."`
	Plugins    string   `json:"plugins" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for plugins."`
	MCP        string   `json:"mcp" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for MCP servers on this machine."`
	MCPServers string   `json:"mcpServers" default:"\"project\"" enum:"project,all,none" scope:"user" doc:"MCP servers that are confined without sandbox in their entry: those in .mcp.json, all, or none. They see the workspace, programs and caches, and have the network."`
	Home       string   `json:"home" default:"\"listed\"" enum:"masked,listed,open" scope:"user" doc:"What processes in the sandbox see of your home directory besides the workspace. listed: toolchains, caches and the settings that builds need; masked: only programs in PATH; open: everything except secrets."`
	Writable   []string `json:"writable" merge:"append" scope:"user" doc:"Files and directories besides the workspace that commands may write; ~/ is your home directory."`
	Masked     []string `json:"masked" merge:"append" scope:"user" doc:"Files and directories that commands cannot read, besides the built-in list of secrets. The last path element may be a pattern."`
	Hosts      []string `json:"hosts" merge:"append" scope:"user" doc:"Hosts that commands can reach: a name, *.suffix, an IP address or a network, with :port unless it is 80 or 443; * is any host."`
}

// toolSettings selects the tools that the model gets.
type toolSettings struct {
	Allowed         []string `json:"allowed" scope:"user" doc:"Tools that the model gets; empty means all."`
	Disallowed      []string `json:"disallowed" merge:"append" doc:"Tools that the model does not get."`
	PassEnv         []string `json:"passEnv" merge:"append" scope:"user" doc:"Names of environment variables that commands get although they look like secrets."`
	Search          string   `json:"search" default:"\"auto\"" enum:"auto,call,off" doc:"Access to tools of plugins and MCP servers when there are too many for the prompt. auto: the model searches for them, and calls them directly if the provider supports that, otherwise through call_tool. call: always through call_tool. off: put all into the prompt."`
	SearchBudget    float64  `json:"searchBudget" default:"0.02" min:"0.0001" max:"1" doc:"Fraction of the model's context window that these tools may take up before search replaces them."`
	ReadBeforeWrite bool     `json:"readBeforeWrite" default:"true" scope:"user" doc:"Refuse to change a file that was not read in this session, or changed since."`
}

// pluginSettings configures plugins.
type pluginSettings struct {
	Enabled     bool     `json:"enabled" default:"true" doc:"Use plugins."`
	Disabled    []string `json:"disabled" merge:"append" doc:"Names of disabled plugins."`
	IdleSeconds int      `json:"idleSeconds" default:"300" min:"1" max:"86400" doc:"Seconds without a call after which a plugin's process is stopped."`
	CallSeconds int      `json:"callSeconds" default:"120" min:"1" max:"3600" doc:"Timeout of a plugin's tool in seconds, unless the plugin sets one."`
	MemoryMB    int      `json:"memoryMb" default:"1024" min:"128" max:"1048576" scope:"user" doc:"Memory in MiB that each process of a plugin may use, unless its manifest sets a limit. Limits need a sandbox on Linux."`
	Processes   int      `json:"processes" default:"512" min:"32" max:"1048576" scope:"user" doc:"Processes and threads that a plugin may have, unless its manifest sets a limit; on sandbox level namespace."`
	CPUSeconds  int      `json:"cpuSeconds" default:"3600" min:"1" max:"31536000" scope:"user" doc:"Processor time in seconds of each process of a plugin, unless its manifest sets a limit. The next call starts it again."`
}

// webSettings configures the tool web_search of the bundled plugin web.
type webSettings struct {
	Search    string `json:"search" default:"\"auto\"" enum:"auto,provider,brave,tavily,exa,searxng,off" scope:"user" doc:"Who searches the web. auto: the model's provider, if that is openai, anthropic or gemini; otherwise the first engine that has a key, or searxng if there is an address; otherwise there is no search."`
	BraveKey  Secret `json:"braveKey" scope:"user" env:"BRAVE_API_KEY" doc:"Key of Brave Search."`
	TavilyKey Secret `json:"tavilyKey" scope:"user" env:"TAVILY_API_KEY" doc:"Key of Tavily."`
	ExaKey    Secret `json:"exaKey" scope:"user" env:"EXA_API_KEY" doc:"Key of Exa."`
	SearchURL string `json:"searchUrl" scope:"user" env:"SEARXNG_URL" format:"url" doc:"Address of a SearXNG server, or of another server that answers like the engine."`
}

// graphSettings configures the bundled plugin graph.
type graphSettings struct {
	Enabled     string   `json:"enabled" default:"\"auto\"" enum:"auto,on,off" doc:"The tools get_impact and graph_query, and context about the code at hand. auto: from 200 source files on, and in tasks."`
	Languages   []string `json:"languages" doc:"Languages to read: go, python, javascript, java, rust, c. Empty means all."`
	Ignore      []string `json:"ignore" merge:"append" doc:"Files to leave out, besides those that git ignores: patterns as in .gitignore."`
	TokenBudget int      `json:"tokenBudget" default:"1500" min:"0" max:"20000" doc:"Tokens of context that an input gets about the code that it names or that was touched; 0 switches it off."`
}

// lspSettings configures the bundled plugin lsp.
type lspSettings struct {
	Enabled string                `json:"enabled" default:"\"auto\"" enum:"auto,on,off" doc:"The tool lsp, and diagnostics after edits. auto: if there are files of a language with a server on this machine."`
	Servers languageServerSetting `json:"servers" doc:"Language servers by name; a known one (gopls, typescript-language-server, pyright, rust-analyzer, clangd) needs only what differs. Those in a project's settings are used if the directory is trusted."`
}

// languageServerSetting maps names to language servers.
type languageServerSetting map[string]LanguageServer

// LanguageServer is what is set for a language server.
type LanguageServer struct {
	Command               string            `json:"command,omitempty" doc:"Program: a name, or a path. It is never downloaded."`
	Args                  []string          `json:"args,omitempty" doc:"Its arguments."`
	Env                   map[string]string `json:"env,omitempty" doc:"Environment variables to set."`
	Languages             []string          `json:"languages,omitempty" doc:"Languages that it is for: go, typescript, javascript, python, rust, c, cpp, java …"`
	Extensions            map[string]string `json:"extensions,omitempty" doc:"Other files that it is for: IDs of languages by extension, such as {\".vue\": \"vue\"}."`
	InitializationOptions Object            `json:"initializationOptions,omitempty" doc:"Its initialization options."`
	Settings              Object            `json:"settings,omitempty" doc:"Its settings by section."`
	Disabled              bool              `json:"disabled,omitempty" doc:"Whether it is disabled."`
}

// taskSettings configures tasks.
type taskSettings struct {
	TokenBudget   int    `json:"tokenBudget" default:"0" min:"0" doc:"Tokens that a task may use; 0 means no limit."`
	MaxBeads      int    `json:"maxBeads" default:"20" min:"1" max:"1000" doc:"Beads of a task, failed ones included."`
	RoundsPerBead int    `json:"roundsPerBead" default:"10" min:"1" max:"1000" doc:"Rounds of tool calls of each bead."`
	OnTestChange  string `json:"onTestChange" default:"\"ask\"" enum:"ask,fail,allow" scope:"user" doc:"What becomes of a bead that changes, skips or removes existing tests, or changes what the criteria run. Without a terminal, ask ends the task as blocked."`
	Worktrees     int    `json:"worktrees" default:"1" min:"1" max:"16" doc:"Beads that may work at once, each in its own worktree, if the steps of a plan are predicted to change different files; in a git repository."`
	ReviewModel   string `json:"reviewModel" doc:"Model that reviews what passed all criteria: [PROVIDER/]MODEL. It can only withhold. Empty means none."`
}

// mcpSettings configures MCP servers.
type mcpSettings struct {
	Servers  serverTable `json:"servers" scope:"user" doc:"Servers by name. A program has command, args, env and cwd; a remote server has url and headers. A project's servers are in .mcp.json."`
	Disabled []string    `json:"disabled" scope:"user" doc:"Names of disabled servers, including those in .mcp.json."`
}

// serverTable maps names to servers.
type serverTable map[string]mcp.Server

// skillSettings configures skills.
type skillSettings struct {
	Enabled         bool     `json:"enabled" default:"true" doc:"Use skills."`
	Enable          []string `json:"enable" merge:"append" doc:"Skills to enable that are off by default: NAME, or SCOPE:NAME with the scope project, user or bundled."`
	Disable         []string `json:"disable" merge:"append" doc:"Disabled skills: NAME, SCOPE:NAME, or SCOPE:* for a whole scope."`
	MaxSkills       int      `json:"maxSkills" default:"3" min:"0" max:"10" doc:"Maximum number of skills activated per prompt besides those that you name, of which at most one qualifies; 0 = none."`
	Claude          bool     `json:"claude" default:"true" scope:"user" doc:"Also read what Claude Code reads: skills, commands and agents in ~/.claude, and in .claude of a trusted directory."`
	PluginDir       string   `json:"pluginDir" scope:"user" doc:"Additional folder of user skills."`
	ScriptTimeoutMs int      `json:"scriptTimeoutMs" default:"60000" min:"1" scope:"user" doc:"Timeout of a skill's script in milliseconds."`
}

// sessionSettings configures how sessions are stored.
type sessionSettings struct {
	Save              bool `json:"save" default:"true" doc:"Save sessions to disk."`
	Strict            bool `json:"strict" default:"true" scope:"user" doc:"Stop before the next tool or model call when the session log cannot be written. false continues in memory, with a warning."`
	Undo              bool `json:"undo" default:"true" doc:"Record what tool calls change in files, so that it can be undone."`
	MaxContextMB      int  `json:"maxContextMb" default:"1024" min:"1" max:"1048576" doc:"Maximum size of a session's full tool outputs and images in MiB."`
	ContextMaxAgeDays int  `json:"contextMaxAgeDays" default:"30" min:"0" doc:"Days without use after which a session's full outputs are deleted; 0 keeps them as long as the session."`
}

// serviceSettings configures a service.
type serviceSettings struct {
	Quotas quotaTable `json:"quotas" scope:"user" doc:"Bounds of tenants by name, or of all others by \"*\": sessions that are kept, running (or queued) at the same time, tokens and costUsd on a day of UTC. --quota takes precedence for its tenant. All machines of a service need the same."`
}

// quotaTable maps names of tenants to their bounds.
type quotaTable map[string]Quota

// Quota bounds a tenant of a service; 0 is no bound.
type Quota struct {
	Sessions int     `json:"sessions" min:"0" doc:"Sessions that are kept."`
	Running  int     `json:"running" min:"0" doc:"Sessions that are running or queued at the same time."`
	Tokens   int     `json:"tokens" min:"0" doc:"Tokens on a day of UTC."`
	CostUSD  float64 `json:"costUsd" min:"0" doc:"USD on a day of UTC, as far as prices are known."`
}

// terminalSettings configures the interactive session.
type terminalSettings struct {
	Keys         string `json:"keys" default:"\"readline\"" enum:"readline,vim" doc:"Keys of the input box: readline, as in a shell, or vim. keys.json binds others; see terminal.md."`
	Notify       string `json:"notify" default:"\"bell\"" enum:"off,bell,osc9,osc777" doc:"Notification when a task of at least ten seconds ends or a question waits. off also leaves the terminal's title unchanged."`
	ScreenReader bool   `json:"screenReader" default:"false" doc:"The interactive session works line by line, without redrawing anything, for screen readers; as on a terminal that cannot move its cursor, such as TERM=dumb."`
	StatusLine   string `json:"statusLine" scope:"user" doc:"A command whose first line of output is the status line, instead of the model, branch, context, tokens and cost. It gets JSON on stdin, as Claude Code's does; see terminal.md."`
	Theme        string `json:"theme" default:"\"auto\"" enum:"auto,dark,light,high-contrast,colorblind,ansi" doc:"Colours of the interactive session. auto, high-contrast and colorblind suit the terminal's background, if it tells; ansi has only its own 16 colours. NO_COLOR=1 turns colours off."`
}

// telemetrySettings configures what is sent to a collector.
type telemetrySettings struct {
	Enabled             bool    `json:"enabled" default:"false" scope:"user" env:"AGENT_TELEMETRY" doc:"Send telemetry."`
	Endpoint            string  `json:"endpoint" scope:"user" format:"url" doc:"Base URL of the collector. Default: this machine, at port 4317, or 4318 for http/protobuf."`
	Protocol            string  `json:"protocol" default:"\"grpc\"" enum:"grpc,http/protobuf" scope:"user" doc:"OTLP over gRPC or HTTP."`
	Headers             headers `json:"headers" scope:"user" secret:"all" doc:"Headers sent to the endpoint, such as a key. All are secret."`
	EnableSensitiveData bool    `json:"enableSensitiveData" default:"false" scope:"user" doc:"Also send prompts, answers, arguments and results, without known secrets and what is in sensitive files."`
	SampleRatio         float64 `json:"sampleRatio" default:"1" min:"0" max:"1" scope:"user" doc:"Share of the traces that is sent."`
	Logs                bool    `json:"logs" default:"false" scope:"user" doc:"Also send the events of sessions as logs."`
}

// replaySettings configures the comparison with a recording.
type replaySettings struct {
	Ignore []string `json:"ignore" merge:"append" doc:"Regular expressions for text that may differ between requests. Durations, times, session IDs, the date and the platform may always differ."`
}
