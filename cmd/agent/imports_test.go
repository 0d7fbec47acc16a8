package main_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const modulePath = "github.com/seed-009c0928/agent"

// importRules lists the packages of this module that each package may import,
// by their paths below the module. "dir/..." stands for dir and everything below
// it, except test support (packages whose last element ends in "test"), which
// is allowed only by its full name; "!dir/..." takes dir out again.
//
// The rules form a star, not a web: implementations know core's contracts and
// never each other, and sdk/agent is where they meet. A new package needs a
// line here, and a changed line needs a reason in its commit.
var importRules = map[string][]string{
	"core/model":        {"core/internal/quickjson", "core/model/internal/longtext"},
	"core/proc":         {"core/proc/sandbox", "core/redact"},
	"core/pdftext":      {"core/proc", "core/proc/sandbox"},
	"core/atomicfile":   {},
	"core/tracecontext": {},
	"core/gitindex":     {},
	"core/jsonpos":      {},
	"core/schema":       {"core/schema/adapt"},
	"core/output":       {},
	"core/timeout":      {},
	"core/rank":         {},
	"core/sse":          {},
	"core/sensitive":    {},
	"core/lazy":         {},
	"core/invisible":    {},
	"core/bundle":       {"core/atomicfile", "core/invisible", "core/jsonpos"},
	"core/frontmatter":  {},
	"core/schema/adapt": {},

	"core/proc/internal/early": {},
	"core/proc/sandbox":        {"core/proc/internal/early"},

	"core/event":                 {"core/model", "core/internal/quickjson"},
	"core/internal/images":       {"core/model"},
	"core/internal/compaction":   {"core/model", "core/event"},
	"core/internal/repeat":       {"core/model"},
	"core/internal/approvals":    {"core/event"},
	"core/internal/toolname":     {},
	"core/internal/quickjson":    {},
	"core/internal/wording":      {},
	"core/internal/recorder":     {"core/model", "core/event"},
	"core":                       {"core/tracecontext", "core/internal/answers", "core/internal/recorder", "core/internal/approvals", "core/internal/toolname", "core/internal/wording", "core/model", "core/event", "core/schema", "core/output", "core/timeout", "core/internal/images", "core/internal/compaction", "core/internal/conversation", "core/internal/repeat"},
	"core/internal/answers":      {"core/model", "core/event", "core/internal/toolname"},
	"core/internal/conversation": {"core/model", "core/event", "core/internal/answers", "core/internal/compaction", "core/internal/questions", "core/internal/repeat"},
	"core/internal/questions":    {"core/model", "core/event"},

	"core/model/internal/longtext": {},
	"core/model/wire":              {"core/model", "core/sse"},
	"core/model/facts":             {"core/model"},
	"core/model/cassette":          {"core/model", "core/redact"},
	"core/model/langchain":         {"core/model", "core/model/internal/longtext", "core/model/wire", "core/schema/adapt"},
	"core/model/langchain/clients": {"core/model", "core/model/langchain", "core/model/wire"},
	"core/model/credential":        {"core/model"},
	"core/model/openai":            {"core/model", "core/model/wire", "core/schema/adapt"},
	"core/model/anthropic":         {"core/model", "core/model/wire", "core/schema/adapt"},
	"core/model/gemini":            {"core/model", "core/model/wire", "core/schema/adapt"},
	"core/model/modeltest":         {"core/model"},
	"core/model/scripted":          {"core/model"},

	"core/env/internal/notes": {"core", "core/model", "core/event"},
	"core/env":                {"core/env/internal/notes", "core/gitignore", "core/sensitive", "core", "core/model", "core/event", "core/proc", "core/proc/sandbox"},
	"core/internal/textedit":  {},
	"core/gitignore":          {"core/internal/textedit"},
	"core/snapshot":           {"core/atomicfile", "core/gitindex", "core/gitignore"},
	"core/internal/charset":   {},
	"core/preview":            {"core", "core/model", "core/event", "core/internal/charset"},
	"core/changes":            {"core", "core/model", "core/event", "core/sensitive", "core/snapshot"},
	"core/worktree":           {"core", "core/model", "core/event", "core/atomicfile", "core/changes", "core/snapshot"},
	"core/hooks":              {"core", "core/internal/toolname", "core/model", "core/event", "core/proc/sandbox"},
	"core/internal/patch":     {"core/internal/textedit"},
	"core/bead":               {"core", "core/model", "core/event", "core/lazy"},
	"core/tools":              {"core/sensitive", "core", "core/model", "core/event", "core/output", "core/jsonpos", "core/internal/charset", "core/internal/patch", "core/internal/textedit", "core/gitignore", "core/preview"},
	"core/subagent":           {"core", "core/frontmatter", "core/model", "core/event"},
	"core/profile":            {"core", "core/model", "core/event"},
	"core/store":              {"core", "core/model", "core/event", "core/atomicfile", "core/jsonpos", "core/redact"},
	"core/redact":             {},
	"core/telemetry":          {"core/event", "core/model", "core/tracecontext"},
	"core/telemetry/otlp":     {"core/event", "core/model", "core/redact", "core/telemetry", "core/tracecontext"},
	"core/coretest":           {"core", "core/model", "core/event"},
	"core/env/posix":          {"core", "core/model", "core/event", "core/proc", "core/env/internal/notes"},
	"core/env/docker":         {"core", "core/model", "core/event", "core/proc", "core/env", "core/env/posix"},
	"core/env/k8s":            {"core", "core/model", "core/event", "core/proc", "core/env/posix"},
	"core/env/ssh":            {"core", "core/model", "core/event", "core/proc", "core/env/posix"},
	"core/env/envtest":        {"core", "core/model", "core/event", "core/env", "core/tools"},

	"registry":          {"core", "core/model", "core/event", "core/jsonpos", "core/proc", "core/rank"},
	"permissions":       {"core", "core/gitindex", "core/sensitive", "core/model", "core/event", "core/jsonpos", "core/proc", "permissions/internal/needs", "permissions/shell"},
	"permissions/shell": {"core/gitindex"},

	// It knows programs, not the agent.
	"permissions/internal/needs": {},

	// For plugin authors: nothing of the agent itself.
	"sdk/toolproto": {},
	"sdk":           {"sdk/toolproto"},
	"sdk/sdktest":   {"internal/plugintest", "sdk", "sdk/toolproto"},
	// The conformance suite of plugins, for sdktest and "agent plugins test".
	"internal/plugintest": {"sdk", "sdk/toolproto"},
	"plugins": {
		"core/sensitive", "core/invisible", "core/tracecontext",
		"core", "core/model", "core/event", "core/jsonpos", "core/proc", "core/proc/sandbox", "core/output", "core/schema", "core/atomicfile", "core/bundle", "core/gitignore",
		"sdk", "sdk/toolproto", "mcp", "plugins/bundles", "skills", "core/subagent",
	},
	"mcp":                          {"core/sensitive", "core", "core/model", "core/event", "core/atomicfile", "core/jsonpos", "core/proc", "core/schema", "core/schema/adapt", "core/sse", "core/timeout", "internal/jsonrpc", "core/invisible", "core/tracecontext"},
	"mcp/internal/conformancetest": {},
	"internal/jsonrpc":             {},
	"mcp/oauth":                    {"core/atomicfile"},
	"mcp/oauth/oauthtest":          {},
	"mcp/server":                   {"core", "core/model", "core/event", "internal/jsonrpc"},
	"skills":                       {"core", "core/model", "core/event", "core/atomicfile", "core/frontmatter", "core/jsonpos", "core/rank", "core/bundle", "core/sensitive", "core/invisible", "core/proc/sandbox"},
	"skills/internal/bench":        {"skills", "bundled_skills"},
	"bundled_skills":               {},
	"plugins/web":                  {"sdk", "core/invisible"},
	"plugins/graph":                {"sdk", "core/gitignore"},
	"plugins/lsp":                  {"sdk", "core/proc", "internal/jsonrpc"},
	"plugins/bundles":              {"core/invisible", "core/jsonpos", "core/lazy", "core/subagent", "mcp", "skills"},

	"sdk/agent":             {"...", "!cmd/...", "!sdk/host/..."},
	"sdk/host":              {"core", "core/changes", "core/event", "core/model", "core/store", "core/telemetry", "mcp", "sdk/agent"},
	"sdk/service":           {"core", "core/event", "core/model", "core/proc/sandbox", "core/store", "sdk/agent", "sdk/host", "sdk/service/workspace"},
	"sdk/service/workspace": {"core/atomicfile", "core/snapshot", "core/store"},
	"sdk/service/jetstream": {"core", "core/event", "core/store", "sdk/service"},
	"sdk/service/api":       {"core", "core/event", "core/store", "sdk/host", "sdk/service", "sdk/service/workspace"},
	"sdk/service/client":    {"core/event", "core/sse", "sdk/host", "sdk/service", "sdk/service/workspace"},
	"sdk/host/hosttest":     {"core", "core/coretest", "core/event", "core/model", "sdk/host"},

	// The command line: cmdutil is the kernel of every command, setup opens what
	// the settings ask for, run and chat run sessions, and each noun is a package
	// that no other noun imports. Only root knows them all.
	"core/goldentest": {},

	"cmd/agent":                  {"cmd/agent/internal/cmd/root", "cmd/agent/internal/prelude"},
	"cmd/agent/internal/prelude": {"cmd/agent/internal/version"},
	"cmd/agent/internal/version": {},
	// For programs that embed an agent: what the command reads, as options of sdk/agent.
	"cmd/agent/settings": {"cmd/agent/internal/cmdutil", "cmd/agent/internal/config", "cmd/agent/internal/keyring", "cmd/agent/internal/setup", "core/model", "sdk/agent"},
	"cmd/agent/internal/cmdutil": {
		"cmd/agent/internal/config", "cmd/agent/internal/version", "core/jsonpos", "core/model", "core/proc", "mcp", "sdk",
	},
	"cmd/agent/internal/setup": {
		"cmd/agent/internal/cmdutil", "cmd/agent/internal/config", "cmd/agent/internal/display", "cmd/agent/internal/trust", "sdk/agent",
		"core", "core/atomicfile", "core/model/...", "core/env/...", "core/frontmatter", "core/schema/adapt", "core/jsonpos", "core/profile", "core/proc/sandbox", "core/store", "core/subagent",
		"core/event", "core/telemetry", "core/telemetry/otlp", "core/tracecontext",
		"core", "core/atomicfile", "core/model/...", "core/env/...", "core/frontmatter", "core/hooks", "core/schema/adapt", "core/jsonpos", "core/profile", "core/proc/sandbox", "core/store", "core/subagent",
		"core/event", "core/telemetry/otlp", "core/tracecontext",
		"permissions", "registry", "mcp", "mcp/oauth", "plugins", "plugins/bundles", "plugins/web", "plugins/graph", "plugins/lsp", "skills", "bundled_skills", "sdk",
	},
	"cmd/agent/internal/planmode": {"core", "permissions"},
	"cmd/agent/internal/tasks":    {"cmd/agent/internal/config", "cmd/agent/internal/setup", "core/bead", "core/event", "core/model", "plugins/graph", "sdk/agent"},
	"cmd/agent/internal/remote": {
		"cmd/agent/internal/cmdutil", "cmd/agent/internal/config", "cmd/agent/internal/privatefile", "cmd/agent/internal/setup",
		"core/event", "core/store", "permissions", "sdk/service", "sdk/service/client", "sdk/service/workspace",
	},
	"cmd/agent/internal/run": {
		"cmd/agent/internal/remote", "sdk/service", "sdk/service/client",
		"mcp",
		"cmd/agent/internal/config", "cmd/agent/internal/planmode",
		"cmd/agent/internal/cmdutil", "cmd/agent/internal/setup", "cmd/agent/internal/display", "cmd/agent/internal/tui", "sdk/agent", "sdk/host",
		"core", "core/model", "core/event", "core/store", "core/schema", "core/worktree", "permissions",
	},
	"cmd/agent/internal/chat": {
		"cmd/agent/internal/cmdutil", "cmd/agent/internal/config", "cmd/agent/internal/display", "cmd/agent/internal/insight",
		"cmd/agent/internal/planmode", "cmd/agent/internal/remote", "cmd/agent/internal/run", "cmd/agent/internal/setup",
		"cmd/agent/internal/tasks", "cmd/agent/internal/tui",
		"core", "core/bead", "core/changes", "core/event", "core/hooks", "core/jsonpos", "core/model", "core/model/facts",
		"core/preview", "core/proc/sandbox", "core/profile", "core/snapshot", "core/store", "mcp", "permissions", "plugins",
		"plugins/graph", "sdk/agent", "sdk/host", "sdk/service", "sdk/service/client", "skills",
	},
	"cmd/agent/internal/acp": {
		"cmd/agent/internal/acp/protocol", "cmd/agent/internal/display", "internal/jsonrpc", "sdk/host",
		"core", "core/event", "core/model", "core/preview", "mcp",
	},
	"cmd/agent/internal/acp/protocol":     {},
	"cmd/agent/internal/acp/protocol/gen": {},
	"cmd/agent/internal/cmd/root":         {"cmd/agent/internal/...", "core/store", "core/tools", "sdk", "sdk/agent"},
	"cmd/agent/internal/cmd/acp":          noun("cmd/agent/internal/acp", "cmd/agent/internal/run", "core/model", "core/store", "mcp", "sdk/host"),
	"cmd/agent/internal/cmd/config":       noun(),
	"cmd/agent/internal/cmd/demo":         noun("cmd/agent/internal/chat", "cmd/agent/internal/run", "cmd/agent/internal/tui", "core/model", "core/model/scripted", "core/proc/sandbox", "mcp", "permissions", "plugins", "plugins/web", "sdk/host"),
	"cmd/agent/internal/cmd/graph":        noun("cmd/agent/internal/page", "core/env", "core/model", "core/tools", "plugins/graph"),
	"cmd/agent/internal/cmd/doctor":       noun("core/env", "core/jsonpos", "core/model", "core/sensitive", "core/proc", "core/proc/sandbox", "core/store"),
	"cmd/agent/internal/cmd/mcp":          noun("core/jsonpos", "mcp", "mcp/oauth", "mcp/server"),
	"cmd/agent/internal/cmd/permission":   noun("core/jsonpos", "core/store", "permissions"),
	"cmd/agent/internal/cmd/plugin":       noun("core/proc/sandbox", "internal/plugintest", "mcp", "plugins", "plugins/bundles", "sdk", "sdk/agent", "sdk/toolproto"),
	"cmd/agent/internal/cmd/provider":     noun("cmd/agent/internal/chat", "core/model"),
	"cmd/agent/internal/cmd/serve":        noun("cmd/agent/internal/page", "cmd/agent/internal/privatefile", "cmd/agent/internal/remote", "cmd/agent/internal/run", "core/proc", "core/proc/sandbox", "core/store", "permissions", "sdk/host", "sdk/service", "sdk/service/api", "sdk/service/client", "sdk/service/jetstream", "sdk/service/workspace"),
	"cmd/agent/internal/cmd/session":      noun("cmd/agent/internal/dashboard", "cmd/agent/internal/remote", "cmd/agent/internal/tui", "sdk/service", "sdk/service/client", "sdk/service/workspace", "core/changes", "core/model", "core/proc/sandbox", "core/sensitive", "core/snapshot", "core/store", "core/telemetry", "core/telemetry/otlp", "cmd/agent/internal/insight", "cmd/agent/internal/page"),
	"cmd/agent/internal/cmd/skill":        noun("core/bundle", "skills"),
	"cmd/agent/internal/cmd/task":         noun("cmd/agent/internal/page", "cmd/agent/internal/tasks", "cmd/agent/internal/tui", "core/bead", "core/store", "core/worktree", "permissions"),
	"cmd/agent/internal/cmd/telemetry":    noun("cmd/agent/internal/dashboard", "cmd/agent/internal/privatefile"),
	"cmd/agent/internal/cmd/tool":         noun("core/model", "core/pdftext"),
	"cmd/agent/internal/cmd/worktree":     noun("core/snapshot", "core/worktree"),
	"cmd/agent/internal/cmd/try":          noun("core/env"),
	"cmd/agent/internal/cmd/trust":        noun("mcp"),
	"cmd/agent/internal/cmd/hook":         noun("core/hooks", "core/store"),
	"cmd/agent/internal/cmd/insights":     noun("cmd/agent/internal/insight"),

	// config composes the Config that each of these packages owns.
	"cmd/agent/internal/config": {
		"core", "core/model/...", "core/env", "core/profile", "core/store", "core/tools",
		"permissions", "registry", "mcp", "core/jsonpos", "cmd/agent/internal/privatefile",
	},
	"cmd/agent/internal/trust":           {"core/jsonpos", "cmd/agent/internal/privatefile"},
	"cmd/agent/internal/privatefile":     {"core/atomicfile"},
	"cmd/agent/internal/keyring":         {},
	"cmd/agent/internal/record":          {"cmd/agent/internal/vt", "core/model/modeltest", "cmd/agent/internal/browser"},
	"cmd/agent/internal/tui":             {"core/preview", "core/proc/sandbox", "core", "core/model", "core/event", "core/jsonpos", "cmd/agent/internal/display", "cmd/agent/internal/highlight", "sdk/host"},
	"cmd/agent/internal/highlight":       {},
	"cmd/agent/internal/browser":         {},
	"cmd/agent/internal/insight":         {"cmd/agent/internal/display", "core/event", "core/model", "core/store"},
	"cmd/agent/internal/dashboard":       {"cmd/agent/internal/page", "core/atomicfile", "sdk/agent"},
	"cmd/agent/internal/page":            {"core/bead", "cmd/agent/internal/display", "cmd/agent/internal/insight", "core/event", "core/model", "core/store", "core/telemetry", "sdk/agent", "sdk/service", "sdk/service/api"},
	"cmd/agent/internal/display":         {"core/event", "core/changes", "core/invisible"},
	"cmd/agent/internal/vt":              {},
	"cmd/agent/internal/bench":           {"cmd/agent/internal/bench/page", "core/event", "core/model/...", "core/model/modeltest"},
	"cmd/agent/internal/packaging":       {"cmd/agent/internal/cmd/root"},
	"cmd/agent/internal/bench/page":      {},
	"cmd/agent/internal/bench/plugin":    {"sdk"},
	"cmd/agent/internal/bench/yardstick": {},
	"cmd/agent/internal/searchbench":     {"cmd/agent/internal/bench/page", "core", "core/env", "core/model", "core/tools", "permissions"},
}

