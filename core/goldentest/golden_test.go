package goldentest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that notes its failure instead of failing.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return "TestX/case" }
func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); panic(r) }

func check(t *testing.T, file, got string) (failed string) {
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		failed = r.failed
	}()
	Check(r, file, []byte(got))
	return r.failed
}

func TestCheck(t *testing.T) {
	const command = "go test ./core/goldentest -run '^TestX$' -update"
	file := filepath.Join(t.TempDir(), "sub", "x.golden")
	if got := check(t, file, "a\n"); !strings.Contains(got, command) {
		t.Errorf("a missing file: %q", got)
	}
	*update = true
	got := check(t, file, "a\nb\n")
	*update = false
	if got != "" {
		t.Errorf("an update: %q", got)
	}
	if got := check(t, file, "a\nb\n"); got != "" {
		t.Errorf("the same text: %q", got)
	}
	if got := check(t, file, "a\nc\n"); !strings.Contains(got, "-b\n+c\n") || !strings.Contains(got, command) {
		t.Errorf("another text: %q", got)
	}
	if err := os.WriteFile(file, []byte("a\r\nb\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := check(t, file, "a\nb\n"); got != "" {
		t.Errorf("CRLF: %q", got)
	}
}
