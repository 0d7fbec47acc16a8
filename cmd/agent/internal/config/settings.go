package config

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
	Agent       Agent       `json:"agent" doc:"How a session works, and its limits."`
	Retry       Retry       `json:"retry" doc:"What happens when a provider fails for a moment."`
	Permissions Permissions `json:"permissions" doc:"What tools may do."`
	Tools       Tools       `json:"tools" doc:"Which tools there are."`
	Session     Session     `json:"session" doc:"What is kept of a session."`
	Terminal    Terminal    `json:"terminal" doc:"How the interactive session behaves."`
}

// Providers are the settings of the model providers.
type Providers struct {
	Default string         `json:"default" default:"\"local\"" enum:"local,openai" env:"AGENT_PROVIDER" doc:"The provider that is used when none is named."`
	Local   LocalProvider  `json:"local" doc:"A server on this machine or network that speaks the OpenAI chat protocol: Ollama, LM Studio, vLLM, Docker Model Runner."`
	OpenAI  OpenAIProvider `json:"openai" doc:"OpenAI, or a service that speaks its protocol."`
}

// LocalProvider is an OpenAI-compatible server of one's own.
type LocalProvider struct {
	BaseURL string `json:"baseUrl" default:"\"http://localhost:11434/v1\"" scope:"user" format:"url" doc:"Address of the server."`
	Model   string `json:"model" default:"\"llama3.3:latest\"" doc:"Model, by the server's name for it."`
	APIKey  Secret `json:"apiKey" scope:"user" doc:"Key, where the server wants one."`
}

// OpenAIProvider is OpenAI.
type OpenAIProvider struct {
	APIKey  Secret `json:"apiKey" scope:"user" env:"OPENAI_API_KEY" doc:"Key."`
	Model   string `json:"model" default:"\"gpt-5-mini\"" doc:"Model."`
	BaseURL string `json:"baseUrl" default:"\"https://api.openai.com/v1\"" scope:"user" format:"url" doc:"Address of the service."`
	API     string `json:"api" default:"\"chat\"" enum:"chat" doc:"Which of the service's interfaces is used."`
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
	WarnAt              float64  `json:"warnAt" default:"0.8" min:"0" max:"1" doc:"Fraction of a token limit at which there is a warning."`
	CommandTimeoutMs    int      `json:"commandTimeoutMs" default:"10000" min:"1" doc:"Milliseconds that a command may take when its call asks for no time."`
	MaxCommandTimeoutMs int      `json:"maxCommandTimeoutMs" default:"600000" min:"1" doc:"Milliseconds that a call may ask for."`
	ParallelCalls       int      `json:"parallelCalls" default:"8" min:"1" doc:"Reading tool calls that run side by side."`
	LoopDetection       bool     `json:"loopDetection" default:"true" doc:"Whether a model that repeats its calls is told so."`
	LoopWindow          int      `json:"loopWindow" default:"10" min:"2" doc:"Calls that are looked at for repetitions."`
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
	Mode  string   `json:"mode" default:"\"default\"" enum:"read-only,default,workspace,accept-edits,bypass" doc:"What holds where no rule does. A project's file may only make it stricter."`
	Allow []string `json:"allow" merge:"append" doc:"Rules for what may run unasked, such as shell(go test *). They count only from a trusted directory."`
	Ask   []string `json:"ask" merge:"append" doc:"Rules for what is asked about."`
	Deny  []string `json:"deny" merge:"append" doc:"Rules for what may never run; they hold in every mode."`
}

// Tools are which tools there are.
type Tools struct {
	Allowed    []string `json:"allowed" scope:"user" doc:"The only tools that the model gets; empty means all."`
	Disallowed []string `json:"disallowed" merge:"append" doc:"Tools that the model does not get."`
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
