package graph

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/core/gitignore"
)

// maxFile is the size in bytes above which a file is not analysed.
const maxFile = 1 << 20

// fileFacts is what the analysis found in one file.
type fileFacts struct {
	path     string
	number   int32 // in the graph
	language string
	hash     string // of the content
	size     int64
	modified time.Time // zero if the content must be read again

	nodes    []Node
	facts    []fact
	warnings []Warning
	golang   *goFile  // of Go files
	outline  *outline // of languages that are resolved by names
	resolved string   // the modules that the names of the outline were resolved with; "" if they were not
	before   *outline // of the text before this one
}

// normalize sorts the facts and removes repetitions; the most certain one stays. A file
// that is gone (nil) has none.
func (f *fileFacts) normalize() {
	if f == nil {
		return
	}
	slices.SortFunc(f.facts, func(a, b fact) int {
		if c := cmp.Compare(a.from, b.from); c != 0 {
			return c
		}
		if c := cmp.Compare(a.to, b.to); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.kind, b.kind), rank(a.confidence)-rank(b.confidence), cmp.Compare(a.line, b.line), cmp.Compare(a.rule, b.rule))
	})
	f.facts = slices.CompactFunc(f.facts, func(a, b fact) bool { return a.from == b.from && a.to == b.to && a.kind == b.kind })
}

func (f *fileFacts) warn(code string, line int, format string, args ...any) {
	f.warnings = append(f.warnings, Warning{code, f.path, line, fmt.Sprintf(format, args...)})
}

// rank orders confidences, the best first.
func rank(c Confidence) int {
	switch c {
	case High:
		return 0
	case Medium:
		return 1
	case Low:
		return 2
	}
	return 3
}

// leastSure returns the confidence of what needs both.
func leastSure(a, b Confidence) Confidence {
	if rank(a) > rank(b) {
		return a
	}
	return b
}

// languages by file extension.
var languages = map[string]string{
	".go": "go", ".py": "python", ".pyi": "python",
	".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
	".ts": "javascript", ".mts": "javascript", ".cts": "javascript", ".tsx": "javascript",
	".java": "java", ".rs": "rust", ".c": "c", ".h": "c",
	".cc": "c", ".cpp": "c", ".cxx": "c", ".hh": "c", ".hpp": "c", ".hxx": "c", ".inl": "c",
}

// languageOf returns the language of a file; "" if it is not analysed.
func languageOf(name string) string { return languages[strings.ToLower(path.Ext(name))] }

// skipped are directories of what others wrote or programs made.
var skipped = map[string]bool{
	"node_modules": true, "vendor": true, "third_party": true, "bower_components": true,
	"__pycache__": true, "site-packages": true, "venv": true, "testdata": true,
}

// source is one file that is to be analysed.
type source struct {
	path, language string
	size           int64
	modified       time.Time
}

// walker lists the source files below a root. Links are not followed.
type walker struct {
	root      *os.Root
	languages []string // all if empty
	ignore    []gitignore.Rule
	files     []source
	modules   map[string][]byte            // go.mod, package.json … by path
	version   string                       // hash of the modules
	enter     func(dir string)             // is told of each directory before it is read; may be nil
	levels    map[string][]gitignore.Level // of directories that were read
}

// moduleFiles tell how names of modules relate to directories.
var moduleFiles = map[string]bool{"go.mod": true, "package.json": true, "tsconfig.json": true, "jsconfig.json": true, "Cargo.toml": true}

func (w *walker) walk(ctx context.Context) error {
	w.modules, w.levels = map[string][]byte{}, map[string][]gitignore.Level{}
	err := w.dir(ctx, ".", []gitignore.Level{{Rules: w.ignore}}, 0)
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(w.modules)) {
		fmt.Fprintln(&all, name, contentHash(w.modules[name]))
	}
	w.version = contentHash([]byte(all.String()))
	return err
}

func (w *walker) dir(ctx context.Context, dir string, levels []gitignore.Level, depth int) error {
	if err := ctx.Err(); err != nil || depth > 64 {
		return err
	}
	if w.enter != nil {
		w.enter(dir)
	}
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil {
		if dir == "." {
			return err
		}
		return nil // gone or not readable: nothing to analyse
	}
	if i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" && e.Type().IsRegular() }); i >= 0 {
		if data, err := readFile(w.root, path.Join(dir, ".gitignore"), maxFile); err == nil {
			base := ""
			if dir != "." {
				base = dir + "/"
			}
			levels = append(slices.Clip(levels), gitignore.Level{Dir: base, Rules: gitignore.Parse(string(data))})
		}
	}
	w.levels[dir] = levels
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") || gitignore.Ignored(levels, name, e.IsDir()):
		case e.IsDir():
			if !skipped[e.Name()] {
				if err := w.dir(ctx, name, levels, depth+1); err != nil {
					return err
				}
			}
		case e.Type().IsRegular():
			w.file(name, e)
		}
	}
	return nil
}

func (w *walker) file(name string, e fs.DirEntry) {
	if moduleFiles[e.Name()] {
		if data, err := readFile(w.root, name, maxFile); err == nil {
			w.modules[name] = data
		}
	}
	lang := languageOf(name)
	if lang == "" || len(w.languages) > 0 && !slices.Contains(w.languages, lang) || strings.HasSuffix(name, ".min.js") {
		return
	}
	if info, err := e.Info(); err == nil {
		w.files = append(w.files, source{name, lang, info.Size(), info.ModTime()})
	}
}

// again looks only at some paths: it returns the files to be read, and those of known
// that are gone. It reports false if the whole tree must be walked.
func (w *walker) again(paths []string, known map[string]*fileFacts) (read []source, gone []string, ok bool) {
	w.files = nil
	for _, name := range paths {
		levels, listed := w.levels[path.Dir(name)]
		info, err := w.root.Lstat(name)
		switch {
		case err == nil && info.IsDir():
			return nil, nil, false
		case err == nil && listed && info.Mode().IsRegular() && !strings.HasPrefix(path.Base(name), ".") && !gitignore.Ignored(levels, name, false):
			w.file(name, fs.FileInfoToDirEntry(info))
		case known[name] != nil:
			gone = append(gone, name)
		}
	}
	read, w.files = w.files, nil
	return read, gone, true
}

var errTooLarge = errors.New("larger than 1 MiB")

// readFile reads a regular file of limited size.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), limit)) + 512)
	if _, err := io.Copy(&b, io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

// minified reports whether a file was made by a program that removes line breaks.
func minified(data []byte) bool {
	return len(data) > 50_000 && len(data) > 500*bytes.Count(data, []byte("\n"))
}

func contentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// countFiles counts down the source files below a directory until there are none
// left to find or to look at.
func countFiles(dir string, n, left *int, depth int) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || depth > 16 {
		return false
	}
	for _, e := range entries {
		if *left--; *left <= 0 {
			return false
		}
		switch {
		case strings.HasPrefix(e.Name(), ".") || skipped[e.Name()]:
		case e.IsDir():
			if countFiles(dir+"/"+e.Name(), n, left, depth+1) {
				return true
			}
		case languageOf(e.Name()) != "":
			if *n--; *n <= 0 {
				return true
			}
		}
	}
	return false
}
