package skills_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/skills"
)

func TestToolsetContract(t *testing.T) {
	dir := tempDir(t)
	write(t, dir, map[string]string{"skills/a/SKILL.md": skillText("a", "Does a.", "", "x"), "skills/a/notes.txt": "y"})
	coretest.TestToolset(t, func(*testing.T) core.Toolset {
		return skills.NewTools(skills.ToolsOptions{Library: homeLibrary(dir)})
	}, coretest.ToolsetOptions{Calls: map[string][]coretest.SampleCall{skills.ToolName: {
		{Args: `{"action": "search", "query": "does"}`},
		{Args: `{"action": "search"}`},
		{Args: `{"action": "load", "name": "a"}`},
		{Args: `{"action": "load", "name": "nope"}`, Want: core.CodeNotFound},
		{Args: `{"action": "read_resource", "name": "a", "path": "notes.txt"}`},
		{Args: `{"action": "dance"}`, Want: core.CodeValidation},
	}}})
}

// workshop runs calls of the tool in the local environment.
type workshop struct {
	t    *testing.T
	dir  string
	tool core.Tool
	env  *env.Local
}

func newWorkshop(t *testing.T, files map[string]string, timeout time.Duration) *workshop {
	t.Helper()
	dir := tempDir(t)
	write(t, dir, files)
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	local, err := env.NewLocal(env.LocalOptions{Dir: work, Environ: append(os.Environ(), "PLAIN=1", "MY_TOKEN=secret"), PassEnv: []string{"MY_TOKEN"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	})
	set := skills.NewTools(skills.ToolsOptions{
		Library: skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Home: dir, Bundled: fstest.MapFS{
			"packed/SKILL.md":       {Data: []byte(skillText("packed", "Bundled.", "", "x"))},
			"packed/scripts/run.sh": {Data: []byte("#!/bin/sh\n")},
		}})}),
		ScriptTimeout: timeout,
	})
	t.Cleanup(func() { _ = set.Close() })
	tools, err := set.Tools(t.Context())
	if err != nil || len(tools) != 1 {
		t.Fatalf("%d tools, %v", len(tools), err)
	}
	return &workshop{t, dir, tools[0], local}
}

// call runs a call as core does: access, a grant of exactly that, run.
func (w *workshop) call(ctx context.Context, args map[string]any) (core.Result, string) {
	w.t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	var out lockedBuffer
	call := &core.Call{ID: "1", Name: skills.ToolName, Args: text, Env: w.env, Output: &out, Session: core.SessionInfo{Dir: w.env.Info().Dir}}
	accesses, err := w.tool.Access(ctx, call)
	if err != nil {
		return core.Fail(core.CodeValidation, err.Error()), err.Error()
	}
	var grants []core.Grant
	for _, a := range accesses {
		grants = append(grants, core.Grant{Access: a})
	}
	call.Env = core.Restrict(w.env, grants, nil)
	r, err := w.tool.Run(ctx, call)
	if err != nil {
		w.t.Fatal(err)
	}
	return r, out.String() + model.Parts(r.Content).Text()
}

