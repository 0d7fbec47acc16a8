package bundle_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/bundle"
)

// item is an entry of an archive.
type item struct {
	name string
	body string
	mode fs.FileMode // 0 for 0644
	link string
	kind byte // of a tar entry, if not by the mode
}

func tarOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, it := range items {
		h := &tar.Header{Name: it.name, Mode: int64(it.mode.Perm()), Size: int64(len(it.body)), Linkname: it.link, Typeflag: it.kind}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if it.kind != 0 {
			h.Size = 0
		} else if it.mode.IsDir() {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, it.body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, it := range items {
		h := &zip.FileHeader{Name: it.name, Method: zip.Deflate}
		h.SetMode(max(it.mode, 0o644))
		if it.kind == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink | 0o777)
			it.body = it.link
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, it.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bzip2 of a tar with a file "a.txt" that holds "hello\n".
const bzip2Tar = "QlpoOTFBWSZTWYWKXZcAAG37gMmQAARAAVWAAAhiRJ5ACAggAFQ0gnoAmRkPKCSmpoyNNBpiB93oMhBB6EIlecTaWcECHBdjrd4sHCKMQbTqk8GbmjOdr56OUVUWdSIgPxdyRThQkIWKXZc="

func newStage(t *testing.T, options bundle.Options) (*bundle.Store, *bundle.Stage) {
	t.Helper()
	store := bundle.Open(filepath.Join(t.TempDir(), "store"), options)
	stage, err := store.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, stage
}

func writeFile(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// unpacked puts an archive into a stage and returns what is in it.
func unpacked(t *testing.T, data []byte, options bundle.Options, prepare func(*bundle.Stage) error) (bundle.Tree, error) {
	t.Helper()
	_, stage := newStage(t, options)
	if err := stage.AddArchive(t.Context(), writeFile(t, filepath.Join(t.TempDir(), "download"), data)); err != nil {
		return bundle.Tree{}, err
	}
	if prepare != nil {
		if err := prepare(stage); err != nil {
			return bundle.Tree{}, err
		}
	}
	return stage.Tree(t.Context())
}

func paths(tree bundle.Tree) string {
	var list []string
	for _, f := range tree.Files {
		name := f.Path
		if f.Executable {
			name += "*"
		}
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

func TestArchives(t *testing.T) {
	t.Parallel()
	items := []item{
		{name: "pack/", mode: fs.ModeDir | 0o755},
		{name: "pack/SKILL.md", body: "# Hello\n"},
		{name: "./pack/scripts/run.sh", body: "#!/bin/sh\n", mode: 0o755},
		{name: "pack/.DS_Store", body: "litter"},
	}
	packed, err := base64.StdEncoding.DecodeString(bzip2Tar)
	if err != nil {
		t.Fatal(err)
	}
	linked := append(items, item{name: "README", kind: tar.TypeSymlink, link: "pack/SKILL.md"})
	pack := func(g *bundle.Stage) error { return g.Select("pack") }
	tests := []struct {
		name    string
		data    []byte
		prepare func(*bundle.Stage) error
		want    string
	}{
		{"tar", tarOf(t, items...), nil, "pack/SKILL.md pack/scripts/run.sh*"},
		{"tar.gz", gzipOf(t, tarOf(t, items...)), (*bundle.Stage).Unwrap, "SKILL.md scripts/run.sh*"},
		{"zip", zipOf(t, items...), (*bundle.Stage).Unwrap, "SKILL.md scripts/run.sh*"},
		{"tar.bz2", packed, (*bundle.Stage).Unwrap, "a.txt"},
		{"link outside of what is selected, tar", tarOf(t, linked...), pack, "SKILL.md scripts/run.sh*"},
		{"link outside of what is selected, zip", zipOf(t, linked...), pack, "SKILL.md scripts/run.sh*"},
		{"folder in a folder", tarOf(t, items...), func(g *bundle.Stage) error {
			return errors.Join(g.Unwrap(), g.Select("scripts/"))
		}, "run.sh*"},
	}
	hashes := map[string]string{}
	for _, tt := range tests {
		tree, err := unpacked(t, tt.data, bundle.Options{}, tt.prepare)
		if err != nil || paths(tree) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, paths(tree), err, tt.want)
			continue
		}
		if other, ok := hashes[tt.want]; ok && other != tree.Hash {
			t.Errorf("%s: hash %s, packed differently it is %s", tt.name, tree.Hash, other)
		}
		hashes[tt.want] = tree.Hash
	}
}

// headerBomb is an archive of many headers of no file.
func headerBomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	block := tarOf(t, item{name: "a"})[:512]
	one := append([]byte{}, block...)
	one[156] = tar.TypeXGlobalHeader
	copy(one[148:156], "        ")
	sum := 0
	for _, c := range one {
		sum += int(c)
	}
	copy(one[148:156], fmt.Sprintf("%06o\x00 ", sum))
	many := bytes.Repeat(one, 2048)
	for range 8 {
		if _, err := w.Write(many); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(tarOf(t, item{name: "fine", body: "ok"})); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestNestedArchive: an archive in an archive is a file, and stays one.
func TestNestedArchive(t *testing.T) {
	inner := zipOf(t, item{name: "../evil", body: "x"}, item{name: "zeros", body: strings.Repeat("0", 1<<20)})
	tree, err := unpacked(t, zipOf(t, item{name: "SKILL.md", body: "# Hello"}, item{name: "inner.zip", body: string(inner)}), bundle.Options{}, nil)
	if err != nil || paths(tree) != "SKILL.md inner.zip" || tree.Files[1].Size != int64(len(inner)) {
		t.Errorf("%+v, %v", tree, err)
	}
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 20<<20)
	encrypted := zipOf(t, item{name: "a", body: "secret"})
	for _, magic := range []string{"PK\x03\x04", "PK\x01\x02"} {
		at := bytes.Index(encrypted, []byte(magic))
		encrypted[at+map[string]int{"PK\x03\x04": 6, "PK\x01\x02": 8}[magic]] |= 1
	}
	deep := strings.Repeat("d/", 40) + "f"
	small := bundle.Options{Limits: bundle.Limits{Files: 3, Bytes: 100, FileBytes: 60}}
	tight := bundle.Options{Limits: bundle.Limits{Files: 100, Bytes: 1 << 20}}
	good := gzipOf(t, tarOf(t, item{name: "a", body: strings.Repeat("random", 1000)}))
	fine := item{name: "fine", body: "ok"}
	tests := []struct {
		name    string
		data    []byte
		options bundle.Options
		want    string
	}{
		{"traversal, tar", tarOf(t, fine, item{name: "../evil", body: "x"}), bundle.Options{}, `"../evil" refused: it would be written outside`},
		{"traversal, zip", zipOf(t, fine, item{name: "a/../../evil", body: "x"}), bundle.Options{}, "outside the folder"},
		{"traversal within", tarOf(t, item{name: "a/../b", body: "x"}), bundle.Options{}, "outside the folder"},
		{"backslashes", zipOf(t, item{name: `..\evil`, body: "x"}), bundle.Options{}, "outside the folder"},
		{"absolute, tar", tarOf(t, item{name: "/etc/evil", body: "x"}), bundle.Options{}, "outside the folder"},
		{"absolute, zip", zipOf(t, item{name: "/etc/evil", body: "x"}), bundle.Options{}, "outside the folder"},
		{"drive", zipOf(t, item{name: "C:/evil", body: "x"}), bundle.Options{}, "outside the folder"},
		{"symlink, tar", tarOf(t, fine, item{name: "l", kind: tar.TypeSymlink, link: "/etc"}), bundle.Options{}, `"l" refused: links are not allowed`},
		{"symlink, zip", zipOf(t, fine, item{name: "l", kind: tar.TypeSymlink, link: "/etc/passwd"}), bundle.Options{}, "links are not allowed"},
		{"write through a link", tarOf(t, item{name: "l", kind: tar.TypeSymlink, link: "/tmp"}, item{name: "l/evil", body: "x"}), bundle.Options{}, "links are not allowed"},
		{"hard link", tarOf(t, fine, item{name: "l", kind: tar.TypeLink, link: "fine"}), bundle.Options{}, "links are not allowed"},
		{"device", tarOf(t, fine, item{name: "d", kind: tar.TypeChar}), bundle.Options{}, "not a file or folder"},
		{"pipe", tarOf(t, fine, item{name: "p", kind: tar.TypeFifo}), bundle.Options{}, "not a file or folder"},
		{"case collision", tarOf(t, item{name: "Read", body: "1"}, item{name: "read", body: "2"}), bundle.Options{}, `the name is the same as "Read"`},
		{"case collision of folders", zipOf(t, item{name: "Dir/a", body: "1"}, item{name: "dir/b", body: "2"}), bundle.Options{}, `the name is the same as "Dir"`},
		{"accents in two forms", tarOf(t, item{name: "caf\u00e9", body: "1"}, item{name: "cafe\u0301", body: "2"}), bundle.Options{}, "the name is the same as"},
		{"twice", tarOf(t, item{name: "a", body: "1"}, item{name: "./a", body: "2"}), bundle.Options{}, "it occurs twice"},
		{"file and folder", tarOf(t, item{name: "a", body: "1"}, item{name: "a/b", body: "2"}), bundle.Options{}, "a"},
		{"device of Windows", tarOf(t, item{name: "aux.md", body: "1"}), bundle.Options{}, "the name is reserved on Windows"},
		{"data stream of Windows", tarOf(t, item{name: "dir/a:b", body: "1"}), bundle.Options{}, "not all systems allow"},
		{"dot at the end", tarOf(t, item{name: "a.", body: "1"}), bundle.Options{}, "ends in a dot"},
		{"escape sequence in a name", tarOf(t, item{name: "a\x1b[2Jb", body: "1"}), bundle.Options{}, `"a\x1b[2Jb" refused: the name has invisible characters`},
		{"right to left name", tarOf(t, item{name: "a\u202etxt.exe", body: "1"}), bundle.Options{}, "invisible characters"},
		{"not UTF-8", zipOf(t, item{name: "a\xff", body: "1"}), bundle.Options{}, "not valid UTF-8"},
		{"too deep", tarOf(t, item{name: deep, body: "1"}), bundle.Options{}, "more than 32 folders deep"},
		{"long name", tarOf(t, item{name: strings.Repeat("n", 256), body: "1"}), bundle.Options{}, "longer than 255 bytes"},
		{"bomb, tar.gz", gzipOf(t, tarOf(t, item{name: "zeros", body: zeros})), bundle.Options{}, "it may be a zip bomb"},
		{"bomb in a file that is refused", gzipOf(t, tarOf(t, fine, item{name: "aux.md", body: zeros}, fine)), tight, "it may be a zip bomb"},
		{"bomb in a file that is too deep", gzipOf(t, tarOf(t, item{name: deep, body: zeros}, fine)), tight, "it may be a zip bomb"},
		{"bomb of headers", headerBomb(t), tight, "it may be a zip bomb"},
		{"bomb in parts, zip", zipOf(t, item{name: "1", body: zeros[:8<<20]}, item{name: "2", body: zeros[:8<<20]}, item{name: "3", body: zeros[:8<<20]}), bundle.Options{}, "it may be a zip bomb"},
		{"hard link out", tarOf(t, fine, item{name: "l", kind: tar.TypeLink, link: "../../etc/passwd"}), bundle.Options{}, "links are not allowed"},
		{"hard link to a link", tarOf(t, item{name: "l", kind: tar.TypeSymlink, link: "/etc"}, item{name: "h", kind: tar.TypeLink, link: "l"}, item{name: "h/evil", body: "x"}), bundle.Options{}, "links are not allowed"},
		{"write through a link, zip", zipOf(t, item{name: "l", kind: tar.TypeSymlink, link: "/tmp"}, item{name: "l/evil", body: "x"}), bundle.Options{}, "links are not allowed"},
		{"case collision of a file and a folder", tarOf(t, item{name: "Read", body: "1"}, item{name: "read/a", body: "2"}), bundle.Options{}, `the name is the same as "Read"`},
		{"backslashes, absolute", zipOf(t, item{name: `\\host\share\evil`, body: "x"}), bundle.Options{}, "outside the folder"},
		{"bomb, zip", zipOf(t, item{name: "zeros", body: zeros}), bundle.Options{}, "it may be a zip bomb"},
		{"too many, tar", tarOf(t, item{name: "1"}, item{name: "2"}, item{name: "3"}, item{name: "4"}), small, "more than 3 files"},
		{"too many, zip", zipOf(t, item{name: "1"}, item{name: "2"}, item{name: "3"}, item{name: "4"}), small, "more than 3 entries"},
		{"large file", tarOf(t, item{name: "a", body: zeros[:61]}), small, `"a" refused: larger than 60 bytes`},
		{"large in sum", tarOf(t, item{name: "a", body: zeros[:60]}, item{name: "b", body: zeros[:41]}), small, "all files together have more than 100 bytes"},
		{"encrypted", encrypted, bundle.Options{}, "refused: encrypted"},
		{"cut off", good[:len(good)/2], bundle.Options{}, "unexpected EOF"},
		{"no archive", []byte("<html>not found</html>"), bundle.Options{}, "not an archive: expected zip, tar, tar.gz or tar.bz2"},
		{"nothing at all", nil, bundle.Options{}, "not an archive"},
		{"xz", []byte("\xfd7zXZ\x00rest"), bundle.Options{}, "xz archives are not supported: use"},
		{"gzip of no tar", gzipOf(t, []byte(strings.Repeat("text", 200))), bundle.Options{}, "invalid tar header"},
		{"no files, tar", tarOf(t, item{name: "dir/", mode: fs.ModeDir | 0o755}), bundle.Options{}, "it has no files"},
		{"no files, zip", zipOf(t), bundle.Options{}, "it has no files"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tree, err := unpacked(t, tt.data, tt.options, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q, %v; want an error with %q", paths(tree), err, tt.want)
			}
		})
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "good", "SKILL.md"), []byte("x"))
	writeFile(t, filepath.Join(dir, "good", ".git", "config"), []byte("secret"))
	writeFile(t, filepath.Join(dir, "good", "sub", ".git"), []byte("gitdir: elsewhere"))
	writeFile(t, filepath.Join(dir, "good", "Thumbs.db"), []byte("litter"))
	writeFile(t, filepath.Join(dir, "linked", "SKILL.md"), []byte("x"))
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "linked", "l")); err != nil {
		t.Skip(err)
	}
	tests := []struct{ name, dir, want, err string }{
		{"as it is", "good", "SKILL.md", ""},
		{"with a link", "linked", "", `"l" refused: links are not allowed`},
		{"missing", "missing", "", "missing: "},
		{"a file", "good/SKILL.md", "", "not a directory"},
	}
	for _, tt := range tests {
		_, stage := newStage(t, bundle.Options{})
		err := stage.AddFolder(t.Context(), filepath.Join(dir, tt.dir))
		var tree bundle.Tree
		if err == nil {
			tree, err = stage.Tree(t.Context())
		}
		if paths(tree) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v; want %q, an error with %q", tt.name, paths(tree), err, tt.want, tt.err)
		}
	}
}

