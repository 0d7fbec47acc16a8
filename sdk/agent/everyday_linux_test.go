package agent

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/permissions"
)

// everyday are commands as people and models use them in a repository. $WEB is a
// server on this machine, $REPO a git repository that it serves, $PID a process, $FREE
// an unused port. A command whose program, the first word unless named, is missing is skipped.
var everyday = []struct {
	line    string
	program string // needed, if not the first word
}{
	{line: "git status --short"},
	{line: "git log --oneline | head -3"},
	{line: "git diff HEAD~1 --stat"},
	{line: "echo more >> notes.txt && git add -A", program: "git"},
	{line: "git commit -qm work"},
	{line: "echo again >> notes.txt && git stash push -u -m later -- notes.txt && git stash pop", program: "git"},
	{line: "git switch -c feature"},
	{line: "git checkout -q - && git merge -q feature"},
	{line: "git tag v0.0.1"},
	{line: "git rebase -q --autostash HEAD~1"},
	{line: "git branch -d feature"},
	{line: "git fetch origin"},
	{line: "git pull --ff-only origin main"},
	{line: "git push origin HEAD:refs/heads/pushed"},
	{line: "git ls-remote origin"},
	{line: "git clone -q $REPO copy"},
	{line: "git remote add upstream $REPO"},
	{line: "git config user.nickname x"},
	{line: "git worktree list"},
	{line: "git blame main.go | tail -2"},
	{line: "git cherry-pick --allow-empty -n HEAD"},
	{line: "git reset -q HEAD && git rm -q --cached notes.txt && git add notes.txt"},

	{line: "go build ./..."},
	{line: "go vet ./..."},
	{line: "go test ./..."},
	{line: "go run ."},
	{line: "go get example.test/dep@v1.0.0"},
	{line: "go mod tidy"},
	{line: "go mod download"},
	{line: "go list -m all"},
	{line: "gofmt -l .", program: "gofmt"},
	{line: "go env GOPATH"},

	{line: "npm ci"},
	{line: "npm install --no-save dep"},
	{line: "npm run build"},
	{line: "npm test"},
	{line: "npm ls"},
	{line: "npm view dep version"},
	{line: "npx --no-install dep", program: "npx"},
	{line: "node -e 'console.log(1 + 1)'", program: "node"},
	{line: "node --test", program: "node"},
	{line: "npm outdated"},

	{line: "python3 -m venv .venv"},
	{line: ".venv/bin/pip install -q dep", program: "python3"},
	{line: "source .venv/bin/activate && pip install -q --force-reinstall dep", program: "python3"},
	{line: "pip download -q -d wheels dep", program: "pip"},
	{line: "pip install -q --target lib dep", program: "pip"},
	{line: "python3 -c 'print(1)'"},
	{line: "python3 -m unittest -q"},
	{line: "python3 script.py > out.txt && cat out.txt", program: "python3"},
	{line: "python3 -m http.server $FREE --bind 127.0.0.1 & sleep 1; curl -sf --retry 30 --retry-connrefused --retry-delay 1 http://127.0.0.1:$FREE/ > /dev/null", program: "python3"},
	{line: "pytest -q", program: "pytest"},

	{line: "cargo fetch", program: "cargo"},
	{line: "cargo build --quiet", program: "cargo"},
	{line: "cargo --version", program: "cargo"},

	{line: "make"},
	{line: "make -C sub test", program: "make"},
	{line: "docker ps"},
	{line: "docker images"},
	{line: "docker --version"},
	{line: "curl -sf $WEB/hello"},
	{line: "curl -sfo page.html http://localhost:$PORT/hello", program: "curl"},
	{line: "curl -sf --unix-socket web.sock http://x/hello", program: "curl"},
	{line: "wget -q -O page2.html $WEB/hello"},
	{line: "ping -c 1 -W 2 127.0.0.1"},
	{line: "psql -h localhost -p $DB -U ann -Atc 'select 1' app"},
	{line: "kill -0 $PID"},

	{line: "find . -name '*.go' -not -path './node_modules/*'"},
	{line: "grep -rn TODO --include=*.go . || true"},
	{line: "rg -n main --glob '*.go'"},
	{line: "sed -i s/hello/goodbye/ notes.txt"},
	{line: "awk '{print $1}' notes.txt"},
	{line: "tar czf src.tgz main.go sub && tar tzf src.tgz"},
	{line: "zip -qr src.zip main.go sub"},
	{line: "jq -r .name package.json"},
	{line: "mkdir -p build && cp main.go build/ && mv build/main.go build/x.go && rm -r build"},
	{line: "touch new.txt && rm new.txt"},
	{line: "echo hello > greeting.txt"},
	{line: "ls -la && wc -l main.go && sort notes.txt | uniq -c"},
	{line: "chmod +x script.py"},
	{line: "diff -u main.go sub/x.go || true"},
	{line: "xargs -n 1 echo < notes.txt"},
	{line: "date && whoami && uname -a && df -h . && du -sh ."},
	{line: "ed -s notes.txt <<< $'$a\\nx\\n.\\nw\\nq'"},
	{line: "vim -es -c 'normal Gox' -c wq notes.txt"},
	{line: "tee copy.txt < notes.txt | head -1", program: "tee"},
	{line: "time sleep 0.1", program: "sleep"},
	{line: "mktemp -d"},
	{line: "ssh -V"},
	{line: "openssl rand -hex 4"},
	{line: "bash script.sh"},
	{line: "./script.sh", program: "bash"},
}