func (w *workshop) script(path string, args ...string) (core.Result, string) {
	w.t.Helper()
	return w.call(w.t.Context(), map[string]any{"action": "run_script", "name": "x", "path": path, "args": args})
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestReadResource(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, map[string]string{
		"skills/x/SKILL.md":        skillText("x", "Does x.", "", "the text"),
		"skills/x/references/a.md": "one\u202etwo",
		"skills/x/long.txt":        strings.Repeat("0123456789", 5000),
		"skills/x/binary":          "a\xff\xfe",
		"skills/secret.txt":        "secret",
	}, 0)
	if runtime.GOOS != "windows" {
		if err := os.Symlink(filepath.Join(w.dir, "skills", "secret.txt"), filepath.Join(w.dir, "skills", "x", "link.txt")); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string, offset int) (core.Result, string) {
		return w.call(t.Context(), map[string]any{"action": "read_resource", "name": "x", "path": path, "offset": offset})
	}
	for path, want := range map[string]string{"references/a.md": "onetwo", "SKILL.md": "the text", `references\a.md`: "onetwo"} {
		if r, text := read(path, 0); r.Code != "" || text != want {
			t.Errorf("%s: %q (%s)", path, text, r.Code)
		}
	}
	for path, want := range map[string]core.ErrorCode{
		"../secret.txt": core.CodeValidation, "/etc/passwd": core.CodeValidation, "references/../../secret.txt": core.CodeValidation,
		"nope": core.CodeNotFound, "references": core.CodeNotFound, "": core.CodeValidation, "binary": core.CodeValidation, "link.txt": core.CodeNotFound,
	} {
		if r, text := read(path, 0); r.Code != want || strings.Contains(text, "secret") && path != "../secret.txt" && !strings.Contains(path, "secret") {
			t.Errorf("%s: %s %q, want %s", path, r.Code, text, want)
		}
	}
	_, first := read("long.txt", 0)
	if !strings.HasSuffix(first, "[40000 of 50000 bytes; continue with offset 40000]") {
		t.Errorf("the end of a long file: %.100q", first[len(first)-100:])
	}
	if _, rest := read("long.txt", 40_000); rest != strings.Repeat("0123456789", 1000) {
		t.Errorf("its rest has %d bytes", len(rest))
	}
	if r, _ := read("long.txt", 50_001); r.Code != core.CodeValidation {
		t.Errorf("beyond its end: %s", r.Code)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts of this test are for a Unix shell")
	}
	w := newWorkshop(t, map[string]string{
		"skills/x/SKILL.md":          skillText("x", "Does x.", "", "x"),
		"skills/x/scripts/args.sh":   "#!/bin/sh\nfor a in \"$@\"; do echo \"[$a]\"; done\n",
		"skills/x/scripts/where.sh":  "#!/bin/sh\npwd; echo \"$AGENT_WORKSPACE\"; echo \"plain=$PLAIN token=$MY_TOKEN\"; read x; echo \"in=$x\"\n",
		"skills/x/scripts/json.sh":   "#!/bin/sh\necho noise >&2\necho '{\"n\": 1}'\n",
		"skills/x/scripts/fail.sh":   "#!/bin/sh\necho sorry; exit 3\n",
		"skills/x/scripts/plain.txt": "echo hi\n",
		"skills/x/scripts/ending.sh": "echo by its extension\n",
		"skills/x/outside.sh":        "#!/bin/sh\necho no\n",
		"skills/y/SKILL.md":          skillText("y", "Does y.", "", "x"),
		"outside.sh":                 "#!/bin/sh\necho no\n",
	}, 0)
	if err := os.Symlink(filepath.Join(w.dir, "outside.sh"), filepath.Join(w.dir, "skills", "x", "scripts", "link.sh")); err != nil {
		t.Fatal(err)
	}
	if r, text := w.script("args.sh", "a b", "$(touch x)", "; rm -rf /", "*"); r.Code != "" || !strings.HasPrefix(text, "[a b]\n[$(touch x)]\n[; rm -rf /]\n[*]\n") || !strings.Contains(text, "[args.sh of skill x: exit code 0]") {
		t.Errorf("arguments: %s %q", r.Code, text)
	}
	want := filepath.Join(w.dir, "skills", "x") + "\n" + filepath.Join(w.dir, "work") + "\nplain= token=\nin=\n"
	if r, text := w.script("scripts/where.sh"); r.Code != "" || !strings.HasPrefix(text, want) {
		t.Errorf("where it runs: %s %q, want %q", r.Code, text, want)
	}
	if r, text := w.script("json.sh"); string(r.Structured) != `{"n": 1}` || !strings.Contains(text, "noise") {
		t.Errorf("JSON: %s %q", r.Structured, text)
	}
	if r, text := w.script("fail.sh"); r.Code != core.CodeIO || !strings.Contains(text, "sorry\n") || !strings.Contains(text, "exit code 3") {
		t.Errorf("failure: %s %q", r.Code, text)
	}
	if r, text := w.script("ending.sh"); r.Code != "" || !strings.Contains(text, "by its extension") {
		t.Errorf("by extension: %s %q", r.Code, text)
	}
	for path, want := range map[string]string{
		"plain.txt": "no interpreter", "../outside.sh": "is not a file in scripts/", "../../../outside.sh": "is not a file in scripts/", "/bin/sh": "has no file scripts/bin/sh",
		"link.sh": "leads out of the skill's folder", "nope.sh": "has no file scripts/nope.sh", "": "is not a file in scripts/",
	} {
		if r, text := w.script(path); r.Code == "" || !strings.Contains(text, want) {
			t.Errorf("%q: %s %q, want %q", path, r.Code, text, want)
		}
	}
	for name, args := range map[string][]string{"many": make([]string, 101), "long": {strings.Repeat("x", 4097)}, "NUL": {"a\x00b"}} {
		if r, text := w.script("args.sh", args...); r.Code != core.CodeValidation {
			t.Errorf("%s arguments: %s %q", name, r.Code, text)
		}
	}
	if r, text := w.call(t.Context(), map[string]any{"action": "run_script", "name": "packed", "path": "run.sh"}); r.Code == "" || !strings.Contains(text, "has no executable files") {
		t.Errorf("a bundled skill's script: %s %q", r.Code, text)
	}
}

