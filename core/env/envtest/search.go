package envtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/tools"
)

// searchTime is the maximum time of a search of 300 files that is not slowed
// down by other tests. It is long enough for a machine that has other work, and
// much shorter than that of two programs for each file.
const searchTime = 8 * time.Second

// TestSearch checks that the searching tools return the same as on this machine.
// The factory is that of [TestHardCases].
func TestSearch(t *testing.T, factory func(t *testing.T) core.Environment) {
	local, err := env.NewLocal(env.LocalOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	remote := factory(t)
	for _, e := range []core.Environment{local, remote} {
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		plantTree(t, e)
	}
	for _, c := range searches {
		t.Run(c.tool.Definition().Name+" "+c.args, func(t *testing.T) {
			want, got := search(t, local, c.tool, c.args), search(t, remote, c.tool, c.args)
			if want != got {
				t.Errorf("got\n%s\nwant, as on this machine,\n%s", got, want)
			}
		})
	}
	t.Run("not readable", func(t *testing.T) {
		run(t, remote, "mkdir shut shut/dir; echo needle >shut/dir/f; echo needle >shut/f; echo needle >shut/open; chmod 0 shut/dir shut/f")
		t.Cleanup(func() { _, _, _ = core.Exec(context.Background(), remote, core.Command{Script: "chmod 700 shut/dir"}) })
		want := "\nshut/open:1:needle\n(2 paths not searched: sensitive, or access not granted.)"
		if got := search(t, remote, tools.Grep(), `{"pattern": "needle", "path": "shut"}`); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("300 files", func(t *testing.T) {
		start := time.Now()
		got := search(t, remote, tools.Grep(), `{"pattern": "needle 2[0-9]9$", "path": "many"}`)
		if strings.Count(got, "\n") != 10 { // and the last line
			t.Errorf("got\n%s\nwant 10 matches", got)
		}
		took := time.Since(start)
		t.Logf("a search of 300 files took %v", took)
		if took > searchTime {
			t.Errorf("a search of 300 files took %v", took)
		}
	})
}

// plantTree writes what a search may stumble over.
func plantTree(t *testing.T, e core.Environment) {
	t.Helper()
	for name, text := range map[string]string{
		".gitignore":               "*.log\n/build/\ndeep/*\n!deep/kept\n",
		"a.log":                    "needle\n",
		"build/x":                  "needle\n",
		"sub/.gitignore":           "hidden*\n!*.log\n",
		"sub/hidden":               "needle\n",
		"sub/b.log":                "needle\n",
		"sub/below/again/f":        "a\nb needle\nc\nd needle",
		"deep/dropped/x":           "needle\n",
		"deep/kept/x":              "needle\nNEEDLE\n",
		"crlf":                     "one\r\nneedle two\r\n",
		"bom":                      "\uFEFFneedle\n",
		"latin":                    "n\xe4he needle\xff\n",
		"utf16":                    "n\x00e\x00e\x00d\x00l\x00e\x00",
		"late zero":                strings.Repeat("-", 9000) + "\nneedle\n\x00",
		"binary":                   "needle\x00",
		"empty":                    "",
		"no end":                   "needle",
		"==> a <==":                "\n==> b <==\nneedle\n",
		"new\nline":                "needle\n",
		"\xff\xfe/\xff":            "needle\n",
		"-n":                       "needle\n",
		"it's $HOME `id` \\ \"q\"": "needle\n",
		".env":                     "needle=secret\n",
		"dir.env/x":                "needle\n",
		"long":                     strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000) + "\n",
		"large/text":               strings.Repeat("no match\n", 1<<19) + "needle\n",
		"large/binary":             "\x00" + strings.Repeat("no match\n", 1<<19),
	} {
		put(t, e, name, text)
	}
	put(t, e, ".git/HEAD", "needle\n")
	put(t, e, ".git/info/exclude", "excluded\n")
	put(t, e, "excluded", "needle\n")
	run(t, e, `ln -s crlf link; ln -s sub dirlink; ln -s nowhere broken; mkdir linked nothing; ln -s ../.gitignore linked/.gitignore; echo needle >linked/x.log
mkfifo pipe; mkdir many; i=0; while [ $i -lt 300 ]; do mkdir -p many/$((i / 20)); echo "a needle $i" >many/$((i / 20))/f$i; i=$((i + 1)); done
for f in * .[a-z]* */* */.[a-z]* */*/* */*/*/*; do touch -h -d '2020-01-02 03:04:05' "./$f" 2>/dev/null; done`)
}

var searches = []struct {
	tool core.Tool
	args string
}{
	{tools.Grep(), `{"pattern": "needle"}`},
	{tools.Grep(), `{"pattern": "needle", "max_results": 7}`},
	{tools.Grep(), `{"pattern": "needle", "max_results": 5000, "output_mode": "count"}`},
	{tools.Grep(), `{"pattern": "NEEDLE", "case_insensitive": true, "output_mode": "files_with_matches", "max_results": 1000}`},
	{tools.Grep(), `{"pattern": "b needle$", "context": 2}`},
	{tools.Grep(), `{"pattern": "needle", "path": "sub/below"}`},
	{tools.Grep(), `{"pattern": "needle", "path": "dirlink"}`},
	{tools.Grep(), `{"pattern": "needle", "path": "crlf"}`},
	{tools.Grep(), `{"pattern": "needle", "path": "binary"}`},
	{tools.Grep(), `{"pattern": "needle", "path": "nowhere"}`},
	{tools.Grep(), `{"pattern": "needle", "glob_filter": "!many/**"}`},
	{tools.Grep(), `{"pattern": "not there at all"}`},
	{tools.Glob(), `{"pattern": "sub/**"}`},
	{tools.Glob(), `{"pattern": "nothing/**"}`},
	{tools.Glob(), `{"pattern": "**/x"}`},
	{tools.ListDir(), `{}`},
	{tools.ListDir(), `{"depth": 4}`},
}

// search calls a tool as a session does whose policy withholds .env.
func search(t *testing.T, e core.Environment, tool core.Tool, args string) string {
	t.Helper()
	var out bytes.Buffer
	call := &core.Call{ID: "1", Name: tool.Definition().Name, Args: json.RawMessage(args), Output: &out, Env: e}
	accesses, err := tool.Access(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var grants []core.Grant
	for _, a := range accesses {
		to, err := e.Resolve(t.Context(), a.Resource)
		if err != nil {
			t.Fatal(err)
		}
		a.Resource, a.Inside = to.Path, to.Inside
		grants = append(grants, core.Grant{Access: a, Except: func(p string) bool { return path.Ext(p) == ".env" }})
	}
	call.Env = core.Restrict(e, grants, nil)
	result, err := tool.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	text := out.String() + model.Parts(result.Content).Text()
	return fmt.Sprintf("%s\n%s", result.Code, strings.ReplaceAll(text, e.Info().Dir, "DIR"))
}
