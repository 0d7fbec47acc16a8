package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/output"
)

// maxLog is the maximum size of a plugin's log in bytes; one older log of that
// size is kept.
const maxLog = 1 << 20

// logFile is a plugin's log: its output and log messages, line by line with a
// timestamp, secrets redacted. It is opened with the first line, and keeps the
// last line and the cause of a crash for error messages. It is safe for concurrent use.
type logFile struct {
	path    string // "" = no file
	now     func() time.Time
	secrets []string
	also    io.Writer // gets the lines, too; may be nil

	mu      sync.Mutex
	file    *os.File
	size    int64
	partial []byte
	last    string // line
	cause   string // the last line that says why a process crashed
	since   int    // lines since then
}

// maxLine bounds a log line, in bytes.
const maxLine = 4 << 10

// traceLines is the maximum length of the stack traces that follow a cause.
const traceLines = 2000

// Write implements [io.Writer]. It never fails.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			l.partial = append(l.partial, rest[:min(len(rest), max(0, maxLine-len(l.partial)))]...)
			if len(rest) < maxLine && len(l.partial) < maxLine {
				break
			}
			i = len(rest) - 1 // the line is too long: break it
		} else {
			l.partial = append(l.partial, rest[:min(i, max(0, maxLine-len(l.partial)))]...)
		}
		l.line(string(l.partial))
		l.partial, rest = l.partial[:0], rest[i+1:]
	}
	return len(p), nil
}

// printf writes a line.
func (l *logFile) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(l, format+"\n", args...)
}

func (l *logFile) line(text string) {
	text = strings.TrimRight(cleanLine(string(output.Redact([]byte(text), l.secrets))), " ")
	if text == "" {
		return
	}
	l.last, l.since = text, l.since+1
	if cause().MatchString(text) {
		l.cause, l.since = text, 0
	}
	if l.also != nil {
		fmt.Fprintln(l.also, text)
	}
	if l.path == "" {
		return
	}
	entry := l.now().Format("2006-01-02 15:04:05.000 ") + text + "\n"
	if err := l.open(int64(len(entry))); err != nil {
		return // a failing log must not stop the plugin
	}
	n, _ := l.file.WriteString(entry)
	l.size += int64(n)
}

// open opens or rotates the file so that it has room.
func (l *logFile) open(need int64) error {
	if l.file != nil && l.size+need > maxLog {
		_ = l.file.Close()
		l.file = nil
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return err
		}
	}
	if l.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	l.file = f
	return nil
}

// cause matches the line by which a language's runtime reports a crash; a stack
// trace follows it.
var cause = lazy.Regexp(`^(panic|fatal error|runtime/cgo|[A-Za-z.]*(Error|Exception)): `)

// lastOutput returns the last relevant line, as a suffix for an error message.
func (l *logFile) lastOutput() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.line(string(l.partial))
		l.partial = l.partial[:0]
	}
	text := l.last
	if text == "" {
		return ""
	}
	if l.cause != "" && l.since <= traceLines {
		text = l.cause
	}
	return "; last output: " + shorten(text, 300)
}

// forget drops the last lines, before another process starts.
func (l *logFile) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.cause, l.partial = "", "", nil
}

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// ReadLog copies at most the last n bytes of a plugin's log, starting at a whole
// line, to w. A missing log is empty.
func ReadLog(w io.Writer, dir, name string, n int64) error {
	f, err := os.Open(logPath(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data := make([]byte, min(n, info.Size()))
	if _, err := f.ReadAt(data, info.Size()-int64(len(data))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if int64(len(data)) < info.Size() {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	_, err = w.Write(data)
	return err
}

func logPath(dir, name string) string { return filepath.Join(dir, name+".log") }
