package plugins

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

const valid = `{
  "name": "weather",
  "version": "1.0.0",
  "protocol": 1,
  "command": {"*": ["./weather"]},
  "manifest": {"read": ["$WORKSPACE/docs"], "network": ["*.example.org:8443"], "env": ["CITY"]}
}`

func TestSpecErrorsHaveAPosition(t *testing.T) {
	if _, err := parseSpec("plugin.json", []byte(valid)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{`"weather",`, `"Weather",`, `plugin.json:2:11: "Weather" cannot be a plugin's name`},
		{`"weather",`, `"builtin",`, `plugin.json:2:11: the name "builtin" is reserved`},
		{`"weather",`, `"web",`, `plugin.json:2:11: the name "web" is reserved`},
		{`"env": ["CITY"]`, `"limits": {"memoryMb": 1}`, `expected 128 to 1048576`},
		{`"1.0.0"`, `""`, `plugin.json:3:14: expected a version`},
		{`"1.0.0"`, `100`, `plugin.json:3:14:`},
		{`"protocol": 1`, `"protocol": 2`, `plugin.json:4:15: unknown protocol 2, expected 1`},
		{`{"*": ["./weather"]}`, `{}`, `plugin.json:5:14: missing command`},
		{`{"*": ["./weather"]}`, `{"Linux": ["./weather"]}`, `plugin.json:5:24: invalid system "Linux"`},
		{`{"*": ["./weather"]}`, `{"*": []}`, `plugin.json:5:20: expected the program`},
		{`"./weather"`, `"../weather"`, `plugin.json:5:21: "../weather" leads out of the plugin's folder`},
		{`"./weather"`, `"./../weather"`, `plugin.json:5:21: "./../weather" is not in the plugin's folder`},
		{`"./weather"`, `"/bin/sh"`, `plugin.json:5:21: "/bin/sh" leads out`},
		{`"$WORKSPACE/docs"`, `"docs"`, `plugin.json:6:25: a plugin cannot be granted the path "docs"`},
		{`"$WORKSPACE/docs"`, `"$WORKSPACE/../x"`, `cannot be granted the path`},
		{`"$WORKSPACE/docs"`, `"/"`, `cannot be granted the path`},
		{`"$WORKSPACE/docs"`, `"$HOMEWORK"`, `cannot be granted the path`},
		{`"*.example.org:8443"`, `"http://x"`, `plugin.json:6:57:`},
		{`"CITY"`, `"LD_PRELOAD"`, `cannot be granted the environment variable "LD_PRELOAD"`},
		{`"CITY"`, `"A=B"`, `cannot be granted the environment variable`},
		{`"manifest"`, `"manifests"`, `plugin.json:6:3: unknown key "manifests"`},
		{`"protocol": 1,`, `"protocol": 1`, `plugin.json:5:3:`},
		{`"protocol": 1,`, `"protocol": 1, "context": {"maxTokens": 0},`, `plugin.json:4:43: expected 1 to 20000`},
		{`"protocol": 1,`, `"protocol": 1, "checksums": {"weather": "abc"},`, `expected a SHA-256`},
		{`"protocol": 1,`, `"protocol": 1, "checksums": {"../x": ""},`, `"../x" is not a file of the plugin`},
		{`"protocol": 1,`, `"protocol": 1, "summary": "\u001b[2J",`, `expected one line`},
	} {
		text := strings.Replace(valid, tt.old, tt.new, 1)
		if _, err := parseSpec("plugin.json", []byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s for %s: error %v, want one with %q", tt.new, tt.old, err, tt.want)
		}
	}
}

func TestCommandOfThisSystem(t *testing.T) {
	s := Spec{Command: map[string][]string{"*": {"python3", "./x.py"}, "plan9": {"rc"}}}
	argv, err := s.argv("/dir")
	if err != nil || !slices.Equal(argv, []string{"python3", filepath.Join("/dir", "x.py")}) {
		t.Errorf("%q, %v", argv, err)
	}
	s.Command[runtime.GOOS] = []string{"os"}
	s.Command[runtime.GOOS+"/"+runtime.GOARCH] = []string{"exact"}
	if argv, err := s.argv("/dir"); err != nil || argv[0] != "exact" {
		t.Errorf("%q, %v", argv, err)
	}
}

func TestWithChecksums(t *testing.T) {
	sums := map[string]string{"weather": strings.Repeat("ab", 32)}
	once, err := withChecksums("plugin.json", []byte(valid), sums)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(once), strings.TrimSuffix(valid, "\n}")) {
		t.Errorf("the rest was changed:\n%s", once)
	}
	sums["more"] = strings.Repeat("cd", 32)
	twice, err := withChecksums("plugin.json", once, sums)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := parseSpec("plugin.json", twice); err != nil || len(s.Checksums) != 2 {
		t.Errorf("%v\n%s", err, twice)
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte(`{"name": "a", "command": {"*": ["./\u0000"]}}`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseSpec("plugin.json", data)
		if err != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseSpec("again", again); err != nil {
			t.Errorf("a marshalled spec cannot be read: %v\n%s", err, again)
		}
		if argv, err := s.argv("/dir"); err == nil {
			for i, arg := range argv {
				if filepath.IsAbs(arg) && i == 0 && !sandbox.Below("/dir", arg) {
					t.Errorf("the command %q is outside the plugin", argv)
				}
			}
		}
	})
}

func FuzzHandshake(f *testing.F) {
	dir := f.TempDir()
	for _, line := range []string{
		"1|1|unix|" + dir + "/s|grpc|", "1|1|unix|" + dir + "/../s|grpc", "1|1|tcp|127.0.0.1:1|grpc", "1|2|||", "hello", "|||||||", "1|1|unix||grpc|",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		address, err := checkHandshake(line, sandbox.Resolve(dir))
		if err == nil && !sandbox.Below(dir, filepath.Clean(address)) && !sandbox.Below(sandbox.Resolve(dir), filepath.Clean(address)) {
			t.Errorf("%q leads to %q, outside %s", line, address, dir)
		}
		if err != nil && !printable(strings.ReplaceAll(err.Error(), "\n", "")) {
			t.Errorf("the message contains hidden characters: %q", err)
		}
	})
}

func FuzzResourcesAt(f *testing.F) {
	f.Add(`{"a": {"b": ["x", "y"]}}`, "/a/b")
	f.Add(`{"a": 3}`, "/a/b/c")
	f.Add(`["x"]`, "/0")
	f.Add(`{"~": {"/": "x"}}`, "/~0/~1")
	f.Fuzz(func(t *testing.T, text, pointer string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		got, ok := resourcesAt(v, pointer)
		if !ok && len(got) > 0 {
			t.Errorf("%s at %s: resources %q although not ok", text, pointer, got)
		}
		if slices.Contains(got, "") {
			t.Errorf("%s at %s: an empty resource", text, pointer)
		}
	})
}
