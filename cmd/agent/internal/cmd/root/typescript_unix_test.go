//go:build unix

package root

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// typescriptModulesEnv is the variable with the node_modules directory of
// testdata/typescript.
const typescriptModulesEnv = "AGENT_TEST_TYPESCRIPT_MODULES"

// tsc checks a program and compiles it into a directory. It returns what the compiler
// says.
func tsc(t *testing.T, modules, file, dir string) (string, error) {
	t.Helper()
	out, err := exec.Command("node", filepath.Join(modules, "typescript", "bin", "tsc"), "--strict", "--target", "es2022", "--module", "nodenext",
		"--allowImportingTsExtensions", "--rewriteRelativeImportExtensions", "--erasableSyntaxOnly", "--types", "node",
		"--typeRoots", filepath.Join(modules, "@types"), "--outDir", dir, file).CombinedOutput()
	return string(out), err
}

// TestTypeScriptClient runs the client of the documentation: compiled or, without the
// compiler, as it is.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	features, err := exec.Command("node", "-p", "process.features.typescript").Output()
	if err != nil {
		t.Skip("node is not installed")
	}
	client, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "..", "docs", "clients", "client.mts"))
	if err != nil {
		t.Fatal(err)
	}
	if modules := os.Getenv(typescriptModulesEnv); modules != "" {
		dir := t.TempDir()
		if out, err := tsc(t, modules, client, dir); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		refuseWrongClient(t, modules, client)
		client = filepath.Join(dir, "client.mjs")
	} else if strings.TrimSpace(string(features)) != "strip" {
		t.Skipf("node does not run TypeScript, and %s is not set to the node_modules directory of testdata/typescript", typescriptModulesEnv)
	}
	w := newWorld(t, `[{calls: [{name: write_file, args: {file_path: a.txt, content: x}}]}, {text: [Over.]}]`)
	if out := w.node(client, "Make a file"); !strings.Contains(out, "Over.") || !strings.Contains(out, "done") {
		t.Errorf("the client says %s", out)
	}
	if data, err := os.ReadFile(filepath.Join(w.workspace, "a.txt")); err != nil || string(data) != "x" {
		t.Errorf("the file that the client approved has %q, %v", data, err)
	}
}

// refuseWrongClient: the types tell lines that the protocol does not have.
func refuseWrongClient(t *testing.T, modules, client string) {
	t.Helper()
	source, err := os.ReadFile(client)
	if err != nil {
		t.Fatal(err)
	}
	types, err := os.ReadFile(filepath.Join(filepath.Dir(client), "protocol.ts"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	wrong := strings.NewReplacer(`type: "answer"`, `type: "reply"`, "line.outcome", "line.result").Replace(string(source))
	for name, data := range map[string]string{"wrong.mts": wrong, "protocol.ts": string(types)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := tsc(t, modules, filepath.Join(dir, "wrong.mts"), dir)
	if err == nil || !strings.Contains(out, `Type '"reply"' is not assignable`) || !strings.Contains(out, "Property 'result' does not exist") {
		t.Errorf("a wrong client: %v\n%s", err, out)
	}
}
