package config

import (
	"encoding/json"

	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/permissions"
)

// Version is the version of the settings' form.
const Version = 1

// Settings are all settings. Tags: doc is the documentation, default the
// default in JSON, enum the allowed values, min and max bound a number, env
// names the environment variable that sets a key, scope:"user" keeps a key out
// of a project's file, merge:"append" adds a list to those of lower layers.
type Settings struct {
	Schema      string      `json:"$schema,omitempty" doc:"Where the JSON Schema of this file is, for editors."`
	Version     int         `json:"version" default:"1" min:"1" max:"1" doc:"Version of the file's form."`
	Providers   Providers   `json:"providers" doc:"Where models are reached."`
	Models      ModelTable  `json:"models" scope:"user" doc:"What is known of models, by MODEL or PROVIDER/MODEL: contextWindow and maxOutput in tokens, reasoning and vision, and inputPrice, cachedInputPrice, cacheWritePrice and outputPrice in USD for a million tokens. What is not named here is as the program knows it."`
	Agent       Agent       `json:"agent" doc:"How a session works, and its limits."`
	Retry       Retry       `json:"retry" doc:"What happens when a provider fails for a moment."`
	Permissions Permissions `json:"permissions" doc:"What tools may do."`
	Sandbox     Sandbox     `json:"sandbox" doc:"How commands and other programs that the agent starts are confined, see sandbox.md."`
	Tools       Tools       `json:"tools" doc:"Which tools there are."`
	Plugins     Plugins     `json:"plugins" doc:"Tools from other people's programs; see docs/plugins.md."`
	MCP         MCP         `json:"mcp" doc:"MCP servers, whose tools the model gets. See mcp.md; agent mcp add writes them."`
	Skills      Skills      `json:"skills" doc:"Which skills there are."`
	Session     Session     `json:"session" doc:"What is kept of a session."`
	Terminal    Terminal    `json:"terminal" doc:"How the interactive session behaves."`
	Replay      Replay      `json:"replay" doc:"What makes a recorded session fit when it is replayed, see --record and --replay."`
}

// Providers are the settings of the model providers.
type Providers struct {
	Default   string            `json:"default" default:"\"local\"" enum:"anthropic,azure,foundry,gemini,github,local,openai" env:"AGENT_PROVIDER" doc:"The provider that is used when none is named."`
	Fallback  []string          `json:"fallback" scope:"user" doc:"Who takes over when the provider fails for longer than the retries last: PROVIDER or PROVIDER/MODEL, tried in order."`
	Local     LocalProvider     `json:"local" doc:"A server on this machine or network that speaks the OpenAI chat protocol: Ollama, LM Studio, vLLM, Docker Model Runner."`
	OpenAI    OpenAIProvider    `json:"openai" doc:"OpenAI, or a service that speaks its protocol."`
	Anthropic AnthropicProvider `json:"anthropic" doc:"Anthropic."`
	Gemini    GeminiProvider    `json:"gemini" doc:"Google's Gemini: the Developer API, or Vertex AI."`
	GitHub    GitHubProvider    `json:"github" doc:"GitHub Models."`
	Azure     AzureProvider     `json:"azure" doc:"Azure OpenAI."`
	Foundry   FoundryProvider   `json:"foundry" doc:"Azure AI Foundry: a project in the cloud, or Foundry Local on this machine."`
}

// Object is a JSON object that is passed on as it is.
type Object map[string]json.RawMessage

