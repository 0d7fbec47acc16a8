package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/dashboard"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/core/model"
)

// TestMain makes the test binary serve the page when Up starts it.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != dashboard.Command {
		os.Exit(m.Run())
	}
	home := os.Getenv("AGENT_HOME")
	if os.Getenv("AGENT_TEST_FAIL") != "" {
		fmt.Fprintln(os.Stderr, "no such thing today")
		os.Exit(1)
	}
	known := insight.Facts{Price: func(string, string, model.Usage) (float64, bool) { return 0, false }, Window: func(string, string) int { return 0 }}
	if err := dashboard.Serve(context.Background(), home, os.Stdout, page.NewServer(home, known)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return res.StatusCode
}

// TestDashboard starts the process twice, which is one, and ends it.
func TestDashboard(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if url, err := dashboard.URL(home); url != "" || err != nil {
		t.Fatalf("before: %q, %v", url, err)
	}
	if was, err := dashboard.Down(t.Context(), home); was || err != nil {
		t.Fatalf("down before up: %t, %v", was, err)
	}
	url, err := dashboard.Up(t.Context(), os.Args[0], home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = dashboard.Down(context.Background(), home) })
	again, err := dashboard.Up(t.Context(), os.Args[0], home)
	if now, _ := dashboard.URL(home); err != nil || again != url || now != url {
		t.Errorf("a second process: %s and %s, %v; known %s", url, again, err, now)
	}
	if n := status(t, url); n != http.StatusOK {
		t.Errorf("%s: %d", url, n)
	}
	info, err := os.Stat(filepath.Join(home, "sessions", ".dashboard.json"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the token: %v, %v", info, err)
	}
	if was, err := dashboard.Down(t.Context(), home); !was || err != nil {
		t.Errorf("down: %t, %v", was, err)
	}
	if n := status(t, url); n != 0 {
		t.Errorf("after down: %d", n)
	}
	if url, err := dashboard.URL(home); url != "" || err != nil {
		t.Errorf("after: %q, %v", url, err)
	}
}

// TestKilled checks that what a killed process left does not count.
func TestKilled(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "sessions", ".dashboard.json"), []byte(`{"url":"http://127.0.0.1:1/x/","pid":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if url, err := dashboard.URL(home); url != "" || err != nil {
		t.Errorf("%q, %v", url, err)
	}
}

// TestFailure checks that the reason of a failed start is reported.
func TestFailure(t *testing.T) {
	t.Setenv("AGENT_TEST_FAIL", "1")
	if url, err := dashboard.Up(t.Context(), os.Args[0], t.TempDir()); err == nil || !strings.Contains(err.Error(), "no such thing today") {
		t.Errorf("%q, %v", url, err)
	}
}