// TestEverydayCommands runs each command in a repository at both levels, and
// answers the one question that there may be with yes. Of those whose programs are
// here, nine in ten finish, and none fails without saying what to do.
func TestEverydayCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs dozens of programs")
	}
	if os.Getenv(apartVariable) == "" {
		t.Parallel()
	}
	for _, level := range []sandbox.Mode{sandbox.ModeNamespace, sandbox.ModeLandlock} {
		t.Run(string(level), func(t *testing.T) {
			if apart(t) {
				return
			}
			w := newEveryday(t, level)
			ran, finished, asked := 0, 0, 0
			for _, c := range everyday {
				program := c.program
				if program == "" {
					program, _, _ = strings.Cut(c.line, " ")
				}
				if _, err := exec.LookPath(program); err != nil {
					t.Logf("skipped   %-60s %s is not installed", c.line, program)
					continue
				}
				line := w.expand(c.line)
				out, question, code := w.run(t, line)
				ran++
				outcome := "finished"
				switch {
				case code == 0:
					finished++
				default:
					outcome = fmt.Sprintf("failed %d", code)
					if !strings.Contains(out, "[sandbox: ") {
						t.Errorf("%s: fails without saying what to do:\n%s", line, out)
					}
				}
				if question != "" {
					asked++
				}
				t.Logf("%-9s %-60s %s", outcome, c.line, question)
				if code != 0 {
					t.Log(out)
				}
			}
			t.Logf("%s: %d of %d finish, %d of them after a question; %d are not installed", level, finished, ran, asked, len(everyday)-ran)
			if finished*80 < ran*72 {
				t.Errorf("%d of %d commands finish; want nine in ten", finished, ran)
			}
		})
	}
}

// everydayWorld is a repository on a machine with servers.
type everydayWorld struct {
	agent *Agent
	shell core.Entry
	dir   string
	web   *httptest.Server
	vars  *strings.Replacer
}

func (w *everydayWorld) expand(line string) string { return w.vars.Replace(line) }

// run runs a command like a session whose user approves everything, and returns its
// output, the question, and the exit code.
func (w *everydayWorld) run(t *testing.T, line string) (out, question string, code int) {
	t.Helper()
	args, err := json.Marshal(map[string]any{"command": line, "timeout_ms": 90_000})
	if err != nil {
		t.Fatal(err)
	}
	var buffer bytes.Buffer
	call := &core.Call{ID: "1", Name: "shell", Args: args, Env: w.agent.Env(), Output: &buffer, Session: core.SessionInfo{Dir: w.dir}}
	_, d, err := core.Judge(t.Context(), w.agent.Policy(), w.shell, call, nil)
	if err != nil || d.Verdict == core.Deny {
		t.Fatalf("%s: %v %v", line, err, d.Reason)
	}
	if d.Verdict == core.Ask {
		question = d.Reason
	}
	call.Env = core.Restrict(w.agent.Env(), d.Grants, nil)
	res, err := w.shell.Tool.Run(t.Context(), call)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var exit struct {
		ExitCode int `json:"exitCode"`
	}
	if res.Structured == nil || json.Unmarshal(res.Structured, &exit) != nil {
		return buffer.String() + fmt.Sprint(res.Content), question, -1
	}
	return buffer.String(), question, exit.ExitCode
}