// TestScriptsThatMisbehave checks scripts that hang, flood their output, leave
// processes behind and ignore SIGTERM.
func TestScriptsThatMisbehave(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the scripts of this test are for a Unix shell")
	}
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("sleep is not in PATH")
	}
	files := map[string]string{
		"skills/x/SKILL.md":          skillText("x", "Does x.", "", "x"),
		"skills/x/scripts/hang.sh":   "#!/bin/sh\nsleep 1000 & echo started; sleep 1000\n",
		"skills/x/scripts/flood.sh":  "#!/bin/sh\nwhile :; do echo 0123456789012345678901234567890123456789; done\n",
		"skills/x/scripts/forks.sh":  "#!/bin/sh\n(sleep 1000 &) ; (sleep 1000 &); echo done\n",
		"skills/x/scripts/ignore.sh": "#!/bin/sh\ntrap '' TERM; echo ready; while :; do sleep 1; done\n",
	}
	hanging := newWorkshop(t, files, 2*time.Second) // which includes its start
	if r, text := hanging.script("hang.sh"); r.Code != core.CodeTimeout || !strings.Contains(text, "started") || !strings.Contains(text, "timed out after 2s") {
		t.Errorf("hang: %s %q", r.Code, text)
	}
	w := newWorkshop(t, files, time.Minute)
	if r, text := w.script("flood.sh"); r.Code != core.CodeIO || !strings.Contains(text, "printed more than 1024 KiB") || len(text) > 1<<20+200 {
		t.Errorf("flood: %s, %d bytes, %.200q", r.Code, len(text), text[max(0, len(text)-200):])
	}
	if r, text := w.script("forks.sh"); r.Code != "" || !strings.Contains(text, "killed 2 remaining processes") {
		t.Errorf("forks: %s %q", r.Code, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		// Most likely the script runs by then; otherwise the test is only weaker.
		time.Sleep(200 * time.Millisecond)
	}()
	if r, _ := w.call(ctx, map[string]any{"action": "run_script", "name": "x", "path": "ignore.sh"}); r.Code != core.CodeCancelled {
		t.Errorf("cancelled: %s", r.Code)
	}
}