// LocalProvider is an OpenAI-compatible server of one's own.
type LocalProvider struct {
	BaseURL string `json:"baseUrl" default:"\"http://localhost:11434/v1\"" scope:"user" format:"url" doc:"Address of the server."`
	Model   string `json:"model" default:"\"llama3.3:latest\"" doc:"Model, by the server's name for it."`
	APIKey  Secret `json:"apiKey" scope:"user" doc:"Key, where the server wants one."`
	Options Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// OpenAIProvider is OpenAI.
type OpenAIProvider struct {
	APIKey       Secret `json:"apiKey" scope:"user" env:"OPENAI_API_KEY" doc:"Key."`
	Model        string `json:"model" default:"\"gpt-5-mini\"" doc:"Model."`
	BaseURL      string `json:"baseUrl" default:"\"https://api.openai.com/v1\"" scope:"user" format:"url" doc:"Address of the service."`
	API          string `json:"api" default:"\"responses\"" enum:"responses,chat" doc:"Which of the service's interfaces is used. Services that only imitate OpenAI mostly have chat."`
	Organization string `json:"organization" scope:"user" doc:"Organization that is charged, where the key has several."`
	Project      string `json:"project" scope:"user" doc:"Project that is charged, where the key has several."`
	Options      Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// AnthropicProvider is Anthropic.
type AnthropicProvider struct {
	APIKey  Secret `json:"apiKey" scope:"user" env:"ANTHROPIC_API_KEY" doc:"Key."`
	Model   string `json:"model" default:"\"claude-sonnet-4-5\"" doc:"Model."`
	BaseURL string `json:"baseUrl" default:"\"https://api.anthropic.com/v1\"" scope:"user" format:"url" doc:"Address of the service."`
	Options Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// GeminiProvider is Google's Gemini.
type GeminiProvider struct {
	APIKey      Secret `json:"apiKey" scope:"user" env:"GOOGLE_API_KEY" doc:"Key of the Developer API, or of Vertex AI in express mode."`
	Model       string `json:"model" default:"\"gemini-2.5-flash\"" doc:"Model."`
	BaseURL     string `json:"baseUrl" scope:"user" format:"url" doc:"Address of the service; by itself that of the Developer API, or of the Vertex AI location."`
	UseVertexAI bool   `json:"useVertexai" default:"false" scope:"user" doc:"Whether Vertex AI is used. Without a key, the application default credentials of gcloud authorize."`
	Project     string `json:"project" scope:"user" env:"GOOGLE_CLOUD_PROJECT" doc:"Google Cloud project, for Vertex AI."`
	Location    string `json:"location" scope:"user" env:"GOOGLE_CLOUD_LOCATION" doc:"Location such as europe-west4, for Vertex AI; global when it is not set."`
	Options     Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// GitHubProvider is GitHub Models.
type GitHubProvider struct {
	Token    Secret `json:"token" scope:"user" env:"GITHUB_TOKEN" doc:"Token with the scope models:read. Without one, gh auth token is asked."`
	Model    string `json:"model" default:"\"openai/gpt-4o-mini\"" doc:"Model, as PUBLISHER/NAME."`
	Endpoint string `json:"endpoint" default:"\"https://models.github.ai/inference\"" scope:"user" format:"url" doc:"Address of the service."`
	Org      string `json:"org" scope:"user" doc:"Organization that is charged."`
	Options  Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// AzureProvider is Azure OpenAI.
type AzureProvider struct {
	APIKey     Secret `json:"apiKey" scope:"user" env:"AZURE_OPENAI_API_KEY" doc:"Key. Without one, az account get-access-token is asked."`
	Endpoint   string `json:"endpoint" scope:"user" format:"url" env:"AZURE_OPENAI_ENDPOINT" doc:"Address of the resource, such as https://NAME.openai.azure.com."`
	Deployment string `json:"deployment" doc:"Name of the deployment, which stands for its model."`
	APIVersion string `json:"apiVersion" default:"\"2024-06-01\"" scope:"user" doc:"Version of the interface; v1 is the one without dates."`
	BaseModel  string `json:"baseModel" doc:"Model behind the deployment, for its price and limits."`
	Options    Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// FoundryProvider is Azure AI Foundry.
type FoundryProvider struct {
	Mode            string `json:"mode" default:"\"local\"" enum:"local,cloud" scope:"user" doc:"Whether Foundry Local on this machine is used, or a project in the cloud."`
	ModelAlias      string `json:"modelAlias" default:"\"phi-4\"" doc:"Model of Foundry Local, by its alias."`
	BaseURL         string `json:"baseUrl" scope:"user" format:"url" doc:"Address of Foundry Local, when it is not to be asked of its service."`
	ProjectEndpoint string `json:"projectEndpoint" scope:"user" format:"url" doc:"Address of the project, for the cloud."`
	ModelDeployment string `json:"modelDeployment" default:"\"gpt-4o\"" doc:"Deployment of the project, for the cloud."`
	APIKey          Secret `json:"apiKey" scope:"user" env:"AZURE_FOUNDRY_API_KEY" doc:"Key of the project. Without one, az account get-access-token is asked."`
	Options         Object `json:"options" scope:"user" doc:"Members that are put into each request as they are, for what has no setting of its own."`
}

// ModelTable holds facts by the name of the model.
type ModelTable map[string]ModelFacts

// ModelFacts are what is known of a model, over what the program knows.
type ModelFacts struct {
	ContextWindow    int      `json:"contextWindow" doc:"Tokens of a request and its answer."`
	MaxOutput        int      `json:"maxOutput" doc:"Tokens of an answer."`
	Reasoning        *bool    `json:"reasoning" doc:"Whether it reasons before it answers."`
	Vision           *bool    `json:"vision" doc:"Whether it takes images."`
	InputPrice       *float64 `json:"inputPrice" doc:"USD for a million tokens of input."`
	CachedInputPrice *float64 `json:"cachedInputPrice" doc:"USD for a million tokens of input that were cached."`
	CacheWritePrice  *float64 `json:"cacheWritePrice" doc:"USD for a million tokens that are put into the cache."`
	OutputPrice      *float64 `json:"outputPrice" doc:"USD for a million tokens of output."`
}

// Agent is how a session works.
type Agent struct {
	SystemPrompt        string   `json:"systemPrompt" doc:"Text that is added at the end of the system prompt."`
	MaxTokens           int      `json:"maxTokens" default:"0" min:"0" doc:"Tokens of one response; 0 leaves it to the provider."`
	Temperature         *float64 `json:"temperature" min:"0" max:"2" doc:"Temperature of the model; left to the provider when it is not set."`
	Effort              string   `json:"effort" enum:"none,low,medium,high,xhigh" doc:"How much a reasoning model thinks; left to the provider when it is not set."`
	MaxRounds           int      `json:"maxRounds" default:"50" min:"0" doc:"Rounds of tool calls for one input; 0 is no limit."`
	MaxTurns            int      `json:"maxTurns" default:"0" min:"0" doc:"User and assistant turns over the session; 0 is no limit."`
	MaxInputTokens      int      `json:"maxInputTokens" default:"0" min:"0" doc:"Tokens used for one input; 0 is no limit."`
	MaxSessionTokens    int      `json:"maxSessionTokens" default:"0" min:"0" doc:"Tokens used over the session; 0 is no limit."`
	MaxCostUSD          float64  `json:"maxCostUsd" default:"0" min:"0" doc:"USD that the session may cost, where prices are known; 0 is no limit."`
	WarnAt              float64  `json:"warnAt" default:"0.8" min:"0" max:"1" doc:"Fraction of a token limit at which there is a warning."`
	CommandTimeoutMs    int      `json:"commandTimeoutMs" default:"10000" min:"1" doc:"Milliseconds that a command may take when its call asks for no time."`
	MaxCommandTimeoutMs int      `json:"maxCommandTimeoutMs" default:"600000" min:"1" doc:"Milliseconds that a call may ask for."`
	ParallelCalls       int      `json:"parallelCalls" default:"8" min:"1" doc:"Reading tool calls that run side by side."`
	LoopDetection       bool     `json:"loopDetection" default:"true" doc:"Whether a model that repeats its calls is told so."`
	LoopWindow          int      `json:"loopWindow" default:"10" min:"2" doc:"Calls that are looked at for repetitions."`
	Profile             string   `json:"profile" default:"\"auto\"" enum:"auto,default,openai,anthropic,gemini" doc:"Prompt and built-in tools: those that suit a family of models; auto goes by the model's name."`
	CompactAt           float64  `json:"compactAt" default:"0.85" min:"0" max:"1" doc:"Part of the model's context window at which the conversation is summarised, where the window is known; 0 is never."`
}

// Retry is how a failed request is repeated.
type Retry struct {
	Enabled      bool `json:"enabled" default:"true" doc:"Whether a request is repeated after a failure that may pass."`
	MaxRetries   int  `json:"maxRetries" default:"3" min:"0" max:"20" doc:"Repetitions after the first attempt."`
	BaseDelayMs  int  `json:"baseDelayMs" default:"1000" min:"0" doc:"Milliseconds before the first repetition; each next one waits twice as long."`
	MaxDelayMs   int  `json:"maxDelayMs" default:"10000" min:"0" doc:"Longest wait in milliseconds, unless the provider asks for more."`
	EnableJitter bool `json:"enableJitter" default:"true" doc:"Whether waits differ at random by up to a quarter."`
}

// Permissions are what tools may do.
type Permissions struct {
	Mode  string             `json:"mode" default:"\"default\"" enum:"read-only,default,workspace,accept-edits,bypass" doc:"What holds where no rule does. A project's file may only make it stricter."`
	Allow []string           `json:"allow" merge:"append" doc:"Rules for what may run unasked, such as shell(go test *). They count only from a trusted directory."`
	Ask   []string           `json:"ask" merge:"append" doc:"Rules for what is asked about."`
	Deny  []string           `json:"deny" merge:"append" doc:"Rules for what may never run; they hold in every mode."`
	When  []permissions.When `json:"when" merge:"append" doc:"Rules with conditions, each an object with if, then, why, match and notMatch, see permissions.md. From a directory that is not trusted, those that ask or deny count."`
}

// Sandbox is how child processes are confined.
type Sandbox struct {
	Shell    string   `json:"shell" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for commands. auto is the best one that works here, and none where none does, so that more is asked; require does not run them then; namespace and landlock name the level."`
	Skills   string   `json:"skills" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for scripts of skills."`
	Plugins  string   `json:"plugins" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for plugins."`
	MCP      string   `json:"mcp" default:"\"auto\"" enum:"auto,require,namespace,landlock,off" scope:"user" doc:"Level for MCP servers on this machine."`
	Writable []string `json:"writable" merge:"append" scope:"user" doc:"Files and directories, besides the workspace, that commands may write; ~/ is your home."`
	Masked   []string `json:"masked" merge:"append" scope:"user" doc:"Files and directories that commands cannot read, besides the well-known places of secrets. The last part may be a pattern."`
	Hosts    []string `json:"hosts" merge:"append" scope:"user" doc:"Hosts that commands can reach: a name, *.suffix, an address or a network, with :port if it is another than 80 or 443; * is the whole network."`
}

// Tools are which tools there are.
type Tools struct {
	Allowed         []string `json:"allowed" scope:"user" doc:"The only tools that the model gets; empty means all."`
	Disallowed      []string `json:"disallowed" merge:"append" doc:"Tools that the model does not get."`
	Search          string   `json:"search" default:"\"auto\"" enum:"auto,call,off" doc:"How the model gets at tools of plugins and MCP servers that are too many for its prompt. auto: it searches for them, and its service takes up what it finds, or else it calls it by one more tool, call_tool. call: always by call_tool. off: all are in the prompt."`
	SearchBudget    float64  `json:"searchBudget" default:"0.02" min:"0.0001" max:"1" doc:"Part of the model's context window that such tools may take in the prompt before they are searched for."`
	ReadBeforeWrite bool     `json:"readBeforeWrite" default:"true" scope:"user" doc:"Whether a file must have been read in the session, and be unchanged since, before a tool changes it."`
}

// Plugins say which plugins run, and how.
type Plugins struct {
	Enabled     bool     `json:"enabled" default:"true" doc:"Whether plugins are used at all."`
	Disabled    []string `json:"disabled" merge:"append" doc:"Names of plugins that are not used."`
	IdleSeconds int      `json:"idleSeconds" default:"300" min:"1" max:"86400" doc:"Seconds after which a plugin's process that nobody calls is ended."`
	CallSeconds int      `json:"callSeconds" default:"120" min:"1" max:"3600" doc:"Seconds that a call of a plugin's tool may take, where the plugin does not say it."`
}

// MCP are the MCP servers.
type MCP struct {
	Servers  ServerTable `json:"servers" scope:"user" doc:"Servers by name. For a program: command, args, env and cwd; for an address: url and headers. A project names its own in .mcp.json."`
	Disabled []string    `json:"disabled" scope:"user" doc:"Names of servers that are left alone, also of those in .mcp.json."`
}

// ServerTable holds servers by their names.
type ServerTable map[string]mcp.Server

// Skills are which skills there are, and how much of them is disclosed.
type Skills struct {
	Enabled         bool     `json:"enabled" default:"true" doc:"Whether there are skills at all."`
	Enable          []string `json:"enable" merge:"append" doc:"Skills that are off by themselves and are to be on: NAME, or SCOPE:NAME with the scope project, user or bundled."`
	Disable         []string `json:"disable" merge:"append" doc:"Skills that are off: NAME, SCOPE:NAME, or SCOPE:* for all of a scope."`
	MaxSkills       int      `json:"maxSkills" default:"3" min:"0" max:"10" doc:"Skills whose text is put into the conversation for one input; 0 is none but those that you name."`
	PluginDir       string   `json:"pluginDir" scope:"user" doc:"A further folder of your own skills."`
	ScriptTimeoutMs int      `json:"scriptTimeoutMs" default:"60000" min:"1" scope:"user" doc:"Milliseconds that a skill's script may take."`
}

// Session is what is kept of a session.
type Session struct {
	Save              bool `json:"save" default:"true" doc:"Whether sessions are written to disk."`
	MaxContextMB      int  `json:"maxContextMb" default:"1024" min:"1" max:"1048576" doc:"Mebibytes that the full tool outputs and images of one session may take."`
	ContextMaxAgeDays int  `json:"contextMaxAgeDays" default:"30" min:"0" doc:"Days after which the outputs of a session that was not used are removed; 0 keeps them as long as the session."`
}

// Terminal is how the interactive session behaves.
type Terminal struct {
	Notify string `json:"notify" default:"\"bell\"" enum:"off,bell,osc9" doc:"How you are called when a task of ten seconds or more ends or a question waits. off leaves the terminal's title alone, too."`
}

// Replay is what recorded sessions leave out of the comparison.
type Replay struct {
	Ignore []string `json:"ignore" merge:"append" doc:"Regular expressions for what may differ in requests from run to run. Durations, points in time, session ids, the date and the platform may differ anyway."`
}
