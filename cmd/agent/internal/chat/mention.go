package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// Bounds of an attached @file, in bytes.
const (
	maxMention = 256 << 10
	maxImage   = 5 << 20
)

// mention is an @file: at the beginning or after a space, up to the next space.
var mention = regexp.MustCompile(`(?:^|\s)@([^\s@]+)`)

// expand makes an input of a prompt and attaches its @files. A word that names no
// file is left as it is. others resolves what else a word may name; it returns no
// parts for a word it does not know. The notes say what was attached, or why not.
func expand(ctx context.Context, env core.Environment, text string, others func(name string) (parts model.Parts, note string, err error)) (core.Input, []string, error) {
	in := core.TextInput(text)
	var notes []string
	var seen []string
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(m[1], ".,;:!?)")
		if slices.Contains(seen, name) {
			continue
		}
		seen = append(seen, name)
		parts, note, err := others(name)
		if err != nil {
			return core.Input{}, nil, fmt.Errorf("@%s: %w", name, err)
		}
		if parts != nil {
			in.Content, notes = append(in.Content, parts...), append(notes, note)
			continue
		}
		info, err := env.Files().Stat(ctx, name)
		if err != nil || info.IsDir() {
			if strings.ContainsAny(name, "./") {
				notes = append(notes, fmt.Sprintf("@%s: no such file; left as text", name))
			}
			continue
		}
		part, note, err := attach(ctx, env, name, info.Size())
		if err != nil {
			return core.Input{}, nil, fmt.Errorf("@%s: %w", name, err)
		}
		in.Content, notes = append(in.Content, part), append(notes, note)
	}
	return in, notes, nil
}

// attach reads a file that the user named.
func attach(ctx context.Context, env core.Environment, name string, size int64) (model.Part, string, error) {
	if size > maxImage {
		return nil, "", fmt.Errorf("too large to attach (%d bytes): write the path without @ and let the model read what it needs", size)
	}
	data, err := core.ReadFile(ctx, env.Files(), name, maxImage)
	if err != nil {
		return nil, "", err
	}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		return model.Image{MediaType: kind, Data: data, Bytes: len(data)}, fmt.Sprintf("@%s: %s, %d bytes", name, kind, len(data)), nil
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return nil, "", errors.New("not a text file or an image")
	}
	if len(data) > maxMention {
		return nil, "", fmt.Errorf("too large to attach (%d bytes): write the path without @ and let the model read what it needs", size)
	}
	text := fmt.Sprintf("<file path=%q>\n%s\n</file>", name, strings.TrimRight(string(data), "\n"))
	return model.Text{Text: text}, fmt.Sprintf("@%s: %s", name, display.Plural(strings.Count(string(data), "\n")+1, "line")), nil
}

// completePath lists the completions of a path in the workspace, directories with
// a slash. Hidden entries are listed only for a prefix with a dot.
func completePath(ctx context.Context, env core.Environment, prefix string) []string {
	dir, base := path.Split(prefix)
	entries, err := env.Files().ReadDir(ctx, cmp.Or(dir, "."))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") || strings.ContainsAny(name, " \t\n@") {
			continue
		}
		if isDir(ctx, env, dir+name, e) {
			name += "/"
		}
		out = append(out, dir+name)
		if len(out) == 100 {
			break
		}
	}
	return out
}

func isDir(ctx context.Context, env core.Environment, name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := env.Files().Stat(ctx, name)
	return err == nil && info.IsDir()
}
