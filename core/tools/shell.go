package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/internal/charset"
)

// The default timeouts of a session.
const (
	commandTimeout    = 10 * time.Second
	maxCommandTimeout = 600 * time.Second

	maxTerminal = 1000 // rows and columns
)

//go:embed shell.md
var shellDoc string

type shellArgs struct {
	Command     string `json:"command"`
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`
	Description string `json:"description,omitempty"`
	Background  bool   `json:"background,omitempty" jsonschema:"no timeout: servers, REPLs (with terminal)"`
	Terminal    bool   `json:"terminal,omitempty"`
	Rows        int    `json:"rows,omitempty"`
	Cols        int    `json:"cols,omitempty"`
	// Hosts are opened in the sandbox.
	Hosts       []string `json:"hosts,omitempty" jsonschema:"to reach, as localhost:5432; asks the user"`
	Unsandboxed bool     `json:"unsandboxed,omitempty" jsonschema:"asks the user"`
}

// Shell returns the tool shell, which runs a command line in the environment's
// shell and streams its output. Background commands need the toolset, which
// owns them; see [Builtin].
func Shell() core.Tool { return shellWith(nil) }

func shellWith(background *jobs) core.Tool {
	return core.NewTool(core.ToolDefinition{
		Name:        "shell",
		Description: strings.TrimSpace(shellDoc),
		Scopes:      []core.Scope{core.ScopeShell},
		Output:      core.OutputLimit{MaxChars: 30_000, MaxLines: 256, Mode: core.HeadTail},
	}, func(_ context.Context, call *core.Call, in shellArgs) ([]core.Access, error) {
		access := core.Access{Scope: core.ScopeShell, Resource: in.Command, Unconfined: in.Unsandboxed}
		if dialect := call.Env.Info().Shell; dialect == "bash" || dialect == "sh" {
			access.Argv, _ = plainArgv(in.Command)
		}
		accesses := []core.Access{access}
		for _, host := range in.Hosts {
			accesses = append(accesses, core.Access{Scope: core.ScopeNetwork, Resource: host})
		}
		return accesses, nil
	}, func(ctx context.Context, call *core.Call, in shellArgs) (core.Result, error) {
		if refusal := checkShell(call, in, background); refusal != nil {
			return *refusal, nil
		}
		if in.Background {
			return background.start(ctx, call, in)
		}
		return runShell(ctx, call, in)
	})
}

// checkShell returns a failure if a command cannot be run.
func checkShell(call *core.Call, in shellArgs, background *jobs) *core.Result {
	refuse := func(r core.Result, _ error) *core.Result { return &r }
	switch {
	case strings.TrimSpace(in.Command) == "":
		return refuse(invalid("command is empty. Give a command line."))
	case strings.ContainsRune(in.Command, 0):
		return refuse(invalid("command contains a NUL character, which no shell accepts."))
	case in.Rows < 0 || in.Rows > maxTerminal || in.Cols < 0 || in.Cols > maxTerminal:
		return refuse(invalid("rows and cols can be from 1 to %d.", maxTerminal))
	case in.TimeoutMS < 0:
		return refuse(invalid("timeout_ms cannot be negative. Leave it out for the default."))
	case call.Env.Info().Shell == "":
		return refuse(core.Fail(core.CodeConfig, "This environment has no shell. Use the file tools."), nil)
	case in.Background && background == nil:
		return refuse(core.Fail(core.CodeConfig, "Background commands are not available here. Leave background out."), nil)
	}
	return nil
}

func runShell(ctx context.Context, call *core.Call, in shellArgs) (core.Result, error) {
	timeout, note := shellTimeout(in.TimeoutMS, call.Session)
	runCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := &lastByteWriter{w: call.Output, last: '\n'}
	decoded := charset.NewWriter(out)
	process, err := call.Env.Start(runCtx, core.Command{Script: in.Command, Env: commandEnv(in.Terminal), Terminal: in.Terminal, Rows: in.Rows, Cols: in.Cols, Stdout: decoded, Stderr: decoded, Interrupt: call.Interrupt})
	if err != nil {
		return startFailure(in.Command, err), nil
	}
	exit, err := process.Wait()
	_ = decoded.Close() // the session handles output errors
	note += encodingNote(decoded.Encoding())
	if out.last != '\n' {
		_, _ = io.WriteString(out, "\n") // the session handles output errors
	}
	result := core.Result{}
	switch {
	case err == nil && interrupted(call):
		result = core.Fail(core.CodeCancelled, "[The user interrupted the command. Its output is shown above.]\n"+exitLine(exit, true)+note)
	case err == nil:
		result = core.TextResult(exitLine(exit, out.written) + note)
		result.Structured, err = json.Marshal(shellExit{exit.Code, exit.Signal, exit.Duration.Milliseconds(), exit.Left})
	case errors.Is(ctx.Err(), context.Canceled):
		result, err = core.Fail(core.CodeCancelled, "[The command was cancelled. Partial output is shown above.]"), nil
	case runCtx.Err() != nil:
		result, err = core.Failf(core.CodeTimeout, "[ERROR: Command timed out after %dms. Partial output is shown above. "+
			"You can retry with a longer timeout by setting the timeout_ms parameter.]%s", timeout.Milliseconds(), note), nil
	default:
		result, err = core.Failf(core.CodeIO, "[Running the command failed: %v.]", err), nil
	}
	result.Meta = event.SandboxMeta(exit.Sandbox)
	return result, err
}

// interrupted reports whether the user interrupted a call.
func interrupted(call *core.Call) bool {
	select {
	case <-call.Interrupt:
		return true
	default:
		return false
	}
}

// encodingNote tells the model that output was not UTF-8.
func encodingNote(e charset.Encoding) string {
	if e.UTF8() {
		return ""
	}
	return fmt.Sprintf("\n[decoded from %s]", e)
}

// noEditor is an editor that fails at once, instead of waiting for a user. It does so
// however it is started, since there is no such program; its name is the hint.
const noEditor = "no-editor-is-available--give-the-text-as-an-argument--for-example--git-commit--m-TEXT--or-set-GIT_SEQUENCE_EDITOR-to-true"

// commandEnv returns the variables that keep programs from waiting for a user,
// and from writing for a terminal that is not there.
func commandEnv(terminal bool) []string {
	vars := []string{"PAGER=cat", "GIT_PAGER=cat", "EDITOR=" + noEditor, "VISUAL=" + noEditor, "GIT_EDITOR=" + noEditor}
	if !terminal {
		vars = append(vars, "TERM=dumb")
	}
	return vars
}

// shellExit is the structured result of a command.
type shellExit struct {
	ExitCode   int    `json:"exitCode"`
	Signal     string `json:"signal,omitempty"`
	DurationMS int64  `json:"durationMs"`
	Left       int    `json:"left,omitempty"`
}

// shellTimeout returns a command's timeout, and a note if it is less than
// requested.
func shellTimeout(askedMS int64, session core.SessionInfo) (time.Duration, string) {
	timeout, most := session.CommandTimeout, session.MaxCommandTimeout
	if most <= 0 {
		most = maxCommandTimeout
	}
	if timeout <= 0 {
		timeout = commandTimeout
	}
	if askedMS == 0 {
		return min(timeout, most), ""
	}
	if askedMS > most.Milliseconds() {
		return most, fmt.Sprintf("\n[timeout_ms %d was reduced to %d, the maximum]", askedMS, most.Milliseconds())
	}
	return time.Duration(askedMS) * time.Millisecond, ""
}

func startFailure(command string, err error) core.Result {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, fs.ErrPermission):
		return failure("run", command, err)
	case errors.Is(err, errors.ErrUnsupported):
		return core.Failf(core.CodeConfig, "The command could not be started: %v. Leave terminal out.", err)
	}
	return core.Failf(core.CodeIO, "The command could not be started: %v.", err)
}

// exitLine is the text after a command's output. A command that fails is not a
// failure of the tool: its output tells what is wrong.
func exitLine(exit core.Exit, written bool) string {
	var b strings.Builder
	if !written {
		b.WriteString("(no output)\n")
	}
	if exit.Signal != "" {
		fmt.Fprintf(&b, "[ended by signal %s", exit.Signal)
	} else {
		fmt.Fprintf(&b, "[exit code %d", exit.Code)
	}
	fmt.Fprintf(&b, ", %.2f s]", exit.Duration.Seconds())
	switch {
	case exit.Left == 1:
		b.WriteString("\n[ended 1 background process that it left running]")
	case exit.Left > 1:
		fmt.Fprintf(&b, "\n[ended %d background processes that it left running]", exit.Left)
	}
	return b.String()
}

// lastByteWriter remembers the last byte written.
type lastByteWriter struct {
	w       io.Writer
	last    byte
	written bool
}

func (l *lastByteWriter) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.last, l.written = p[len(p)-1], true
	}
	return l.w.Write(p)
}
