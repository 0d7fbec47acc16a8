package env_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
)

// echoShell is a fake shell that copies its input to its output.
func echoShell(ctx context.Context, cmd core.Command) (core.Exit, error) {
	if strings.HasPrefix(cmd.Script, "sleep") {
		<-ctx.Done()
		return core.Exit{Code: -1, Signal: "SIGTERM"}, ctx.Err()
	}
	_, err := io.Copy(cmd.Stdout, cmd.Stdin)
	return core.Exit{Code: 3}, err
}

func TestMemoryExec(t *testing.T) {
	memory := env.NewMemory("", map[string]string{"a.txt": "x", "empty/": "", "/abs/b.txt": "y"})
	memory.Exec = echoShell
	if shell := memory.Info().Shell; shell != "sh" {
		t.Errorf("the shell is %q", shell)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, exit, err := core.Exec(ctx, memory, core.Command{Script: "cat", Stdin: strings.NewReader("in")})
	if err != nil || exit.Code != 3 || string(out) != "in" {
		t.Errorf("%q, %+v, %v", out, exit, err)
	}
	p, err := memory.Start(ctx, core.Command{Script: "sleep"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if exit, err := p.Wait(); !errors.Is(err, context.Canceled) || exit.Code != -1 {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestMemoryStart(t *testing.T) {
	memory := env.NewMemory("/ws", map[string]string{"a.txt": "x", "empty/": "", "/abs/b.txt": "y"})
	ctx := context.Background()
	for name, want := range map[string]string{"a.txt": "x", "/ws/a.txt": "x", "../abs/b.txt": "y"} {
		if data, err := core.ReadFile(ctx, memory.Files(), name, 10); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	if entries, err := memory.Files().ReadDir(ctx, "empty"); err != nil || len(entries) != 0 {
		t.Errorf("the empty directory holds %v, %v", entries, err)
	}
	first, err := memory.Files().Stat(ctx, "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := memory.Files().Write(ctx, "a.txt", strings.NewReader("z"), 0); err != nil {
		t.Fatal(err)
	}
	second, err := memory.Files().Stat(ctx, "a.txt")
	if err != nil || !second.ModTime().After(first.ModTime()) {
		t.Errorf("a change does not show in the modification time: %v, then %v, %v", first.ModTime(), second.ModTime(), err)
	}
}

func TestReadOnly(t *testing.T) {
	memory := env.NewMemory("", map[string]string{"a.txt": "x"})
	memory.Exec = echoShell
	wrapped := env.ReadOnly(memory)
	ctx := context.Background()
	if data, err := core.ReadFile(ctx, wrapped.Files(), "a.txt", 10); err != nil || string(data) != "x" {
		t.Errorf("reading: %q, %v", data, err)
	}
	if shell := wrapped.Info().Shell; shell != "" {
		t.Errorf("Info names the shell %q", shell)
	}
	_, startErr := wrapped.Start(ctx, core.Command{Script: "true"})
	for op, err := range map[string]error{
		"Start":  startErr,
		"Write":  wrapped.Files().Write(ctx, "a.txt", strings.NewReader("y"), 0),
		"Rename": wrapped.Files().Rename(ctx, "a.txt", "b.txt"),
		"Remove": wrapped.Files().Remove(ctx, "a.txt"),
	} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%s: %v", op, err)
		}
	}
	if data, err := core.ReadFile(ctx, memory.Files(), "a.txt", 10); err != nil || string(data) != "x" {
		t.Errorf("the file now holds %q, %v", data, err)
	}
}

func TestLogging(t *testing.T) {
	const secret = "the-content-nobody-logs"
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			if a.Key == "duration" {
				return slog.String("duration", "D")
			}
			return a
		},
	}))
	memory := env.NewMemory("/ws", nil)
	memory.Exec = echoShell
	wrapped := env.Logging(memory, logger)
	ctx := context.Background()
	files := wrapped.Files()
	if err := files.Write(ctx, "a.txt", strings.NewReader(secret), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := core.ReadFile(ctx, files, "a.txt", 100); err != nil {
		t.Fatal(err)
	}
	_, _ = files.Stat(ctx, "missing")
	_, _ = files.ReadDir(ctx, ".")
	if err := files.Rename(ctx, "a.txt", "b.txt"); err != nil {
		t.Fatal(err)
	}
	if err := files.Remove(ctx, "b.txt"); err != nil {
		t.Fatal(err)
	}
	cmd := core.Command{Script: "cat", Dir: "sub", Env: []string{"X=" + secret}, Stdin: strings.NewReader(secret)}
	if _, _, err := core.Exec(ctx, wrapped, cmd); err != nil {
		t.Fatal(err)
	}
	memory.Exec = nil
	_, _ = wrapped.Start(ctx, core.Command{Argv: []string{"ls", "-l"}})
	want := `level=INFO msg=write path=a.txt duration=D
level=DEBUG msg=open path=a.txt duration=D
level=DEBUG msg=stat path=missing duration=D error="stat /ws/missing: file does not exist"
level=DEBUG msg=readdir path=. duration=D
level=INFO msg=rename path=a.txt to=b.txt duration=D
level=INFO msg=remove path=b.txt duration=D
level=DEBUG msg="command started" command=cat dir=sub
level=INFO msg=command command=cat dir=sub code=3 duration=D
level=WARN msg="command did not start" command="ls -l" duration=D error="this environment has no shell: it keeps files in memory and runs no commands"
`
	if log.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", &log, want)
	}
}
