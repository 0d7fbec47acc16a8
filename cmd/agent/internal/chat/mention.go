package chat

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model"
)

// Bounds of what an @file puts into a prompt.
const (
	maxMention = 256 << 10
	maxPicture = 5 << 20
)

// mention is an @file: at the beginning or after a space, up to the next space.
var mention = regexp.MustCompile(`(?:^|\s)@([^\s@]+)`)

// expand makes an input of a prompt: what its @files hold goes along. A word
// that names no file stays a word. Others may know what else a word names, and
// return no parts for what it does not. The notes say what was put in, or why
// not.
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
				notes = append(notes, fmt.Sprintf("@%s is no file here and stays a word", name))
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

// attach reads a file that the person named.
func attach(ctx context.Context, env core.Environment, name string, size int64) (model.Part, string, error) {
	if size > maxPicture {
		return nil, "", fmt.Errorf("it is too large to go along (%d bytes): name it without the @ and let the model read what it needs", size)
	}
	data, err := core.ReadFile(ctx, env.Files(), name, maxPicture)
	if err != nil {
		return nil, "", err
	}
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "image/") {
		return model.Image{MediaType: kind, Data: data, Bytes: len(data)}, fmt.Sprintf("@%s: %s, %d bytes", name, kind, len(data)), nil
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return nil, "", fmt.Errorf("it is no text and no picture")
	}
	if len(data) > maxMention {
		return nil, "", fmt.Errorf("it is too large to go along (%d bytes): name it without the @ and let the model read what it needs", size)
	}
	text := fmt.Sprintf("<file path=%q>\n%s\n</file>", name, strings.TrimRight(string(data), "\n"))
	return model.Text{Text: text}, fmt.Sprintf("@%s: %s", name, cmdutil.Plural(strings.Count(string(data), "\n")+1, "line")), nil
}

// completePath lists what a path in the workspace may go on with, directories
// with a slash. Hidden entries show when the prefix begins one.
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