func newEveryday(t *testing.T, level sandbox.Mode) *everydayWorld {
	t.Helper()
	real := os.Getenv("HOME")
	home, err := os.MkdirTemp(real, ".everyday-") // the sandbox has its own /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+w", home).Run() // modules are read-only
		os.RemoveAll(home)
	})
	w := &everydayWorld{dir: filepath.Join(home, "work", "project")}
	for _, dir := range []string{".npm", "go/pkg/mod", ".cargo/registry"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(real, ".cache"), filepath.Join(home, ".cache")); err != nil { // with Go's standard library
		t.Fatal(err)
	}
	t.Setenv("RUSTUP_HOME", filepath.Join(real, ".rustup"))
	t.Setenv("HOME", home)
	w.web = w.serve(t, filepath.Join(home, "remote.git"))
	for name, value := range map[string]string{
		"GOPROXY": w.web.URL + "/go", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "npm_config_registry": w.web.URL + "/npm/",
		"PIP_INDEX_URL": w.web.URL + "/simple", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "DOCKER_HOST": "unix://" + w.docker(t), "CGO_ENABLED": "0",
	} {
		t.Setenv(name, value)
	}
	w.project(t, filepath.Join(home, "remote.git"))
	_, port, _ := net.SplitHostPort(w.web.Listener.Addr().String())
	w.vars = strings.NewReplacer("$WEB", w.web.URL, "$REPO", w.web.URL+"/git/remote.git", "$PORT", port, "$DB", database(t), "$FREE", freePort(t), "$PID", fmt.Sprint(os.Getpid()))
	w.agent, err = Open(t.Context(), Options{
		Dir: w.dir, Home: filepath.Join(home, ".agent"), Permissions: permissions.Options{Confine: true},
		Sandbox: &SandboxOptions{Shell: level},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.agent.Close() })
	if !w.agent.Env().(*env.Local).Sandboxed(t.Context()) {
		t.Skip("this level does not work here")
	}
	snapshot, err := w.agent.Tools().Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range snapshot.Entries() {
		if e.ModelName == "shell" {
			w.shell = e
		}
	}
	return w
}

// project creates the repository.
func (w *everydayWorld) project(t *testing.T, remote string) {
	t.Helper()
	files := map[string]string{
		"main.go":      "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n",
		"main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestMain1(t *testing.T) {}\n",
		"go.mod":       "module example.test/app\n\ngo 1.21\n",
		"tools.go":     "//go:build tools\n\npackage main\n\nimport _ \"example.test/dep\"\n",
		"notes.txt":    "hello world\n",
		"package.json": `{"name": "app", "version": "1.0.0", "scripts": {"build": "node -e 0", "test": "node -e 0"}, "dependencies": {"dep": "1.0.0"}}`,
		"package-lock.json": fmt.Sprintf(`{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {`+
			`"": {"name": "app", "version": "1.0.0", "dependencies": {"dep": "1.0.0"}}, `+
			`"node_modules/dep": {"version": "1.0.0", "resolved": "%s/npm/dep/-/dep-1.0.0.tgz", "integrity": %q, "bin": {"dep": "cli.js"}}}}`, w.web.URL, integrity(npmPackage())),
		"script.py":                "print('hello')\n",
		"test_app.py":              "import unittest\n\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
		"script.sh":                "#!/bin/bash\necho ok > result.txt && cat result.txt\n",
		"app.test.js":              "require('node:test')('works', () => {})\n",
		"Makefile":                 "all:\n\tmkdir -p out && echo built > out/built\n",
		"sub/Makefile":             "test:\n\ttrue\n",
		"sub/x.go":                 "package sub\n",
		"src/main.rs":              "fn main() { println!(\"hello\"); }\n",
		"Cargo.toml":               "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ndep = \"1\"\n",
		".gitignore":               "node_modules\n.venv\ntarget\n*.sock\n__pycache__\n",
		"../../.cargo/config.toml": fmt.Sprintf("[source.crates-io]\nreplace-with = \"here\"\n\n[source.here]\nregistry = \"sparse+%s/crates/\"\n", w.web.URL),
	}
	for name, text := range files {
		writeFile(t, filepath.Join(w.dir, name), text, 0o755)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	writeFile(t, filepath.Join(w.dir, "../../.gitconfig"), "[user]\n\tname = Ann\n\temail = ann@example.test\n[init]\n\tdefaultBranch = main\n", 0o600)
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "one")
	git("commit", "-qm", "two", "--allow-empty")
	git("init", "-q", "--bare", remote)
	git("-C", remote, "config", "http.receivepack", "true")
	git("push", "-q", remote, "HEAD:main")
	git("remote", "add", "origin", w.web.URL+"/git/remote.git")
	listener, err := net.Listen("unix", filepath.Join(w.dir, "web.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: w.web.Config.Handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
}

func writeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// database starts a PostgreSQL server with one answer, and returns its port.
func database(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go answerQueries(c)
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func answerQueries(c net.Conn) {
	defer c.Close()
	send := func(kind byte, body string) {
		_, _ = c.Write(append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...))
	}
	for started := false; ; {
		head := make([]byte, 5)
		if !started { // without a kind
			head = head[:4]
		}
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		switch {
		case !started && binary.BigEndian.Uint32(body)>>16 != 3: // asks for encryption
			_, _ = io.WriteString(c, "N")
		case !started:
			started = true
			send('R', "\x00\x00\x00\x00")
			send('Z', "I")
		case head[0] == 'Q':
			send('T', "\x00\x01x\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x17\x00\x04\xff\xff\xff\xff\x00\x00")
			send('D', "\x00\x01\x00\x00\x00\x011")
			send('C', "SELECT 1\x00")
			send('Z', "I")
		default:
			return
		}
	}
}

// docker starts a daemon with no containers, and returns its socket.
func (w *everydayWorld) docker(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "everyday-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Api-Version", "1.41")
		rw.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/json") {
			_, _ = io.WriteString(rw, "[]")
			return
		}
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			_, _ = io.WriteString(rw, "OK")
			return
		}
		http.Error(rw, `{"message": "not in this test"}`, http.StatusNotFound)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return filepath.Join(dir, "docker.sock")
}

