package root

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScaffolds begins a plugin in each other language, runs its tests, adds it and
// calls its tool, and tests a plugin that does all that a plugin can, which gives the
// same results in each. (Those in Go are in testdata/script/plugins.txtar.)
func TestScaffolds(t *testing.T) {
	t.Run("python", func(t *testing.T) {
		path := os.Getenv("PATH")
		if exec.Command("python3", "-c", "import grpc, google.protobuf").Run() != nil {
			path = "/usr/bin" + string(os.PathListSeparator) + path // the system's, where there is another
			if exec.Command("/usr/bin/python3", "-c", "import grpc, google.protobuf").Run() != nil {
				t.Skip("python3 has no grpcio (Debian: python3-grpcio, python3-protobuf)")
			}
		}
		scaffolded(t, "python", "plugin.py", []string{"PATH=" + path}, []string{"python3", "-m", "unittest"})
	})
	t.Run("node", func(t *testing.T) {
		root, err := exec.Command("npm", "root", "-g").Output()
		if err != nil {
			t.Skip("node or npm is not installed")
		}
		modules := strings.TrimSpace(string(root)) // a folder below /tmp is not seen in the sandbox
		if _, err := os.Stat(filepath.Join(modules, "@grpc", "grpc-js")); err != nil {
			t.Skip("the npm package @grpc/grpc-js is not installed (npm install -g @grpc/grpc-js@1.14.7)")
		}
		scaffolded(t, "node", "plugin.js", []string{"NODE_PATH=" + modules}, []string{"npm", "test"})
	})
}

// TestRustScaffold is TestScaffolds for Rust, with the crates of Debian.
func TestRustScaffold(t *testing.T) {
	const crates = "/usr/share/cargo/registry"
	for _, crate := range []string{"h2-0.3.*", "prost-0.11.*", "tokio-1.*", "serde_json-1.*"} {
		if found, _ := filepath.Glob(filepath.Join(crates, crate)); len(found) == 0 {
			t.Skip("no crates to build with (Debian 12: librust-h2-dev, librust-prost-dev, librust-tokio-dev, librust-serde-json-dev)")
		}
	}
	if exec.Command("cargo", "--version").Run() != nil {
		t.Skip("cargo is not installed")
	}
	home := t.TempDir()
	config := fmt.Sprintf("[source.crates-io]\nreplace-with = \"debian\"\n[source.debian]\ndirectory = %q\n[net]\noffline = true\n", crates)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	build := []string{"sh", "-c", "cargo build && cp target/debug/greeter . && cp greeter author"}
	scaffolded(t, "rust", "main.rs", []string{"CARGO_HOME=" + home}, build, []string{"cargo", "test"})
}

func scaffolded(t *testing.T, lang, program string, env []string, tests ...[]string) {
	t.Helper()
	home, work := t.TempDir(), t.TempDir()
	run := func(dir string, argv ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "AGENT_HOME="+home), env...)
		if path, ok := strings.CutPrefix(env[0], "PATH="); ok {
			cmd.Path = lookIn(path, argv[0], cmd.Path)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
		return string(out)
	}
	run(work, "agent", "plugins", "new", "greeter", "--lang", lang)
	dir := filepath.Join(work, "greeter")
	for _, test := range tests {
		run(dir, test...)
	}
	if out := run(dir, "agent", "plugins", "add", "--yes", "."); !strings.Contains(out, "Added greeter 0.1.0, with 1 tool.") {
		t.Errorf("add: %s", out)
	}
	for range 2 {
		out := run(work, "agent", "tools", "call", "greeter_hello", "--args", `{"name": "Ann"}`, "--allow", "plugin(greeter/*)")
		if out != "Hello, Ann!\n" {
			t.Errorf("the call: %q", out)
		}
	}
	author(t, dir, program)
	if lang == "rust" {
		run(dir, tests[0]...)
	}
	if out := run(work, "agent", "plugins", "test", dir); strings.Contains(out, "FAIL") || !strings.Contains(out, "ok    hook guard") {
		t.Errorf("the plugin of testdata/author: %s", out)
	}
}

// author makes a new plugin the one of testdata/author.
func author(t *testing.T, dir, program string) {
	t.Helper()
	for _, name := range []string{program, "plugin.json", "samples.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", "author", name))
		if err != nil {
			t.Fatal(err)
		}
		command := map[string]string{"main.rs": `"./author"`, "plugin.py": `"python3", "./plugin.py"`, "plugin.js": `"node", "./plugin.js"`}[program]
		text := strings.ReplaceAll(string(data), `"./author"`, command)
		if name == "main.rs" {
			name = "src/main.rs"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// lookIn finds a program in a PATH.
func lookIn(path, name, otherwise string) string {
	for _, dir := range filepath.SplitList(path) {
		if at := filepath.Join(dir, name); isProgram(at) {
			return at
		}
	}
	return otherwise
}

func isProgram(at string) bool {
	info, err := os.Stat(at)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
