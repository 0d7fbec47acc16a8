package skills

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/event"
)

// Bounds of a script.
const (
	defaultScriptTimeout = time.Minute
	maxScriptOutput      = 1 << 20 // bytes, stdout and stderr together
	maxScriptArgs        = 100
	maxScriptArgBytes    = 4096 // of all arguments
)

// interpreters are the commands for file name extensions, for files without #!.
var interpreters = map[string][]string{
	".sh": {"sh"}, ".bash": {"bash"}, ".py": {"python3"}, ".js": {"node"}, ".mjs": {"node"}, ".cjs": {"node"},
	".rb": {"ruby"}, ".pl": {"perl"}, ".ps1": {"pwsh", "-NoProfile", "-File"},
}

// scriptCall is a script with its arguments, ready to start.
type scriptCall struct {
	skill *Skill
	name  string // of the script
	argv  []string
}

// contained checks that a path is, after resolving links, a regular file in the
// skill's folder.
func (s *Skill) contained(name string) error {
	info, err := fs.Stat(s.Files, name)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("the skill %s has no file %s", s.Name, name)
	}
	if s.Dir == "" {
		return nil
	}
	top, err := filepath.EvalSymlinks(s.Dir)
	if err != nil {
		return fmt.Errorf("the folder of skill %s: %w", s.Name, err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(s.Dir, filepath.FromSlash(name)))
	if err != nil || !within(top, real) {
		return fmt.Errorf("%s of skill %s leads out of the skill's folder", name, s.Name)
	}
	return nil
}

// native returns the path and the SHA-256 of an executable file in one of the
// skill's folders. An installed skill's file must match what the user approved.
func (s *Skill) native(folder, name string) (file, sum string, err error) {
	if s.Dir == "" {
		return "", "", fmt.Errorf("the bundled skill %s has no executable files", s.Name)
	}
	rel := path.Clean(strings.ReplaceAll(name, "\\", "/"))
	if below, ok := strings.CutPrefix(rel, folder+"/"); ok {
		rel = below
	}
	rel = path.Join(folder, rel)
	if name == "" || !fs.ValidPath(rel) || !strings.HasPrefix(rel, folder+"/") {
		return "", "", fmt.Errorf("%q is not a file in %s/", name, folder)
	}
	if err := s.contained(rel); err != nil {
		return "", "", err
	}
	f, err := s.Files.Open(rel)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", "", fmt.Errorf("%s: %w", rel, err)
	}
	sum = hex.EncodeToString(hash.Sum(nil))
	if s.Installed && s.lock.Files[rel] != sum {
		return "", "", s.changed(rel)
	}
	return filepath.Join(s.Dir, filepath.FromSlash(rel)), sum, nil
}

// changed is the error of a file that is not as the user approved it.
func (s *Skill) changed(rel string) error {
	return fmt.Errorf("%s of skill %s changed since it was installed: see agent skills verify %s", rel, s.Name, s.Name)
}

// prepare checks a script call and determines the command.
func (t *Tools) prepare(call *core.Call, in toolArgs) (*scriptCall, *refusal) {
	s, failure := t.find(in.Name)
	if failure != nil {
		return nil, failure
	}
	size := 0
	for _, a := range in.Args {
		size += len(a)
		if strings.ContainsRune(a, 0) {
			return nil, refuse(core.CodeValidation, "Arguments must not contain a NUL character.")
		}
	}
	if len(in.Args) > maxScriptArgs || size > maxScriptArgBytes {
		return nil, refuse(core.CodeValidation, "A script takes at most %d arguments of %d bytes in total: pass more in a file.", maxScriptArgs, maxScriptArgBytes)
	}
	file, _, err := s.native("scripts", in.Path)
	if err != nil {
		return nil, refuse(core.CodeValidation, "%v. Its scripts: %s.", err, strings.Join(s.scriptNames(), ", "))
	}
	argv, err := commandLine(file, call.Env.Info().OS)
	if err != nil {
		return nil, refuse(core.CodeConfig, "Cannot run %s: %v.", in.Path, err)
	}
	return &scriptCall{s, filepath.Base(file), append(argv, in.Args...)}, nil
}

func (s *Skill) scriptNames() []string {
	all := s.resources()
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, "scripts/") })
}

