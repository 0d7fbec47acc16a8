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
	language string
	hash     string // of the content
	size     int64
	modified time.Time // zero if the content must be read again

	nodes    []Node
	facts    []fact
	warnings []Warning
	golang   *goFile  // of Go files
	outline  *outline // of languages that are resolved by names
	resolved bool     // the names of the outline were resolved
	before   *outline // of the text before this one
}

// normalize sorts the facts and removes repetitions; the most certain one stays.
func (f *fileFacts) normalize() {
	slices.SortStableFunc(f.facts, func(a, b fact) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.kind, b.kind), cmp.Compare(rank(a.confidence), rank(b.confidence)), cmp.Compare(a.line, b.line))
	})
	f.facts = slices.CompactFunc(f.facts, func(a, b fact) bool { return a.from == b.from && a.to == b.to && a.kind == b.kind })
}

func (f *fileFacts) warn(code string, line int, format string, args ...any) {
	f.warnings = append(f.warnings, Warning{code, f.path, line, fmt.Sprintf(format, args...)})
}

// rank orders confidences, the best first.
func rank(c Confidence) int {
	return slices.Index([]Confidence{High, Medium, Low, Unsafe}, c)
}

// languages by file extension.
var languages = map[string]string{
	".go": "go", ".py": "python", ".pyi": "python",
	".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
	".ts": "javascript", ".mts": "javascript", ".cts": "javascript", ".tsx": "javascript",
	".java": "java", ".rs": "rust", ".c": "c", ".h": "c",
	".cc": "c", ".cpp": "c", ".cxx": "c", ".hh": "c", ".hpp": "c", ".hxx": "c", ".inl": "c",
}

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
	modules   map[string][]byte // go.mod, package.json … by path
}

// moduleFiles tell how names of modules relate to directories.
var moduleFiles = map[string]bool{"go.mod": true, "package.json": true, "tsconfig.json": true, "jsconfig.json": true, "Cargo.toml": true}

func (w *walker) walk(ctx context.Context) error {
	w.modules = map[string][]byte{}
	return w.dir(ctx, ".", []gitignore.Level{{Rules: w.ignore}}, 0)
}

func (w *walker) dir(ctx context.Context, dir string, levels []gitignore.Level, depth int) error {
	if err := ctx.Err(); err != nil || depth > 64 {
		return err
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
	lang := languages[strings.ToLower(path.Ext(name))]
	if lang == "" || len(w.languages) > 0 && !slices.Contains(w.languages, lang) || strings.HasSuffix(name, ".min.js") {
		return
	}
	if info, err := e.Info(); err == nil {
		w.files = append(w.files, source{name, lang, info.Size(), info.ModTime()})
	}
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
		case languages[strings.ToLower(path.Ext(e.Name()))] != "":
			if *n--; *n <= 0 {
				return true
			}
		}
	}
	return false
}