func TestActivateToolsets(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{
		"source/tools/SKILL.md":        skillText("tools", "Has tools.", "toolsets: [lookup]\n", "x"),
		"source/tools/toolsets/lookup": "#!/bin/sh\n",
		"skills/own/SKILL.md":          skillText("own", "Has tools, too.", "toolsets: [lookup]\n", "x"),
		"skills/own/toolsets/lookup":   "#!/bin/sh\n",
	})
	in := skills.NewInstaller(filepath.Join(dir, "skills"), nil)
	install(t, in, filepath.Join(dir, "source", "tools"), func(o *skills.Offer) skills.Terms { return o.Terms() })
	lib := skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Home: dir}), Locked: skills.Locks(filepath.Join(dir, "skills"))})
	var opened, problems []string
	set := skills.NewTools(skills.ToolsOptions{
		Library: lib,
		OpenToolset: func(path, sum string) (core.Toolset, error) {
			if len(sum) != 64 {
				t.Errorf("sum %q", sum)
			}
			opened = append(opened, filepath.Base(filepath.Dir(filepath.Dir(path))))
			return emptySet{}, nil
		},
		AddToolset: func(s core.Toolset) error { return s.Close() },
		Problem:    func(err error) { problems = append(problems, err.Error()) },
	})
	defer set.Close()
	for _, name := range []string{"tools", "tools", "own"} {
		s, ok := lib.Catalog().Find(name)
		if !ok {
			t.Fatal(name)
		}
		set.Activate(s)
	}
	if strings.Join(opened, " ") != "tools" || len(problems) != 1 || !strings.Contains(problems[0], "not approved") {
		t.Errorf("opened %q, problems %q", opened, problems)
	}
	write(t, dir, map[string]string{"skills/tools/toolsets/lookup": "#!/bin/sh\nevil\n"})
	s, _ := lib.Catalog().Find("tools")
	set.Activate(s)
	if len(opened) != 1 || len(problems) != 2 || !strings.Contains(problems[1], "changed since it was installed") {
		t.Errorf("a changed one: opened %q, problems %q", opened, problems)
	}
}

// emptySet is a toolset without tools.
type emptySet struct{}

func (emptySet) Name() string                               { return "lookup" }
func (emptySet) Tools(context.Context) ([]core.Tool, error) { return nil, nil }
func (emptySet) Changed() <-chan struct{}                   { return nil }
func (emptySet) Close() error                               { return nil }

// TestListPages: a user who asks gets all skills, the first page in the input and
// the others by the tool.
func TestListPages(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	files := map[string]string{}
	for i := range 130 {
		name := fmt.Sprintf("skill-%03d", i)
		files["skills/"+name+"/SKILL.md"] = skillText(name, fmt.Sprintf("Does the thing number %d of many.", i), "", "x")
	}
	write(t, dir, files)
	lib := homeLibrary(dir)
	blocks, err := skills.NewSource(skills.SourceOptions{Library: lib}).Context(t.Context(), core.ContextRequest{Input: core.TextInput("Which skills are there?").Content, Budget: 300})
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	text := blocks[0].Text
	last := text[strings.LastIndex(text, "["):]
	var left, offset int
	if _, err := fmt.Sscanf(last, "[%d more: for the rest, search with the skill tool without a query, from offset %d]", &left, &offset); err != nil || left+offset != 130 || left == 0 {
		t.Fatalf("%q: %v", last, err)
	}
	w := newWorkshop(t, files, 0)
	offset++ // its library also has a bundled skill, which comes first
	for offset < 131 {
		_, page := w.call(t.Context(), map[string]any{"action": "search", "offset": offset})
		text += page
		offset += 50
	}
	for i := range 130 {
		if n := strings.Count(text, fmt.Sprintf("- skill-%03d:", i)); n != 1 {
			t.Errorf("skill-%03d is listed %d times", i, n)
		}
	}
	if _, page := w.call(t.Context(), map[string]any{"action": "search", "offset": 1000}); !strings.Contains(page, "The offset 1000 is not within the list of 131 skills.") {
		t.Errorf("beyond the end: %s", page)
	}
}
