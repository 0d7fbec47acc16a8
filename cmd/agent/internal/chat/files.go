package chat

import (
	"cmp"
	"context"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/core"
)

// Limits of the list of files that @ completes.
const (
	maxFiles     = 50_000
	maxSuggested = 50
	filesTime    = 3 * time.Second  // to list them
	filesFresh   = 10 * time.Second // before they are listed again
)

// fileList is the list of the workspace's files, which is read when it is first
// needed. It is safe for concurrent use.
type fileList struct {
	env  core.Environment
	find symbols

	mu   sync.Mutex
	all  []string // directories end with a slash
	read time.Time
}

// complete returns the files and symbols that match a query, the best first. A query that begins
// with a dot or a slash is a path.
func (f *fileList) complete(ctx context.Context, query string) []string {
	if strings.HasPrefix(query, "/") || strings.HasPrefix(query, "~") || strings.HasPrefix(query, "..") {
		return f.inDir(ctx, query)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.read) > filesFresh {
		ctx, cancel := context.WithTimeout(ctx, filesTime)
		defer cancel()
		f.all, f.read = f.list(ctx), time.Now()
	}
	if query == "" {
		top := slices.DeleteFunc(slices.Clone(f.all), func(name string) bool { return strings.Contains(strings.TrimSuffix(name, "/"), "/") })
		return top[:min(len(top), maxSuggested)]
	}
	found := tui.Rank(query, append(f.all[:len(f.all):len(f.all)], f.find.mentions(ctx, query)...))
	return found[:min(len(found), maxSuggested)]
}

// list returns the files and directories: those of git, or all.
func (f *fileList) list(ctx context.Context) []string {
	files, err := f.ofGit(ctx)
	if err != nil {
		files = f.walk(ctx)
	}
	dirs := map[string]bool{}
	for _, name := range files {
		for dir := path.Dir(name); dir != "." && dir != "/" && !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
			files = append(files, dir+"/")
		}
	}
	slices.Sort(files)
	return files
}

// ofGit returns the files that git knows or does not ignore.
func (f *fileList) ofGit(ctx context.Context) ([]string, error) {
	var out strings.Builder
	p, err := f.env.Start(ctx, core.Command{Script: "git -c core.fsmonitor=false ls-files -z --cached --others --exclude-standard", Stdout: &out, Stderr: io.Discard})
	if err != nil {
		return nil, err
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 {
		return nil, cmp.Or(err, context.Canceled)
	}
	names := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	names = slices.DeleteFunc(names, func(name string) bool { return !typeable(name) })
	return names[:min(len(names), maxFiles)], nil
}

// walk returns the files of a directory that is not of git, but for hidden ones and
// those of packages.
func (f *fileList) walk(ctx context.Context) (files []string) {
	dirs := []string{"."}
	for len(dirs) > 0 && len(files) < maxFiles && ctx.Err() == nil {
		dir := dirs[0]
		dirs = dirs[1:]
		entries, err := f.env.Files().ReadDir(ctx, dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			switch {
			case strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || !typeable(name):
			case e.IsDir():
				dirs = append(dirs, name)
			default:
				files = append(files, name)
			}
		}
	}
	return files
}

// inDir completes a path that is not in the workspace.
func (f *fileList) inDir(ctx context.Context, query string) []string {
	dir, base := path.Split(query)
	entries, err := f.env.Files().ReadDir(ctx, cmp.Or(dir, "."))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && base == "" || !typeable(name) || len(out) == maxSuggested {
			continue
		}
		if isDir(ctx, f.env, dir+name, e) {
			name += "/"
		}
		out = append(out, dir+name)
	}
	return out
}

// typeable reports whether a name can be entered after @.
func typeable(name string) bool { return name != "" && !strings.ContainsAny(name, "\"\n\t\x1b") }