// TestFilledStage fills a stage directly, as a git checkout does.
func TestFilledStage(t *testing.T) {
	t.Parallel()
	_, stage := newStage(t, bundle.Options{})
	writeFile(t, filepath.Join(stage.Dir(), ".git", "objects", "00"), []byte("x"))
	writeFile(t, filepath.Join(stage.Dir(), "skills", "a", "SKILL.md"), []byte("x"))
	if err := os.Symlink("/etc", filepath.Join(stage.Dir(), "skills", "l")); err != nil {
		t.Skip(err)
	}
	if err := stage.AddFolder(t.Context(), t.TempDir()); err != nil {
		t.Errorf("AddFolder: %v", err)
	}
	if err := stage.AddFolder(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "stage is not empty") {
		t.Errorf("a second AddFolder: %v", err)
	}
	for sub, want := range map[string]string{
		"skills/l": "no folder", "skills/none": "no folder", "../..": "must be inside", "/etc": "must be inside", "skills/a/SKILL.md": "no folder",
	} {
		if err := stage.Select(sub); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Select(%q) = %v, want an error with %q", sub, err, want)
		}
	}
	if _, err := stage.Tree(t.Context()); err == nil || !strings.Contains(err.Error(), `"skills/l" refused: links are not allowed`) {
		t.Errorf("Tree with a link in it: %v", err)
	}
	if err := stage.Select("skills/a"); err != nil {
		t.Fatal(err)
	}
	tree, err := stage.Tree(t.Context())
	if err != nil || paths(tree) != "SKILL.md" {
		t.Errorf("Tree = %q, %v; want SKILL.md", paths(tree), err)
	}
}

// FuzzUnpack checks that no archive writes outside a stage.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, item{name: "a/../../b", body: "x"}, item{name: "l", kind: tar.TypeSymlink, link: "/"}))
	f.Add(zipOf(f, item{name: "a/b", body: "x"}, item{name: "../c", body: "y"}))
	f.Add(gzipOf(f, tarOf(f, item{name: "a", body: "x", mode: 0o755})))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		store := bundle.Open(filepath.Join(dir, "store"), bundle.Options{Limits: bundle.Limits{Files: 50, Bytes: 1 << 20}})
		stage, err := store.Stage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		file := writeFile(t, filepath.Join(dir, "file"), data)
		if err := stage.AddArchive(t.Context(), file); err == nil {
			if tree, err := stage.Tree(t.Context()); err == nil && (tree.Hash == "" || tree.Bytes() > 1<<20) {
				t.Errorf("tree %+v", tree)
			}
		}
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("outside the stage: %v, %v", entries, err)
		}
	})
}
