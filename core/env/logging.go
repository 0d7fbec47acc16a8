package env

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// Logging returns env with a log record for each operation: reads at debug
// level, changes at info level. A record has the path or the command line, the
// duration, and the exit code or the error; it never has content, input, output
// or environment variables. Secrets on a command line are logged unless the
// logger's handler redacts them.
func Logging(env core.Environment, logger *slog.Logger) core.Environment {
	return &logging{Environment: env, log: logger}
}

type logging struct {
	core.Environment
	log *slog.Logger
}

// Files implements [core.Environment].
func (l *logging) Files() core.FS { return &loggingFS{fs: l.Environment.Files(), log: l.log} }

// ExactFiles implements [core.ExactFiler].
func (l *logging) ExactFiles() core.FS { return &loggingFS{fs: exactFiles(l.Environment), log: l.log} }

// Start implements [core.Environment].
func (l *logging) Start(ctx context.Context, cmd core.Command) (core.Process, error) {
	line := cmd.Script
	if line == "" {
		line = strings.Join(cmd.Argv, " ")
	}
	log := l.log.With("command", line)
	if cmd.Dir != "" {
		log = log.With("dir", cmd.Dir)
	}
	start := time.Now()
	p, err := l.Environment.Start(ctx, cmd)
	if err != nil {
		log.WarnContext(ctx, "command did not start", "duration", time.Since(start), "error", err)
		return nil, err
	}
	log.DebugContext(ctx, "command started")
	return &loggingProcess{Process: p, ctx: ctx, log: log}, nil
}

type loggingProcess struct {
	core.Process
	ctx context.Context // of Start, for the record of the exit
	log *slog.Logger
}

// Wait implements [core.Process].
func (p *loggingProcess) Wait() (core.Exit, error) {
	exit, err := p.Process.Wait()
	attrs := []any{"code", exit.Code, "duration", exit.Duration}
	if exit.Signal != "" {
		attrs = append(attrs, "signal", exit.Signal)
	}
	if exit.Left > 0 {
		attrs = append(attrs, "left", exit.Left)
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	p.log.InfoContext(p.ctx, "command", attrs...)
	return exit, err
}

type loggingFS struct {
	fs  core.FS
	log *slog.Logger
}

// record logs one operation.
func (f *loggingFS) record(ctx context.Context, level slog.Level, op string, start time.Time, err error, attrs ...any) {
	if !f.log.Enabled(ctx, level) {
		return
	}
	attrs = append(attrs, "duration", time.Since(start))
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	f.log.Log(ctx, level, op, attrs...)
}

// Open implements [core.FS].
func (f *loggingFS) Open(ctx context.Context, path string) (core.File, error) {
	start := time.Now()
	file, err := f.fs.Open(ctx, path)
	f.record(ctx, slog.LevelDebug, "open", start, err, "path", path)
	return file, err
}

// Stat implements [core.FS].
func (f *loggingFS) Stat(ctx context.Context, path string) (fs.FileInfo, error) {
	start := time.Now()
	info, err := f.fs.Stat(ctx, path)
	f.record(ctx, slog.LevelDebug, "stat", start, err, "path", path)
	return info, err
}

// ReadDir implements [core.FS].
func (f *loggingFS) ReadDir(ctx context.Context, path string) ([]fs.DirEntry, error) {
	start := time.Now()
	entries, err := f.fs.ReadDir(ctx, path)
	f.record(ctx, slog.LevelDebug, "readdir", start, err, "path", path)
	return entries, err
}

// Write implements [core.FS].
func (f *loggingFS) Write(ctx context.Context, path string, content io.Reader, mode fs.FileMode) error {
	start := time.Now()
	err := f.fs.Write(ctx, path, content, mode)
	f.record(ctx, slog.LevelInfo, "write", start, err, "path", path)
	return err
}

// Rename implements [core.FS].
func (f *loggingFS) Rename(ctx context.Context, from, to string) error {
	start := time.Now()
	err := f.fs.Rename(ctx, from, to)
	f.record(ctx, slog.LevelInfo, "rename", start, err, "path", from, "to", to)
	return err
}

// Remove implements [core.FS].
func (f *loggingFS) Remove(ctx context.Context, path string) error {
	start := time.Now()
	err := f.fs.Remove(ctx, path)
	f.record(ctx, slog.LevelInfo, "remove", start, err, "path", path)
	return err
}
