package root

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/core/schema"
	"github.com/seed-009c0928/agent/mcp/oauth/oauthtest"
)

// TestScripts runs testdata/script/*.txtar. Each script has a home of its own
// in $HOME, outside of what it works on, whose settings name a fake model
// server; $BIN holds the command and nothing else, and $REPO is this source. Beside the commands of testscript there are
//
//	model FILE                answer the next requests with the turns of this YAML file (see fakeTurn)
//	[!] sent [-n N] REGEXP    the body of the last (the N-th) request to the server matches
//	sent -count N             the server got N requests
//	sent -prefix              the messages of each request begin with those of the one before, to the byte
//	exits CODE PROGRAM ARGS…  exec that wants this exit code
//	events FILE               the file is a stream-json stream
//	json FILE PATH VALUE      a member of the file's JSON object is VALUE; PATH is dotted, as in denied.0.tool
//	json -set VAR FILE PATH   put a member into a variable
//	await FILE                wait until a file exists
//	expand FILE               put the servers' addresses for $MODEL_URL and $SITE in the file
//	protected                 start an MCP server at $MCP_URL that wants a sign-in
//	gocache                   let the go command use the caches of these tests
//	modules DIR               let the go command get modules from these folders, HOST/NAME@VERSION each, and agent itself as v0.0.1
//	sumdb MODULE@VERSION…     let it ask a checksum database, which knows the modules as they are now
//	[!] found PATTERN         there is a file of such a name
//	site FILE                 serve this file as a web page at $SITE, whose host and port are $SITE_HOST
//
// and the conditions [sandbox]: a level of the sandbox works here; [layers]: level
// namespace does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), RequireUniqueNames: true, UpdateScripts: *update,
		Setup: setupScript, Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model": cmdModel, "sent": cmdSent, "exits": cmdExits, "events": cmdEvents, "json": cmdJSON, "await": cmdAwait, "expand": cmdExpand, "gocache": cmdGoCache,
			"protected": cmdProtected, "site": cmdSite, "modules": cmdModules, "sumdb": cmdSumDB, "found": cmdFound,
			"gitserver": cmdGitServer, "npm": cmdNPM,
		},
	})
}

// condition decides on the conditions of our own.
func condition(name string) (bool, error) {
	mode, known := map[string]sandbox.Mode{"sandbox": sandbox.ModeRequire, "layers": sandbox.ModeNamespace}[name]
	if !known {
		return false, fmt.Errorf("unknown condition %q", name)
	}
	s := proc.NewSupervisor(proc.Options{})
	defer s.Close()
	_, err := s.Sandbox().Choose(context.Background(), mode)
	return err == nil, nil
}

type fakeKey struct{}

func setupScript(env *testscript.Env) error {
	fake := &fakeModel{}
	url, err := fake.start()
	if err != nil {
		return err
	}
	env.Defer(fake.stop)
	env.Values[fakeKey{}] = fake
	home := filepath.Join(env.WorkDir, ".tmp", "home")
	if err := writeSettings(home, url); err != nil {
		return err
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		env.Setenv(name, home)
	}
	env.Setenv("MODEL_URL", url)
	bin, err := exec.LookPath("agent")
	if err != nil {
		return err
	}
	env.Setenv("BIN", filepath.Dir(bin))
	repo, err := filepath.Abs(filepath.Join("..", "..", "..", "..", ".."))
	if err != nil {
		return err
	}
	env.Setenv("REPO", repo)
	env.Setenv("GOOS", runtime.GOOS)
	env.Setenv("GOARCH", runtime.GOARCH)
	return nil
}

// writeSettings writes the settings of a person whose model is at the URL.
func writeSettings(home, url string) error {
	dir := filepath.Join(home, ".agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf(`{"version": 1, "providers": {"local": {"baseUrl": %q, "model": "fake-1"}}, "retry": {"enabled": false}}`+"\n", url)
	return os.WriteFile(filepath.Join(dir, "settings.json"), []byte(text), 0o600)
}

func fakeOf(ts *testscript.TestScript) *fakeModel { return ts.Value(fakeKey{}).(*fakeModel) }

func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model FILE")
	}
	text := strings.NewReplacer("$WORK", filepath.ToSlash(ts.Getenv("WORK")), "$ID", ts.Getenv("ID")).Replace(ts.ReadFile(args[0]))
	ts.Check(fakeOf(ts).play(ts.Getenv("WORK"), []byte(text)))
}

