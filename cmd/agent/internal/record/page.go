package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/cmd/agent/internal/browser"
)

// pagePicture returns a picture of the web page of a session, that of agent demo.
func pagePicture(ctx context.Context) (png []byte, err error) {
	dir, err := os.MkdirTemp("", "agent-record-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	html := filepath.Join(dir, "session.html")
	if err := exportDemo(ctx, dir, html); err != nil {
		return nil, err
	}
	b, err := browser.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	tab, err := b.Open(ctx, "file://"+html, browser.Light)
	if err != nil {
		return nil, err
	}
	if err := tab.Eval(ctx, `document.querySelector("#timeline details").open = true; null`, nil); err != nil {
		return nil, err
	}
	return tab.Screenshot(ctx)
}

// exportDemo runs the demo and writes its session as a web page.
func exportDemo(ctx context.Context, dir, html string) error {
	binary := filepath.Join(dir, "agent")
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "AGENT_HOME="+demoHome(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, out)
		}
		return nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/agent")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	if err := run(binary, "demo", "--keep"); err != nil {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(demoHome(dir), "sessions", "*.jsonl"))
	if err != nil || len(logs) == 0 {
		return fmt.Errorf("the demo kept no session in %s", demoHome(dir))
	}
	id := strings.TrimSuffix(filepath.Base(logs[0]), ".jsonl")
	return run(binary, "sessions", "export", id, "--html", html)
}

// demoHome is the agent's home directory in what the demo kept, "" before that.
func demoHome(dir string) string {
	kept, _ := filepath.Glob(filepath.Join(dir, "agent-demo-*", "home")) // the pattern is valid
	if len(kept) == 0 {
		return ""
	}
	return kept[0]
}
