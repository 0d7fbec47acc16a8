package toolproto_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// TestGenerated checks that the generated code is up to date.
func TestGenerated(t *testing.T) {
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Skip("protoc is not installed (Debian: protobuf-compiler)")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "sh", "generate.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("generate.sh: %v\n%s", err, out)
	}
	// The version of protoc does not matter.
	compiler := regexp.MustCompile(`(?m)^// (- |\t)protoc .*$`)
	for _, name := range []string{"plugin.pb.go", "plugin_grpc.pb.go"} {
		fresh, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(compiler.ReplaceAll(fresh, nil)) != string(compiler.ReplaceAll(kept, nil)) {
			t.Errorf("%s is out of date: run go generate ./sdk/toolproto", name)
		}
	}
}

func Example() {
	fmt.Printf("a plugin requires %s=%s\n", toolproto.CookieKey, toolproto.CookieValue)
	// Output: a plugin requires AGENT_PLUGIN=3f0d6a1c9be24d7f
}