// forAll lists the packages that every package may import.
var forAll = []string{"core/lazy"}

// noun is the line of a command's package: what every one may import, and more.
func noun(more ...string) []string {
	return append(more,
		"cmd/agent/internal/cmdutil", "cmd/agent/internal/setup",
		"cmd/agent/internal/config", "cmd/agent/internal/display", "cmd/agent/internal/trust", "core", "core/event", "sdk/agent")
}

// foreignRule bans imports of packages outside the module.
type foreignRule struct {
	imports string // an import path, or "path/..." for it and all below
	in      string // the packages that it applies to, "..." for all
	except  string // the packages that are exempt
	why     string
}

var foreignRules = []foreignRule{
	{imports: "github.com/tmc/langchaingo/...", in: "...", except: "core/model/langchain/...", why: "only the bridge guards against only the bridge"},
	{imports: "os/...", in: "core/tools", why: "a tool reaches files and processes only through its Environment"},
	{imports: "github.com/mark3labs/mcp-go/server/...", in: "...", why: "what it imports costs every start 7 ms"},
	{imports: "github.com/mark3labs/mcp-go/client/...", in: "...", why: "it imports mcp-go's server, which costs every start 7 ms"},
	{imports: "C", in: "...", why: "the module builds with CGO_ENABLED=0"},
}

