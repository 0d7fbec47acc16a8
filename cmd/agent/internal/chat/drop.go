package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// dropped converts pasted text that consists of paths of files, as terminals insert
// for files that are dragged into them, to mentions. It reports whether it does.
func (c *chat) dropped(text string) (mentions string, ok bool) {
	const most = 8 << 10
	if len(text) > most || !c.set.Environment.Local() {
		return "", false
	}
	paths := pastedPaths(text, c.set.UserHome, func(path string) bool { _, err := os.Stat(path); return err == nil })
	for _, path := range paths {
		if !attachable(path) {
			return "", false
		}
		mentions += mentionOf(path, c.set.Dir) + " "
	}
	return mentions, len(paths) > 0
}

// pastedPaths returns the absolute paths in a text, which may be quoted, escaped as
// in a shell, or file URIs; none if it has anything else.
func pastedPaths(text, home string, exists func(path string) bool) (paths []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		words := []string{line}
		if path, ok := pathOf(line, home); !ok || !exists(path) {
			words = shellWords(line)
		}
		for _, word := range words {
			path, ok := pathOf(word, home)
			if !ok || !typeable(path) || !exists(path) {
				return nil
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// pathOf returns the path of a file URI, or of an absolute path.
func pathOf(word, home string) (path string, ok bool) {
	if u, err := url.Parse(word); err == nil && u.Scheme == "file" {
		path = u.Path
		if runtime.GOOS == "windows" {
			path = strings.TrimPrefix(path, "/")
		}
		return filepath.FromSlash(path), path != ""
	}
	if rest, ok := strings.CutPrefix(word, "~/"); ok && home != "" {
		word = filepath.Join(home, rest)
	}
	return filepath.Clean(word), filepath.IsAbs(word)
}

// shellWords splits a text at spaces that are neither quoted nor escaped.
func shellWords(text string) (words []string) {
	var word strings.Builder
	quote, begun, escaped := rune(0), false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// attachable reports whether a path names a directory, a text or an image.
func attachable(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return false
	case info.IsDir():
		return true
	case !info.Mode().IsRegular() || info.Size() > maxImage:
		return false
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false
	}
	head = head[:n]
	isText := utf8.Valid(head[:max(0, n-utf8.UTFMax)]) && !bytes.ContainsRune(head, 0)
	return isText || strings.HasPrefix(http.DetectContentType(head), "image/")
}

// mentionOf returns the @mention of a path, relative to dir if it is in there.
func mentionOf(path, dir string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	if strings.ContainsAny(path, " \t@") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// imageTime is the time limit for a program to print the clipboard's image.
const imageTime = 5 * time.Second

// pasteImage saves the image in the clipboard of this machine and returns its mention.
func (c *chat) pasteImage(ctx context.Context) (string, error) {
	if !c.set.Environment.Local() {
		return "", errors.New("images can be pasted only if tools run on this machine")
	}
	argv, err := imageProgram(runtime.GOOS, c.Env, exec.LookPath)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, imageTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // one of a few programs, without a shell
	cmd.WaitDelay = time.Second
	data, err := cmd.Output()
	kind := http.DetectContentType(data)
	switch {
	case err != nil || !strings.HasPrefix(kind, "image/"):
		return "", errors.New("the clipboard has no image")
	case len(data) > maxImage:
		return "", fmt.Errorf("the image in the clipboard is too large to attach (%d bytes, at most %d)", len(data), maxImage)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pasted == nil {
		if c.pasted, err = sandbox.NewTempDir(); err != nil {
			return "", err
		}
	}
	c.images++
	path := filepath.Join(c.pasted.Path, fmt.Sprintf("pasted-%d.%s", c.images, strings.TrimPrefix(kind, "image/")))
	return mentionOf(path, c.set.Dir) + " ", os.WriteFile(path, data, 0o600)
}

// removePasted removes the images that were pasted: the session has those that were
// sent.
func (c *chat) removePasted() {
	if c.pasted != nil {
		_ = c.pasted.Remove() // or else the next agent does
	}
}

// imageProgram returns the command that prints the clipboard's image.
func imageProgram(goos string, env func(string) string, find func(string) (string, error)) ([]string, error) {
	argv := []string{"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}
	switch {
	case goos == "darwin":
		argv = []string{"pngpaste", "-"}
	case goos == "windows":
		return nil, errors.New("images in the clipboard cannot be read on Windows: save it, and drag the file here")
	case env("WAYLAND_DISPLAY") != "":
		argv = []string{"wl-paste", "-t", "image/png"}
	case env("DISPLAY") == "":
		return nil, errors.New("there is no desktop here whose clipboard could be read, as over ssh: copy the image to this machine, and enter @FILE")
	}
	if _, err := find(argv[0]); err != nil {
		return nil, fmt.Errorf("pasting images needs %s, which is not installed; @FILE attaches an image from a file", argv[0])
	}
	return argv, nil
}
