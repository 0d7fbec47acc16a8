package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

// withShell returns an environment whose shell is a function.
func withShell(exec func(ctx context.Context, cmd core.Command) (core.Exit, error)) *env.Memory {
	where := env.NewMemory("", nil)
	where.Exec = exec
	return where
}

func printing(stdout, stderr string, exit core.Exit) *env.Memory {
	return withShell(func(_ context.Context, cmd core.Command) (core.Exit, error) {
		_, err := io.WriteString(cmd.Stdout, stdout)
		if _, err2 := io.WriteString(cmd.Stderr, stderr); err == nil {
			err = err2
		}
		return exit, err
	})
}

func TestShell(t *testing.T) {
	tests := []struct {
		name           string
		stdout, stderr string
		exit           core.Exit
		want           string
	}{
		{"success", "out\n", "", core.Exit{Duration: 420 * time.Millisecond}, "out\n[exit code 0, 0.42 s]"},
		{"no line feed at the end", "out", "", core.Exit{}, "out\n[exit code 0, 0.00 s]"},
		{"no output", "", "", core.Exit{}, "(no output)\n[exit code 0, 0.00 s]"},
		{"a failing command is a result", "a\n", "b\n", core.Exit{Code: 2}, "a\nb\n[exit code 2, 0.00 s]"},
		{"signal", "", "", core.Exit{Code: -1, Signal: "SIGSEGV"}, "(no output)\n[ended by signal SIGSEGV, 0.00 s]"},
		{"one left", "a\n", "", core.Exit{Left: 1}, "a\n[exit code 0, 0.00 s]\n[ended 1 background process that it left running]"},
		{"two left", "a\n", "", core.Exit{Left: 2}, "a\n[exit code 0, 0.00 s]\n[ended 2 background processes that it left running]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, tools.Shell(), printing(tt.stdout, tt.stderr, tt.exit), args{"command": "x"}, "", tt.want)
		})
	}
	result, _ := run(t, tools.Shell(), printing("", "", core.Exit{Code: 3, Duration: time.Second}), args{"command": "x"})
	var got map[string]any
	if err := json.Unmarshal(result.Structured, &got); err != nil || got["exitCode"] != 3.0 || got["durationMs"] != 1000.0 {
		t.Errorf("structured: %s (%v)", result.Structured, err)
	}
}

func TestShellCommand(t *testing.T) {
	var got core.Command
	where := withShell(func(_ context.Context, cmd core.Command) (core.Exit, error) {
		got = cmd
		return core.Exit{}, nil
	})
	run(t, tools.Shell(), where, args{"command": "a | b > 'c'", "description": "does it"})
	if got.Script != "a | b > 'c'" || got.Argv != nil || got.Stdout != got.Stderr {
		t.Errorf("command %+v", got)
	}
}

func TestShellTimeout(t *testing.T) {
	hanging := func(ctx context.Context, cmd core.Command) (core.Exit, error) {
		if _, err := io.WriteString(cmd.Stdout, "begun"); err != nil {
			return core.Exit{}, err
		}
		<-ctx.Done()
		return core.Exit{Code: -1, Signal: "SIGTERM"}, ctx.Err()
	}
	tests := []struct {
		name string
		in   args
		took time.Duration
		want string
	}{
		{
			"default",
			args{"command": "x"},
			10 * time.Second,
			"begun\n[ERROR: Command timed out after 10000ms. Partial output is shown above. You can retry with a longer timeout by setting the timeout_ms parameter.]",
		},
		{
			"asked for",
			args{"command": "x", "timeout_ms": 1500},
			1500 * time.Millisecond,
			"begun\n[ERROR: Command timed out after 1500ms. Partial output is shown above. You can retry with a longer timeout by setting the timeout_ms parameter.]",
		},
		{
			"too much asked for",
			args{"command": "x", "timeout_ms": 90_000_000_000_000_000},
			time.Minute,
			"begun\n[ERROR: Command timed out after 60000ms. Partial output is shown above. You can retry with a longer timeout by setting the timeout_ms parameter.]" +
				"\n[timeout_ms 90000000000000000 was reduced to 60000, the maximum]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				check(t, tools.Shell(), withShell(hanging), tt.in, core.CodeTimeout, tt.want)
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			result, got := runContext(ctx, t, tools.Shell(), withShell(hanging), args{"command": "x"}, nil)
			if result.Code != core.CodeCancelled || got != "begun\n[The command was cancelled. Partial output is shown above.]" {
				t.Errorf("%s: %s", result.Code, got)
			}
		})
	})
}

func TestShellRefusals(t *testing.T) {
	where := printing("", "", core.Exit{})
	checkHas(t, tools.Shell(), where, args{"command": " "}, core.CodeValidation, "command is empty")
	checkHas(t, tools.Shell(), where, args{"command": "a\x00b"}, core.CodeValidation, "NUL")
	checkHas(t, tools.Shell(), where, args{"command": "a", "timeout_ms": -1}, core.CodeValidation, "timeout_ms")
	checkHas(t, tools.Shell(), env.NewMemory("", nil), args{"command": "a"}, core.CodeConfig, "no shell")

	checkHas(t, tools.Shell(), noStart{where, fs.ErrPermission}, args{"command": "a"}, core.CodePermission, "permission denied")
	checkHas(t, tools.Shell(), noStart{where, fs.ErrNotExist}, args{"command": "a"}, core.CodeIO, "could not be started")
	lost := withShell(func(context.Context, core.Command) (core.Exit, error) {
		return core.Exit{}, errors.New("connection lost")
	})
	checkHas(t, tools.Shell(), lost, args{"command": "a"}, core.CodeIO, "connection lost")

	call := &core.Call{Args: []byte(`{"command":"a"}`), Env: core.Restrict(where, nil, nil), Output: io.Discard}
	result, err := tools.Shell().Run(t.Context(), call)
	if err != nil || result.Code != core.CodePermission {
		t.Errorf("not granted: code %q, %v", result.Code, err)
	}
}

// noStart is an environment that fails to start commands.
type noStart struct {
	core.Environment
	err error
}

func (e noStart) Start(context.Context, core.Command) (core.Process, error) { return nil, e.err }

// Other shells quote differently, so the arguments are never certain.
func TestShellForeignDialect(t *testing.T) {
	call := &core.Call{Args: []byte(`{"command":"dir"}`), Env: dialect{env.NewMemory("", nil), "cmd"}}
	accesses, err := tools.Shell().Access(t.Context(), call)
	if err != nil || len(accesses) != 1 || accesses[0].Argv != nil || accesses[0].Resource != "dir" {
		t.Errorf("accesses %+v, %v", accesses, err)
	}
}

type dialect struct {
	core.Environment
	shell string
}

func (d dialect) Info() core.EnvInfo {
	info := d.Environment.Info()
	info.Shell = d.shell
	return info
}

func TestShellLargeOutput(t *testing.T) {
	text := strings.Repeat("x", 10<<20)
	_, got := run(t, tools.Shell(), printing(text, "", core.Exit{}), args{"command": "x"})
	if len(got) != len(text)+len("\n[exit code 0, 0.00 s]") {
		t.Errorf("%d bytes", len(got))
	}
}