// commandLine returns the command for a file: the file itself if it is
// executable and the system supports #!, else the interpreter of its first line
// or extension. No shell is involved.
func commandLine(file, system string) ([]string, error) {
	if system != runtime.GOOS {
		return nil, fmt.Errorf("it is on this machine (%s), but commands run on another one (%s)", runtime.GOOS, system)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // the file may be shorter
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	shebang := strings.Fields(strings.TrimPrefix(string(line), "#!"))
	hasShebang := bytes.HasPrefix(line, []byte("#!")) && len(shebang) > 0
	if info, err := f.Stat(); err == nil && system != "windows" && info.Mode()&0o111 != 0 && (hasShebang || !isText(head[:n])) {
		return []string{file}, nil
	}
	if hasShebang {
		program := shebang
		if path.Base(program[0]) == "env" && len(program) > 1 {
			program = slices.DeleteFunc(program[1:], func(s string) bool { return s == "-S" })
		}
		if system == "windows" {
			program[0] = path.Base(program[0])
		}
		return append(slices.Clone(program), file), nil
	}
	ending := strings.ToLower(filepath.Ext(file))
	if program, ok := interpreters[ending]; ok {
		return append(slices.Clone(program), file), nil
	}
	if system == "windows" && (ending == ".exe" || ending == ".com") {
		return []string{file}, nil
	}
	return nil, errors.New("no interpreter: it has neither a #! line nor a known extension")
}

func isText(head []byte) bool { return !bytes.ContainsRune(head, 0) }

// script runs a script in the skill's folder, with a minimal environment and
// limited time and output. Its child processes end with it.
func (t *Tools) script(ctx context.Context, call *core.Call, in toolArgs) (core.Result, error) {
	c, failure := t.prepare(call, in)
	if failure != nil {
		return core.Fail(failure.code, failure.text), nil
	}
	running, stop := context.WithTimeoutCause(ctx, t.opts.ScriptTimeout, errScriptTime)
	defer stop()
	running, cancel := context.WithCancelCause(running)
	defer cancel(nil)
	var stdout bytes.Buffer
	limit := &outputLimit{left: maxScriptOutput, exceeded: func() { cancel(errScriptOutput) }}
	p, err := call.Env.Start(running, core.Command{
		Argv: c.argv, Dir: c.skill.Dir, Minimal: true,
		Env:    []string{"AGENT_WORKSPACE=" + call.Session.Dir, "AGENT_SKILL_DIR=" + c.skill.Dir},
		Stdout: &limitedWriter{limit, io.MultiWriter(&stdout, call.Output)}, Stderr: &limitedWriter{limit, call.Output},
	})
	if err != nil {
		if denied := (*core.DeniedError)(nil); errors.As(err, &denied) {
			return core.Result{}, err
		}
		return core.Failf(core.CodeIO, "Cannot start %s: %v.", in.Path, err), nil
	}
	exit, err := p.Wait()
	result := scriptResult(running, ctx, c, exit, err, stdout.Bytes(), t.opts.ScriptTimeout)
	result.Meta = event.SandboxMeta(exit.Sandbox)
	return result, nil
}

var (
	errScriptTime   = errors.New("script timed out")
	errScriptOutput = errors.New("script output limit exceeded")
)

// scriptResult reports how a script ended. If its stdout is valid JSON, that is
// the structured result.
func scriptResult(running, ctx context.Context, c *scriptCall, exit core.Exit, err error, stdout []byte, timeout time.Duration) core.Result {
	switch cause := context.Cause(running); {
	case ctx.Err() != nil:
		return core.Fail(core.CodeCancelled, "[The script was cancelled.]")
	case errors.Is(cause, errScriptTime):
		return core.Failf(core.CodeTimeout, "[The script timed out after %s and was killed with its child processes.]", timeout)
	case errors.Is(cause, errScriptOutput):
		return core.Failf(core.CodeIO, "[The script was killed: it printed more than %d KiB.]", maxScriptOutput>>10)
	case err != nil:
		return core.Failf(core.CodeIO, "[The script failed: %v.]", err)
	}
	line := fmt.Sprintf("\n[%s of skill %s: exit code %d", c.name, c.skill.Name, exit.Code)
	if exit.Signal != "" {
		line += ", " + exit.Signal
	}
	if exit.Left > 0 {
		line += fmt.Sprintf(", killed %d remaining processes", exit.Left)
	}
	result := core.TextResult(line + "]")
	if exit.Code != 0 {
		result.Code = core.CodeIO
	}
	if trimmed := bytes.TrimSpace(stdout); len(trimmed) > 0 && json.Valid(trimmed) {
		result.Structured = slices.Clone(trimmed)
	}
	return result
}

// outputLimit is shared by the streams of a script.
type outputLimit struct {
	mu       sync.Mutex
	left     int
	exceeded func()
}

// limitedWriter discards what exceeds the limit.
type limitedWriter struct {
	limit *outputLimit
	to    io.Writer
}

// Write implements [io.Writer].
func (w *limitedWriter) Write(p []byte) (int, error) {
	w.limit.mu.Lock()
	defer w.limit.mu.Unlock()
	part := p[:min(len(p), w.limit.left)]
	if w.limit.left -= len(part); len(part) < len(p) {
		w.limit.exceeded()
	}
	if _, err := w.to.Write(part); err != nil {
		return 0, err
	}
	return len(p), nil
}
