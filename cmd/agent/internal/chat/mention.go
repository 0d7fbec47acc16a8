package chat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/lazy"
	"github.com/seed-009c0928/agent/core/model"
)

// Bounds of an attached @file, in bytes.
const (
	maxMention = 256 << 10
	maxImage   = 5 << 20
)

// mention is an @file: at the beginning or after a space, up to the next space, or
// in quotes. Lines of it may follow: "@file:10-20" or "@file#L10-L20".
var (
	mention      = lazy.Regexp(`(?:^|\s)@(?:"([^"\n]+)"(\S*)|([^\s@"]+))`)
	mentionLines = lazy.Regexp(`(?::|#L)(\d+)(?:-L?(\d+))?$`)
)

// expand makes an input of a prompt and attaches its @files. A word that names no
// file is left as it is. others resolves what else a word may name; it returns no
// parts for a word it does not know; find looks symbols up. The notes say what was attached, or why not.
// The content of a file that is sensitive to the policy is not recorded.
func expand(ctx context.Context, a fileSource, text string, find symbols, others func(name string) (parts model.Parts, note string, err error)) (core.Input, []string, error) {
	in, env := core.TextInput(text), a.Env()
	record, hidden := core.TextInput(text).Content, false
	var notes []string
	var seen []string
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		name := m[1] + strings.TrimRight(m[2]+m[3], ".,;:!?)")
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
			record = append(record, parts...)
			continue
		}
		name, lines, info, err := findMention(ctx, env, name)
		if err != nil {
			if at := find.lines(ctx, name); at != "" {
				name, lines, info, err = findMention(ctx, env, at)
			}
		}
		if err != nil {
			if !strings.Contains(text, "\n") || strings.ContainsAny(name, "./") { // else it may be program code
				notes = append(notes, fmt.Sprintf("@%s: no such file; left as text", name))
			}
			continue
		}
		part, note, err := attach(ctx, env, name, info, lines)
		if err != nil {
			return core.Input{}, nil, fmt.Errorf("@%s: %w", name, err)
		}
		in.Content, notes = append(in.Content, part), append(notes, note)
		if !info.IsDir() && isSensitive(ctx, a, name) {
			hidden, part = true, model.Text{Text: fmt.Sprintf("<file path=%q>\n[%d bytes are not recorded, because they may contain secrets]\n</file>", name, info.Size())}
		}
		record = append(record, part)
	}
	if hidden {
		in.Record = record
	}
	return in, notes, nil
}

// fileSource is where the files of a prompt are, and the policy for them: an
// *agent.Agent.
type fileSource interface {
	Env() core.Environment
	Policy() core.Policy
}

// isSensitive reports whether a file may contain secrets, according to the policy.
func isSensitive(ctx context.Context, a fileSource, name string) bool {
	at, err := a.Env().Resolve(ctx, name)
	if err != nil {
		return true // it was just read: what it is now is unknown
	}
	access := core.Access{Scope: core.ScopeRead, Resource: at.Path, Inside: at.Inside}
	return len(a.Policy().Decide(ctx, core.PermissionRequest{
		Tool: "read_file", Session: core.SessionInfo{Dir: a.Env().Info().Dir}, Accesses: []core.Access{access},
	}).Sensitive) > 0
}

// lineRange is a part of a file; its zero value is the whole.
type lineRange struct{ first, last int }

// findMention finds a file or directory, and the lines that the name ends with.
func findMention(ctx context.Context, env core.Environment, name string) (string, lineRange, fs.FileInfo, error) {
	info, err := env.Files().Stat(ctx, name)
	m := mentionLines().FindStringSubmatchIndex(name)
	if err == nil || m == nil {
		return name, lineRange{}, info, err
	}
	part := mentionLines().FindStringSubmatch(name)
	var r lineRange
	r.first, _ = strconv.Atoi(part[1])
	if r.last = r.first; part[2] != "" {
		r.last, _ = strconv.Atoi(part[2])
	}
	if info, err = env.Files().Stat(ctx, name[:m[0]]); err != nil || info.IsDir() || r.first < 1 || r.last < r.first {
		return name, lineRange{}, nil, errors.Join(err, fs.ErrNotExist)
	}
	return name[:m[0]], r, info, nil
}

// attach reads what the user named: a file, some lines of it, or the names in a
// directory.
func attach(ctx context.Context, env core.Environment, name string, info fs.FileInfo, lines lineRange) (model.Part, string, error) {
	size := info.Size()
	if info.IsDir() {
		return attachDir(ctx, env, name)
	}
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
	text, which := strings.TrimRight(string(data), "\n"), ""
	if lines.first > 0 {
		all := strings.Split(text, "\n")
		if lines.first > len(all) {
			return nil, "", fmt.Errorf("it has only %s", display.Plural(len(all), "line"))
		}
		lines.last = min(lines.last, len(all))
		text, which = strings.Join(all[lines.first-1:lines.last], "\n"), fmt.Sprintf(" lines=\"%d-%d\"", lines.first, lines.last)
	}
	if len(text) > maxMention {
		return nil, "", fmt.Errorf("too large to attach (%d bytes): name lines, as in @%s:1-200, or write the path without @ and let the model read what it needs", size, name)
	}
	return model.Text{Text: fmt.Sprintf("<file path=%q%s>\n%s\n</file>", name, which, text)}, fmt.Sprintf("@%s: %s", name, display.Plural(strings.Count(text, "\n")+1, "line")), nil
}

// attachDir lists a directory.
func attachDir(ctx context.Context, env core.Environment, name string) (model.Part, string, error) {
	const most = 500
	entries, err := env.Files().ReadDir(ctx, name)
	if err != nil {
		return nil, "", err
	}
	var names []string
	for i, e := range entries {
		if i == most {
			names = append(names, fmt.Sprintf("… and %d more", len(entries)-most))
			break
		}
		entry := e.Name()
		if isDir(ctx, env, path.Join(name, entry), e) {
			entry += "/"
		}
		names = append(names, entry)
	}
	return model.Text{Text: fmt.Sprintf("<directory path=%q>\n%s\n</directory>", name, strings.Join(names, "\n"))},
		fmt.Sprintf("@%s: %s", name, display.Plural(len(entries), "name")), nil
}

func isDir(ctx context.Context, env core.Environment, name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := env.Files().Stat(ctx, name)
	return err == nil && info.IsDir()
}
