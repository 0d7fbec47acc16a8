package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits are the limits of a bundle. The defaults are sufficient for any skill,
// and for a plugin with its program for several systems.
type Limits struct {
	Files     int   // number of files and folders; 0 = 5,000
	Bytes     int64 // of all files; 0 = 512 MiB
	FileBytes int64 // of one file; 0 = 256 MiB
	Ratio     int64 // how many times its size an archive may unpack to, beyond 16 MiB; 0 = 200
}

var defaultLimits = Limits{Files: 5_000, Bytes: 512 << 20, FileBytes: 256 << 20, Ratio: 200}

const ratioFree = 16 << 20

func (l Limits) filled() Limits {
	d := defaultLimits
	if l.Files > 0 {
		d.Files = l.Files
	}
	if l.Bytes > 0 {
		d.Bytes = l.Bytes
	}
	if l.FileBytes > 0 {
		d.FileBytes = l.FileBytes
	}
	if l.Ratio > 0 {
		d.Ratio = l.Ratio
	}
	return d
}

// File is a file of a bundle.
type File struct {
	Path       string `json:"path"`   // below the bundle's folder, with slashes
	SHA256     string `json:"sha256"` // hex
	Size       int64  `json:"size"`   // bytes
	Executable bool   `json:"executable,omitempty"`
}

// Tree is the content of a bundle. Folders count only as parts of paths.
type Tree struct {
	Hash  string // see HashFiles
	Files []File // by path
}

// Bytes returns the size of all files.
func (t Tree) Bytes() int64 {
	var sum int64
	for _, f := range t.Files {
		sum += f.Size
	}
	return sum
}

// HashFiles returns the hash of a tree of files, in any order: the SHA-256, in
// hex, of "agent tree 1\n" and then for each file, by path, the length of its
// path (8 bytes, the highest first), the path, one byte (1 if the file is
// executable, else 0), its size (8 bytes) and its SHA-256 (32 bytes). Files with
// a malformed SHA-256 hash to "".
func HashFiles(files []File) string {
	files = slices.Clone(files)
	slices.SortFunc(files, byPath)
	h := sha256.New()
	h.Write([]byte("agent tree 1\n"))
	var buf []byte
	for _, f := range files {
		sum, err := hex.DecodeString(f.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return ""
		}
		buf = binary.BigEndian.AppendUint64(buf[:0], uint64(len(f.Path)))
		buf = append(buf, f.Path...)
		mode := byte(0)
		if f.Executable {
			mode = 1
		}
		buf = append(buf, mode)
		buf = binary.BigEndian.AppendUint64(buf, uint64(f.Size))
		h.Write(append(buf, sum...))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func byPath(a, b File) int { return strings.Compare(a.Path, b.Path) }

// isJunk reports whether a file is one that systems create in folders. It is not
// part of a bundle, and nothing runs it.
func isJunk(name string) bool {
	return name == ".DS_Store" || name == "Thumbs.db" || name == "desktop.ini"
}

// Scan reads a folder. The error names everything that a bundle must not have,
// as [RefusedError]s; links are never followed. The error is an fs.ErrNotExist
// if there is no such folder.
func Scan(ctx context.Context, dir string, limits Limits) (Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Tree{}, err
	}
	defer root.Close()
	s := scan{ctx: ctx, limits: limits.filled(), names: spellings{}, buf: make([]byte, 64<<10)}
	err = s.folder(root, "")
	if err = errors.Join(err, errors.Join(s.refused...)); err != nil {
		return Tree{}, err
	}
	slices.SortFunc(s.files, byPath)
	return Tree{Hash: HashFiles(s.files), Files: s.files}, nil
}

// scan is the state of Scan.
type scan struct {
	ctx     context.Context
	limits  Limits
	names   spellings
	count   int
	bytes   int64
	files   []File
	refused []error
	buf     []byte
}

// folder scans a folder; at is its path.
func (s *scan) folder(root *os.Root, at string) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := s.visit(root, path.Join(at, e.Name()), e); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) visit(root *os.Root, name string, entry fs.DirEntry) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if isJunk(entry.Name()) && entry.Type().IsRegular() {
		return nil
	}
	if s.count++; s.count > s.limits.Files {
		return &RefusedError{name, fmt.Sprintf("more than %d files and folders", s.limits.Files)}
	}
	reason := checkElement(entry.Name())
	if reason == "" {
		reason = checkPath(name)
	}
	if reason == "" {
		reason = s.names.add(name)
	}
	switch {
	case reason != "":
	case entry.IsDir():
		return s.enter(root, name, entry)
	case !entry.Type().IsRegular():
		reason = kindRefused(entry.Type())
	default:
		return s.hash(root, name)
	}
	s.refused = append(s.refused, &RefusedError{name, reason})
	return nil
}

// enter scans a folder in another one.
func (s *scan) enter(root *os.Root, name string, entry fs.DirEntry) error {
	below, err := root.OpenRoot(entry.Name())
	if err != nil {
		return err
	}
	defer below.Close()
	return s.folder(below, name)
}

// kindRefused returns why a file of this kind is refused.
func kindRefused(mode fs.FileMode) string {
	if mode&fs.ModeSymlink != 0 {
		return "links are not allowed: use the file itself"
	}
	return "not a file or folder"
}

// hash reads a file of a folder.
func (s *scan) hash(root *os.Root, name string) error {
	f, err := readFile(s.ctx, root, path.Base(name), s.limits.FileBytes, nil, s.buf)
	if kind := (*RefusedError)(nil); errors.As(err, &kind) {
		return &RefusedError{name, kind.Reason}
	}
	if err != nil {
		return err
	}
	if s.bytes += f.Size; f.Size > s.limits.FileBytes || s.bytes > s.limits.Bytes {
		return &RefusedError{name, tooLarge(f.Size, s.limits)}
	}
	f.Path = name
	s.files = append(s.files, f)
	return nil
}

// readFile reads at most one more byte of a regular file than the given number, and
// copies them to a writer, which may be nil. It uses buf, if there is one.
func readFile(ctx context.Context, root *os.Root, name string, most int64, to io.Writer, buf []byte) (File, error) {
	f, err := root.Open(name)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, &RefusedError{name, kindRefused(info.Mode())}
	}
	h := sha256.New()
	sink := io.Writer(h)
	if to != nil {
		sink = io.MultiWriter(h, to)
	}
	n, err := io.CopyBuffer(sink, io.LimitReader(reader{ctx, f}, most+1), buf)
	if err != nil {
		return File{}, err
	}
	return File{Path: name, SHA256: hex.EncodeToString(h.Sum(nil)), Size: n, Executable: modesKept && info.Mode()&0o100 != 0}, nil
}

// tooLarge returns which limit a file of a size exceeds.
func tooLarge(size int64, l Limits) string {
	if size > l.FileBytes {
		return fmt.Sprintf("larger than %d bytes", l.FileBytes)
	}
	return fmt.Sprintf("all files together have more than %d bytes", l.Bytes)
}

// reader reads until its context is done.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// inside reports whether a path is in a folder; everything is in ".".
func inside(folder, name string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// below returns a path relative to a folder that it is in.
func below(folder, name string) string {
	if folder == "." {
		return name
	}
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(name, folder), "/"))
}
