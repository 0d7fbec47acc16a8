package profile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// maxDocuments limits the total size of the project documents, in bytes.
const maxDocuments = 32 << 10

const truncated = "[Project instructions truncated at 32KB]"

// readDocuments returns the project's instructions, from the top of the
// repository down to the working directory; outside a repository only those in
// the working directory. Documents that are missing, unreadable, duplicates, or
// links out of the repository are left out.
func readDocuments(ctx context.Context, env core.Environment, root string, names []string) string {
	info := env.Info()
	slash := pathsOf(info.OS)
	var b strings.Builder
	var seen [][]byte
	room := maxDocuments
	for _, dir := range chain(slash, root, info.Dir) {
		for _, name := range names {
			at := slash.join(dir, name)
			text, cut := readDocument(ctx, env, slash, chainTop(root, info.Dir), at, room)
			if len(text) == 0 || slices.ContainsFunc(seen, func(other []byte) bool { return bytes.Equal(other, text) }) {
				continue
			}
			seen = append(seen, text)
			room -= len(text)
			if b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString("<project_instructions path=\"" + oneLine(relative(slash, info.Dir, at)) + "\">\n")
			b.Write(bytes.TrimSpace(text))
			if cut {
				b.WriteString("\n" + truncated)
			}
			b.WriteString("\n</project_instructions>")
			if cut {
				return b.String()
			}
		}
	}
	return b.String()
}

func chainTop(root, dir string) string {
	if root == "" {
		return dir
	}
	return root
}

// chain lists the directories from top to bottom.
func chain(slash paths, root, dir string) []string {
	list := []string{dir}
	for at := dir; root != "" && at != root; {
		up := slash.dir(at)
		if up == at {
			return []string{dir} // root is not above
		}
		at = up
		list = append(list, at)
	}
	slices.Reverse(list)
	return list
}

// relative returns the path relative to the working directory.
func relative(slash paths, dir, at string) string {
	for up := ""; ; up += "../" {
		prefix := strings.TrimSuffix(dir, "/")
		if slash.windows {
			prefix = strings.TrimSuffix(dir, `\`)
		}
		if rest, ok := strings.CutPrefix(at, prefix); ok && rest != "" && (rest[0] == '/' || rest[0] == '\\') {
			return up + rest[1:]
		}
		above := slash.dir(dir)
		if above == dir {
			return at
		}
		dir = above
	}
}

// readDocument reads at most room bytes of a document, whole characters only. A
// symbolic link is followed only within the project.
func readDocument(ctx context.Context, env core.Environment, slash paths, top, at string, room int) (text []byte, cut bool) {
	stat, err := env.Files().Stat(ctx, at)
	if err != nil || !stat.Mode().IsRegular() {
		return nil, false
	}
	to, err := env.Resolve(ctx, at)
	if err != nil || !within(slash, top, to.Path) {
		return nil, false
	}
	f, err := env.Files().Open(ctx, at)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	buf := make([]byte, room+1)
	n, err := io.ReadFull(f, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	if buf = buf[:n]; n > room {
		buf, cut = buf[:room], true // a cut character is removed with the invalid ones
	}
	return bytes.ToValidUTF8(bytes.TrimPrefix(buf, []byte("\xef\xbb\xbf")), nil), cut
}

// within reports whether a resolved path is top or below it.
func within(slash paths, top, at string) bool {
	return relative(slash, top, at) != at && !strings.HasPrefix(relative(slash, top, at), "../")
}