func cmdSent(ts *testscript.TestScript, neg bool, args []string) {
	requests := fakeOf(ts).chat.Requests()
	n := len(requests)
	switch {
	case len(args) == 2 && args[0] == "-count" && !neg:
		if args[1] != strconv.Itoa(n) {
			ts.Fatalf("the server got %d requests", n)
		}
		return
	case len(args) == 1 && args[0] == "-prefix" && !neg:
		ts.Check(fakeOf(ts).checkPrefixes())
		return
	case len(args) == 3 && args[0] == "-n":
		i, err := strconv.Atoi(args[1])
		ts.Check(err)
		n, args = i, args[2:]
	}
	if len(args) != 1 {
		ts.Fatalf("usage: [!] sent [-n N] REGEXP, sent -count N, sent -prefix")
	}
	if n < 1 || n > len(requests) {
		ts.Fatalf("there is no request %d; the server got %d", n, len(requests))
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	if body := requests[n-1].Body; pattern.Match(body) == neg {
		ts.Fatalf("the end of request %d:\n%s", n, body[max(0, len(body)-2000):])
	}
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGS…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func cmdEvents(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: events FILE")
	}
	ts.Check(checkStream(ts.ReadFile(args[0])))
}

// eventSchema is the published schema of events.
func eventSchema() (*schema.Schema, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "docs", "events.schema.json"))
	if err != nil {
		return nil, err
	}
	return schema.Parse(raw)
}

// checkStream holds a stream-json stream against what docs/events.md promises.
func checkStream(text string) error {
	schema, err := eventSchema()
	if err != nil {
		return err
	}
	var types []string
	var last event.Seq
	ids := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var members map[string]json.RawMessage
		var e event.Event
		if err := errors.Join(json.Unmarshal(lines.Bytes(), &members), json.Unmarshal(lines.Bytes(), &e)); err != nil {
			return fmt.Errorf("line %d: %w", len(types)+1, err)
		}
		if err := schema.Validate(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d does not meet docs/events.schema.json: %w\n%s", len(types)+1, err, lines.Text())
		}
		for _, name := range []string{"v", "seq", "id", "time", "session", "type"} {
			if _, ok := members[name]; !ok {
				return fmt.Errorf("line %d has no %q: %s", len(types)+1, name, lines.Text())
			}
		}
		switch kind := e.Body.Type(); {
		case kind == "init" || kind == "result":
			if e.Seq != 0 {
				return fmt.Errorf("%s has the number %d, which is of the session's own events", kind, e.Seq)
			}
		case e.Seq <= last:
			return fmt.Errorf("%s has the number %d after %d", kind, e.Seq, last)
		default:
			last = e.Seq
		}
		if ids[e.ID] {
			return fmt.Errorf("the id %q comes twice", e.ID)
		}
		ids[e.ID] = true
		types = append(types, e.Body.Type())
	}
	if n := len(types); n < 2 || types[0] != "init" || types[n-1] != "result" {
		return fmt.Errorf("not init first and result last: %v", types)
	}
	return lines.Err()
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	set := len(args) == 4 && args[0] == "-set"
	if neg || len(args) != 3 && !set {
		ts.Fatalf("usage: json FILE PATH VALUE, json -set VAR FILE PATH")
	}
	file, path := args[0], args[1]
	if set {
		file, path = args[2], args[3]
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &v))
	got, err := member(v, path)
	ts.Check(err)
	if set {
		ts.Setenv(args[1], got)
	} else if got != args[2] {
		ts.Fatalf("%s is %s, want %s", path, got, args[2])
	}
}

// member returns the value at a dotted path: a string as it is, anything else
// as JSON.
func member(v any, path string) (string, error) {
	for name := range strings.SplitSeq(path, ".") {
		var ok bool
		switch at := v.(type) {
		case map[string]any:
			v, ok = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if ok = err == nil && i < len(at); ok {
				v = at[i]
			}
		}
		if !ok {
			return "", fmt.Errorf("there is no %s in %s", name, path)
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	ts.Check(await("the file "+args[0], func() bool {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return !errors.Is(err, fs.ErrNotExist)
	}))
}

func cmdExpand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: expand FILE")
	}
	text := strings.NewReplacer("$MODEL_URL", ts.Getenv("MODEL_URL"), "$SITE", ts.Getenv("SITE"), "$GIT_SITE", ts.Getenv("GIT_SITE")).Replace(ts.ReadFile(args[0]))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

func cmdGoCache(ts *testscript.TestScript, _ bool, _ []string) {
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		ts.Check(err)
		ts.Setenv(name, strings.TrimSpace(string(out)))
	}
}

// scriptOwner ends servers with a script.
type scriptOwner struct{ *testscript.TestScript }

func (o scriptOwner) Cleanup(f func()) { o.Defer(f) }

func cmdProtected(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("MCP_URL", protectedServer(scriptOwner{ts}))
}

// protectedServer starts an MCP server that requires a sign-in, and returns its address.
func protectedServer(owner oauthtest.Owner) (url string) {
	protocol := server.NewMCPServer("tracker", "1", server.WithToolCapabilities(false))
	protocol.AddTool(mcp.NewTool("hello", mcp.WithDescription("Says hello.")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("hello, friend"), nil
	})
	resource := oauthtest.NewResource(owner, oauthtest.NewIssuer(owner), func(r *oauthtest.Resource) {
		r.Scope, r.Serve = "issues:read", server.NewStreamableHTTPServer(protocol)
	})
	return resource.URL + "/mcp"
}