// standardLibraryOnly lists the packages that import only the standard library
// and what importRules allows.
var standardLibraryOnly = []string{
	"core/model",
	"core/event",
	"core/proc/internal/early",
	"cmd/agent/internal/bench/yardstick",
}

func TestImportRules(t *testing.T) {
	t.Parallel()
	found, err := checkImports(os.DirFS(moduleRoot(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// TestBrokenImportRuleIsFound breaks each kind of rule in a made-up tree.
func TestBrokenImportRuleIsFound(t *testing.T) {
	t.Parallel()
	ours := func(p string) string { return strconv.Quote(modulePath + "/" + p) }
	tests := []struct {
		name, file, source string
		want               string // part of the one violation, "" for none
	}{
		{"allowed", "core/core.go", "package core; import _ " + ours("core/model"), ""},
		{"sibling", "core/tools/x.go", "package tools; import _ " + ours("core/env"), "core/tools/x.go:1: core/tools must not import core/env"},
		{"upwards", "core/model/x.go", "package model; import _ " + ours("core"), "must not import core"},
		{"module root", "core/x.go", "package core; import _ " + strconv.Quote(modulePath), "must not import ."},
		{"named import", "registry/x.go", "package registry; import p " + ours("permissions"), "must not import permissions"},
		{"behind a build tag", "core/x_windows.go", "//go:build windows\npackage core; import _ " + ours("registry"), "core/x_windows.go:2: core must not import registry"},
		{"package without a line", "core/novel/x.go", "package novel", "core/novel has no line"},
		{"wildcard", "cmd/agent/internal/setup/x.go", "package setup; import _ " + ours("core/model/langchain"), ""},
		{"wildcard hides test support", "cmd/agent/internal/setup/x.go", "package setup; import _ " + ours("core/model/modeltest"), "must not import core/model/modeltest"},
		{"exception from a wildcard", "sdk/agent/x.go", "package agent; import _ " + ours("cmd/agent/internal/config"), "must not import cmd/agent/internal/config"},
		{"bridge uses langchaingo", "core/model/langchain/x.go", `package langchain; import _ "github.com/tmc/langchaingo/llms"`, ""},
		{"others do not", "sdk/agent/x.go", `package agent; import _ "github.com/tmc/langchaingo/llms"`, "must not import github.com/tmc/langchaingo/llms: only the bridge"},
		{"tool reads the disk", "core/tools/x.go", `package tools; import _ "os"`, "must not import os: a tool"},
		{"tool starts a process", "core/tools/x.go", `package tools; import _ "os/exec"`, "must not import os/exec"},
		{"cgo", "core/env/x.go", `package env; import "C"`, "must not import C"},
		{"library where none may be", "core/model/x.go", `package model; import _ "github.com/google/uuid"`, "standard library only"},
		{"standard library", "core/model/x.go", `package model; import _ "encoding/json"`, ""},
		{"tests are free", "core/tools/x_test.go", "package tools; import _ " + ours("core/env"), ""},
		{"testdata is no package", "core/testdata/x.go", "package x; import _ " + ours("registry"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := checkImports(fstest.MapFS{tt.file: {Data: []byte(tt.source)}})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("violations = %q, want none", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("violations = %q, want one with %q", got, tt.want)
			}
		})
	}
}

func TestImportRulesSkipOtherModules(t *testing.T) {
	t.Parallel()
	got, err := checkImports(fstest.MapFS{
		"sdk/agent/example/go.mod":  {Data: []byte("module example")},
		"sdk/agent/example/main.go": {Data: []byte("package main; import _ \"" + modulePath + "/registry\"")},
	})
	if err != nil || len(got) > 0 {
		t.Errorf("checkImports = %q, %v; want neither", got, err)
	}
}

// TestCoreStaysSmall keeps package core, the contract and the loop, within its
// budget of code lines: what does not fit belongs in a separate package.
func TestCoreStaysSmall(t *testing.T) {
	t.Parallel()
	const budget = 2400
	core := filepath.Join(moduleRoot(t), "core")
	files, err := filepath.Glob(filepath.Join(core, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no Go files in %s (error %v)", core, err)
	}
	total := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += codeLines(src)
	}
	t.Logf("core has %d code lines of %d", total, budget)
	if total > budget {
		t.Errorf("core has %d code lines without comments, blanks and tests; its budget is %d", total, budget)
	}
}

func TestCodeLines(t *testing.T) {
	t.Parallel()
	src := "// Package p is not code.\npackage p\n\n/* nor\nis this */\nvar s = `one\n\ntwo` // a comment beside code\n"
	if got, want := codeLines([]byte(src)), 3; got != want {
		t.Errorf("codeLines = %d, want %d", got, want)
	}
}

// checkImports returns every broken rule of the module whose root is tree.
func checkImports(tree fs.FS) ([]string, error) {
	var found []string
	unruled := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enterPackage(tree, name)
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		pkg := path.Dir(name)
		if _, ok := importRules[pkg]; !ok {
			if !unruled[pkg] {
				found = append(found, fmt.Sprintf("package %s has no line in importRules of cmd/agent/imports_test.go: a new package needs one", pkg))
			}
			unruled[pkg] = true
			return nil
		}
		broken, err := checkFile(tree, name, pkg)
		found = append(found, broken...)
		return err
	})
	return found, err
}

// enterPackage returns fs.SkipDir for directories that the go command does not
// treat as packages of this module.
func enterPackage(tree fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	switch _, err := fs.Stat(tree, path.Join(dir, "go.mod")); {
	case err == nil:
		return fs.SkipDir
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// checkFile returns the rules that one file breaks, whatever its build
// constraints are.
func checkFile(tree fs.FS, name, pkg string) ([]string, error) {
	src, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var broken []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		if msg := importError(pkg, imported); msg != "" {
			line := fset.Position(spec.Pos()).Line
			broken = append(broken, fmt.Sprintf("%s:%d: %s", name, line, msg))
		}
	}
	return broken, nil
}

// importError names the rule that forbids pkg to import imported, or returns "".
func importError(pkg, imported string) string {
	if ours, ok := ownPath(imported); ok {
		if slices.Contains(forAll, ours) || mayImport(importRules[pkg], ours) {
			return ""
		}
		return fmt.Sprintf("%s must not import %s; it may import %q (importRules in cmd/agent/imports_test.go)", pkg, ours, importRules[pkg])
	}
	for _, r := range foreignRules {
		if covers(r.imports, imported) && covers(r.in, pkg) && (r.except == "" || !covers(r.except, pkg)) {
			return fmt.Sprintf("%s must not import %s: %s", pkg, imported, r.why)
		}
	}
	host, _, _ := strings.Cut(imported, "/")
	if strings.Contains(host, ".") && slices.Contains(standardLibraryOnly, pkg) {
		return fmt.Sprintf("%s must not import %s: it uses the standard library only", pkg, imported)
	}
	return ""
}

// ownPath returns the path of a package below the module.
func ownPath(imported string) (string, bool) {
	if imported == modulePath {
		return ".", true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// mayImport reports whether the patterns of a line in importRules allow pkg.
// Exclusions take precedence.
func mayImport(patterns []string, pkg string) bool {
	allowed := false
	for _, p := range patterns {
		if excluded, ok := strings.CutPrefix(p, "!"); ok {
			if covers(excluded, pkg) {
				return false
			}
			continue
		}
		testSupport := strings.HasSuffix(pkg, "test")
		if p == pkg || !testSupport && covers(p, pkg) {
			allowed = true
		}
	}
	return allowed
}

// covers reports whether pkg equals pattern, or is below it if it ends in "...".
func covers(pattern, pkg string) bool {
	dir, ok := strings.CutSuffix(pattern, "...")
	if !ok {
		return pattern == pkg
	}
	return strings.HasPrefix(pkg+"/", dir)
}

// codeLines counts the lines of Go source with a token, or part of one, that is
// not a comment.
func codeLines(src []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0) // comments are skipped
	count, last := 0, 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return count
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // inserted by the scanner
		}
		line := file.Line(pos)
		for part := range strings.SplitSeq(lit, "\n") {
			if line > last && (lit == "" || strings.TrimSpace(part) != "") {
				count++
				last = line
			}
			line++
		}
	}
}

// moduleRoot walks up from the test's directory to the one with go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod in any directory above the test")
		}
		dir = parent
	}
}
