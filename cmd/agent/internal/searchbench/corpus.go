package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// corpus is a tree to search.
type corpus struct {
	name, about string
	// make fills an empty directory; nil if dir is a tree that exists.
	make func(w *writer)
	dir  string
}

// corpora returns the trees; those to be made are empty yet.
func corpora(ctx context.Context) ([]*corpus, error) {
	library, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return nil, err
	}
	mod, err := goEnv(ctx, "GOMOD")
	if err != nil {
		return nil, err
	}
	return []*corpus{
		{name: "go", about: "the source tree of Go", dir: filepath.Join(library, "src")},
		{name: "repository", about: "this repository", dir: filepath.Dir(mod)},
		{name: "small", about: "20,000 files of 200 bytes in 400 directories", make: smallFiles},
		{name: "large", about: "12 files of 3.9 MB", make: largeFiles},
		{name: "lines", about: "20 files of one to three lines of a megabyte", make: longLines},
		{name: "unicode", about: "300 files of 100 kB of Russian, Greek, Chinese and emoji", make: unicodeText},
		{name: "ignored", about: "900 directories, each with a .gitignore, and half of the files ignored", make: ignoredFiles},
	}, nil
}

// prepare makes the tree below temp, unless it exists.
func (c *corpus) prepare(temp string) (err error) {
	if c.make != nil {
		c.dir = filepath.Join(temp, c.name)
		w := &writer{dir: c.dir, rand: rand.New(rand.NewPCG(1, 2))}
		w.mkdir(".git")
		if c.make(w); w.err != nil {
			return w.err
		}
	}
	c.dir, err = filepath.EvalSymlinks(c.dir)
	return err
}

func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	value := strings.TrimSpace(string(out))
	if value == "" || value == os.DevNull {
		return "", fmt.Errorf("go env %s is empty: run searchbench inside the agent's module", name)
	}
	return value, nil
}

// writer writes the files of a corpus, the same ones each time.
type writer struct {
	dir  string
	rand *rand.Rand
	err  error // the first one
}

func (w *writer) mkdir(name string) {
	if err := os.MkdirAll(filepath.Join(w.dir, name), 0o755); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *writer) file(name, text string) {
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil && w.err == nil {
		w.err = err
	}
}

// words returns text of about size bytes: words, a line break after each ninth or
// so, and a rare "needle".
func (w *writer) words(size int, from []string, lineBreaks bool) string {
	var b strings.Builder
	for b.Len() < size {
		switch n := w.rand.IntN(20_000); {
		case n == 0:
			b.WriteString("needle")
		case n < 400:
			fmt.Fprintf(&b, "%d", n*n)
		default:
			b.WriteString(from[n%len(from)])
		}
		if n := w.rand.IntN(18); n < 2 && lineBreaks {
			b.WriteByte('\n')
		} else {
			b.WriteString([]string{" ", " ", " ", ", ", ".", "_", "(", ") "}[n%8])
		}
	}
	return b.String()
}

var englishWords = strings.Fields(`the of function return and value name error if file to string a int in context for
	is type path that var nil length with config open read close write buffer state index client server request Reader
	Handler Config TODO MAX_SIZE abc edge bead cabbage decade`)

func smallFiles(w *writer) {
	for d := range 400 {
		dir := fmt.Sprintf("part%d/dir%d", d%20, d)
		w.mkdir(dir)
		for f := range 50 {
			w.file(fmt.Sprintf("%s/file%d.%s", dir, f, []string{"go", "md", "ts", "txt"}[f%4]), w.words(200, englishWords, true))
		}
	}
}

func largeFiles(w *writer) {
	for f := range 12 {
		w.file(fmt.Sprintf("large%d.txt", f), w.words(3_900_000, englishWords, true))
	}
}

func longLines(w *writer) {
	for f := range 20 {
		text := w.words(1_000_000, englishWords, false)
		for range f % 3 {
			text += "\n" + w.words(1_000_000, englishWords, false)
		}
		w.file(fmt.Sprintf("line%d.js", f), text+"\n")
	}
}

func unicodeText(w *writer) {
	words := strings.Fields(`функция вернуть значение ошибка файл строка и в на не что Привет Мир συνάρτηση τιμή σφάλμα αρχείο
		Κόσμος 读取配置 文件 返回错误 世界 如果 不存在 naïve Größe café 😀 🚀 config error`)
	for f := range 300 {
		dir := fmt.Sprintf("texts%d", f%30)
		w.mkdir(dir)
		w.file(fmt.Sprintf("%s/text%d.txt", dir, f), w.words(100_000, words, true))
	}
}

func ignoredFiles(w *writer) {
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		w.mkdir(dir)
		w.file(dir+"/.gitignore", "*.log\n*.tmp\n/build/\n!keep.log\ndoc/**/*.html\n[Tt]humbs.db\n*~\n.#*\nout-*/\n/gen*.go\n")
		for f, name := range []string{"a.go", "b.go", "main_test.go", "README.md", "x.log", "y.tmp", "keep.log", "gen1.go", "old~", "notes.txt"} {
			w.file(dir+"/"+name, w.words(500+100*f, englishWords, true))
		}
		w.mkdir(dir + "/build")
		w.file(dir+"/build/x.o", "needle")
		if depth > 0 {
			for n := range 6 - depth {
				fill(fmt.Sprintf("%s/sub%d", dir, n), depth-1)
			}
		}
	}
	for n := range 6 {
		fill(fmt.Sprintf("top%d", n), 5)
	}
}