// serve starts a web server that is also a module proxy, package registries and a
// git server.
func (w *everydayWorld) serve(t *testing.T, remote string) *httptest.Server {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	give := func(pattern string, content []byte) {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(content) })
	}
	give("/hello", []byte("hello"))
	give("/go/example.test/dep/@v/list", []byte("v1.0.0\n"))
	give("/go/example.test/dep/@v/v1.0.0.info", []byte(`{"Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z"}`))
	give("/go/example.test/dep/@v/v1.0.0.mod", []byte("module example.test/dep\n"))
	give("/go/example.test/dep/@v/v1.0.0.zip", zipOf(map[string]string{
		"example.test/dep@v1.0.0/go.mod": "module example.test/dep\n", "example.test/dep@v1.0.0/dep.go": "package dep\n",
	}))
	tgz := npmPackage()
	give("/npm/dep/-/dep-1.0.0.tgz", tgz)
	give("/npm/dep", fmt.Appendf(nil, `{"name": "dep", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "dep", "version": "1.0.0", `+
		`"bin": {"dep": "cli.js"}, "dist": {"tarball": "%s/npm/dep/-/dep-1.0.0.tgz", "integrity": %q}}}}`, server.URL, integrity(tgz)))
	give("/simple/dep/", []byte(`<a href="/wheels/dep-1.0.0-py3-none-any.whl">dep-1.0.0-py3-none-any.whl</a>`))
	give("/wheels/dep-1.0.0-py3-none-any.whl", zipOf(map[string]string{
		"dep.py": "x = 1\n", "dep-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: dep\nVersion: 1.0.0\n",
		"dep-1.0.0.dist-info/WHEEL":  "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"dep-1.0.0.dist-info/RECORD": "dep.py,,\ndep-1.0.0.dist-info/METADATA,,\ndep-1.0.0.dist-info/WHEEL,,\ndep-1.0.0.dist-info/RECORD,,\n",
	}))
	crate := tgzOf(map[string]string{"dep-1.0.0/Cargo.toml": "[package]\nname = \"dep\"\nversion = \"1.0.0\"\nedition = \"2021\"\n", "dep-1.0.0/src/lib.rs": ""})
	sum := sha256.Sum256(crate)
	give("/crates/config.json", fmt.Appendf(nil, `{"dl": "%s/crates/dl"}`, server.URL))
	give("/crates/3/d/dep", fmt.Appendf(nil, `{"name": "dep", "vers": "1.0.0", "deps": [], "cksum": %q, "features": {}, "yanked": false}`+"\n", hex.EncodeToString(sum[:])))
	give("/crates/dl/dep/1.0.0/download", crate)
	if path, err := exec.Command("git", "--exec-path").Output(); err == nil {
		mux.Handle("/git/", &cgi.Handler{
			Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"), Root: "/git",
			Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(remote), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
		})
	}
	return server
}

func npmPackage() []byte {
	return tgzOf(map[string]string{
		"package/package.json": `{"name": "dep", "version": "1.0.0", "bin": {"dep": "cli.js"}}`, "package/cli.js": "#!/usr/bin/env node\nconsole.log('dep')\n",
	})
}

func integrity(data []byte) string {
	sum := sha512.Sum512(data)
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func tgzOf(files map[string]string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name])), Format: tar.FormatUSTAR, ModTime: time.Unix(1e9, 0)})
		_, _ = io.WriteString(w, files[name])
	}
	_ = w.Close()
	_ = z.Close()
	return b.Bytes()
}

func zipOf(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, _ := w.Create(name)
		_, _ = io.WriteString(f, files[name])
	}
	_ = w.Close()
	return b.Bytes()
}
