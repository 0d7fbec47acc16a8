package lsp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/sdk"
)

// Options configure the bundled plugin.
type Options struct {
	Servers []Server `json:"servers"`
	Roots   []string `json:"roots"` // the workspace, absolute, links resolved
	// Read are further directories that servers read: programs, sources of modules.
	Read []string `json:"read,omitempty"`
}

// OptionsEnv is the environment variable that tells the plugin's process its
// options, as JSON.
const OptionsEnv = "AGENT_LSP_OPTIONS"

// OptionsFromEnv returns the options of the plugin's process.
func OptionsFromEnv() Options {
	var o Options
	_ = json.Unmarshal([]byte(os.Getenv(OptionsEnv)), &o) // for another program: none
	return o
}

// Encode returns the options for OptionsEnv.
func (o Options) Encode() string {
	data, _ := json.Marshal(o) // cannot fail: it came from settings
	return string(data)
}

// The tools of the plugin, which are for the agent, not for a model.
const (
	CheckTool = "check" // takes a Check, returns a Report
	QueryTool = "query" // takes a Query, returns an Answer
)

// QueryTimeout bounds a query, with the start of its server.
const QueryTimeout = time.Minute

// toolchain are the variables that toolchains are found by.
var toolchain = []string{
	"GOPATH", "GOROOT", "GOMODCACHE", "GOFLAGS", "GOENV", "GOEXPERIMENT", "GOWORK", "GOPRIVATE", "CGO_ENABLED",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "VIRTUAL_ENV", "NODE_PATH", "JAVA_HOME",
}

// Plugin returns the bundled plugin. It reads the workspace and toolchains, writes its
// data directory, and starts the servers, which may do no more.
func Plugin(version string, o Options) sdk.Plugin {
	all := sync.OnceValue(func() *servers { return newServers(o, serverEnviron(os.Environ(), os.Getenv("PLUGIN_DATA_DIR"))) })
	return sdk.Plugin{
		Name: "lsp", Version: version, Summary: "Asks language servers about code",
		Manifest: sdk.Manifest{Read: append([]string{"$WORKSPACE"}, o.Read...), Exec: true, Env: append([]string{OptionsEnv}, toolchain...)},
		Extensions: []sdk.Extension{
			sdk.Tool(CheckTool, "Tells language servers of changed files, and reports their problems.", func(ctx *sdk.Context, in Check) (Report, error) {
				return all().check(ctx, ctx.SessionID(), ctx.Workspace(), in), nil
			}, sdk.ReadOnly()),
			sdk.Tool(QueryTool, "Asks a language server where a symbol is defined or used, what renaming it changes, or for the problems of a file.", func(ctx *sdk.Context, in Query) (Answer, error) {
				in.File.Path = filepath.Clean(in.File.Path)
				answer, err := all().query(ctx, ctx.Workspace(), in)
				if err != nil {
					return Answer{}, sdk.Errorf(sdk.NotFound, "%w", err)
				}
				return answer, nil
			}, sdk.ReadOnly(), sdk.Timeout(QueryTimeout)),
		},
	}
}
