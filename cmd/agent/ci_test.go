package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgain: CI runs few and plain failures once more, and names what passed then.
func TestAgain(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	const plain = "ok  \texample.com/a\t1.0s\n--- FAIL: TestOne (1.59s)\n    --- FAIL: TestOne/part (0.01s)\n        a_test.go:1: no\nFAIL\nFAIL\texample.com/b\t10.7s\nFAIL\n"
	for _, test := range []struct {
		name, log, command, want string // want: how the command was called; "" = the failure stays
	}{
		{"plain", plain, "true", "-count=1 -run ^(TestOne)$ example.com/b"},
		{"fails again", plain, "false", ""},
		{"two tests", strings.Replace(plain, "FAIL\nFAIL\t", "--- FAIL: TestTwo (0.00s)\nFAIL\nFAIL\t", 1), "true", "-count=1 -run ^(TestOne|TestTwo)$ example.com/b"},
		{"four tests", strings.Repeat(plain, 4), "true", ""},
		{"data race", "WARNING: DATA RACE\n" + strings.TrimPrefix(plain, "ok  \texample.com/a\t1.0s\n"), "true", ""},
		{"panic", strings.Replace(plain, "FAIL\nFAIL\t", "panic: no [recovered]\nFAIL\t", 1), "true", ""},
		{"no build", plain + "FAIL\texample.com/c [build failed]\n", "true", ""},
		{"outside of tests", "goleak: Errors on successful test run\nFAIL\texample.com/c\t0.1s\n", "true", ""},
		{"benchmark", strings.ReplaceAll(plain, "TestOne", "BenchmarkOne"), "true", ""},
		{"no test", "the demo failed\n", "true", ""},
	} {
		dir := t.TempDir()
		log, called := filepath.Join(dir, "log"), filepath.Join(dir, "called")
		if err := os.WriteFile(log, []byte(test.log), 0o600); err != nil {
			t.Fatal(err)
		}
		script := `printf %s "$*" >"$0"; ` + test.command
		out, err := exec.Command(bash, "../../.ci/again", log, bash, "-c", script, called).CombinedOutput()
		after, _ := os.ReadFile(log)
		if test.want == "" {
			if err == nil || strings.Contains(string(after), "flaky") {
				t.Errorf("%s: it passed: %s%s", test.name, out, after)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v: %s", test.name, err, out)
		}
		if got, _ := os.ReadFile(called); string(got) != test.want {
			t.Errorf("%s: called with %q, want %q", test.name, got, test.want)
		}
		if strings.Contains(string(after), "FAIL") || !strings.Contains(string(after), "\n--- flaky: TestOne (1.59s)\n") || !strings.Contains(string(after), "\nflaky\texample.com/b\t10.7s\n") {
			t.Errorf("%s: the log says\n%s", test.name, after)
		}
	}
}
