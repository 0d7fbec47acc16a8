package bundle

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// AddArchive unpacks a zip, tar, tar.gz or tar.bz2 file, whatever its name, into
// the stage. An archive that tries to write outside the stage, or exceeds a
// limit, is refused as a whole; links and the like are left out, and are an error
// of Tree if they are in the selected folder.
func (g *Stage) AddArchive(ctx context.Context, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err == nil {
		err = g.unpack(ctx, f, info.Size())
	}
	if err != nil {
		return fmt.Errorf("bundle: unpacking %s: %w", file, err)
	}
	return nil
}

// unpack detects the format of an archive and unpacks it.
func (g *Stage) unpack(ctx context.Context, f *os.File, size int64) error {
	in, err := g.receive(size)
	if err != nil {
		return err
	}
	defer in.root.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var r io.Reader = bufio.NewReader(f)
	switch kind := archiveKind(head[:n]); kind {
	case "zip":
		return in.zip(ctx, f, size)
	case "gzip":
		if r, err = gzip.NewReader(r); err != nil {
			return err
		}
	case "bzip2":
		r = bzip2.NewReader(r)
	case "tar":
	case "":
		return errors.New("not an archive: expected zip, tar, tar.gz or tar.bz2")
	default:
		return fmt.Errorf("%s archives are not supported: use zip, tar, tar.gz or tar.bz2", kind)
	}
	return in.tar(ctx, r)
}

// archiveKind returns the format of an archive by its first bytes; "" if it is
// unknown.
func archiveKind(head []byte) string {
	for _, k := range []struct{ kind, magic string }{
		{"zip", "PK\x03\x04"},
		{"zip", "PK\x05\x06"}, // an empty archive
		{"gzip", "\x1f\x8b"},
		{"bzip2", "BZh"},
		{"xz", "\xfd7zXZ\x00"},
		{"zstd", "\x28\xb5\x2f\xfd"},
		{"7z", "7z\xbc\xaf\x27\x1c"},
		{"rar", "Rar!\x1a\x07"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.kind
		}
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return "tar"
	}
	return ""
}

func (in *receiver) zip(ctx context.Context, f io.ReaderAt, size int64) error {
	r, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // add checks paths
		return err
	}
	if len(r.File) > in.limits.Files {
		return &RefusedError{".", fmt.Sprintf("more than %d entries", in.limits.Files)}
	}
	for _, entry := range r.File {
		if entry.Flags&1 != 0 {
			return &RefusedError{entry.Name, "encrypted"}
		}
		if err := in.zipEntry(ctx, entry); err != nil {
			return err
		}
	}
	return nil
}

func (in *receiver) zipEntry(ctx context.Context, entry *zip.File) error {
	mode := entry.Mode()
	if strings.HasSuffix(entry.Name, "/") {
		mode |= fs.ModeDir
	}
	if mode.IsRegular() {
		content, err := entry.Open()
		if err != nil {
			return fmt.Errorf("%q: %w", entry.Name, err)
		}
		defer content.Close()
		return in.add(ctx, entry.Name, mode, content)
	}
	return in.add(ctx, entry.Name, mode, nil)
}

func (in *receiver) tar(ctx context.Context, packed io.Reader) error {
	r := tar.NewReader(&bounded{reader{ctx, packed}, in.most + int64(in.limits.Files)*entryOverhead + 1<<20, in.limits})
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return err
		}
		mode := h.FileInfo().Mode()
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue
		case tar.TypeLink:
			mode |= fs.ModeSymlink // refuse hard links as well
		}
		if err := in.add(ctx, h.Name, mode, r); err != nil {
			return err
		}
	}
}

// entryOverhead is how much an entry of a tar archive takes beside its content: headers,
// a long name and padding.
const entryOverhead = 8 << 10

// bounded is what a tar archive is unpacked from. What is skipped counts, too: headers, and
// the content of files that are refused.
type bounded struct {
	r      io.Reader
	left   int64
	limits Limits
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &RefusedError{".", fmt.Sprintf("it unpacks to more than its files may have (%d bytes, or %d times its size): it may be a zip bomb", b.limits.Bytes, b.limits.Ratio)}
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// receiver writes the files of an archive or a folder into a stage.
type receiver struct {
	stage  *Stage
	root   *os.Root // of the stage
	limits Limits
	most   int64 // bytes that may be written
	names  spellings
	count  int
	bytes  int64
}

// receive returns a receiver for an archive of a size, or a folder if the size
// is negative.
func (g *Stage) receive(size int64) (*receiver, error) {
	if g.filled {
		return nil, errors.New("the stage is not empty")
	}
	g.filled = true
	root, err := os.OpenRoot(g.Dir())
	if err != nil {
		return nil, err
	}
	in := &receiver{stage: g, root: root, limits: g.store.limits, names: spellings{}}
	in.most = in.limits.Bytes
	if size >= 0 && size < in.most/in.limits.Ratio {
		in.most = min(in.most, max(size*in.limits.Ratio, ratioFree))
	}
	return in, nil
}

// add writes a file, or notes why it is refused.
func (in *receiver) add(ctx context.Context, given string, mode fs.FileMode, content io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if escapes(given) {
		return &RefusedError{given, "it would be written outside the folder; the archive may be an attack"}
	}
	if in.count++; in.count > in.limits.Files {
		return &RefusedError{".", fmt.Sprintf("more than %d files and folders", in.limits.Files)}
	}
	name := path.Clean(given)
	if name == "." && mode.IsDir() {
		return nil
	}
	reason := checkPath(name)
	if reason == "" && !mode.IsDir() {
		reason = in.names.add(name)
	}
	if reason == "" && mode.Type()&^fs.ModeDir != 0 {
		reason = kindRefused(mode)
	}
	switch {
	case reason != "":
		in.stage.refused = append(in.stage.refused, RefusedError{name, reason})
		return nil
	case mode.IsDir():
		return nil // folders are created for their files
	}
	return in.write(name, mode, reader{ctx, content})
}

func (in *receiver) write(name string, mode fs.FileMode, content io.Reader) error {
	if err := in.root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if mode&0o100 != 0 {
		perm = 0o755
		in.stage.executable[name] = true
	}
	f, err := in.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	left := min(in.limits.FileBytes, in.most-in.bytes)
	n, err := io.Copy(f, io.LimitReader(content, left+1))
	in.bytes += n
	switch err = errors.Join(err, f.Close()); {
	case err != nil:
		return fmt.Errorf("%q: %w", name, err)
	case n > in.limits.FileBytes || in.bytes > in.limits.Bytes:
		return &RefusedError{name, tooLarge(n, in.limits)}
	case n > left:
		return &RefusedError{".", fmt.Sprintf("it unpacks to more than %d times its size: it may be a zip bomb", in.limits.Ratio)}
	}
	return nil
}

// AddFolder copies a folder into the stage, without version control (.git), files such
// as .DS_Store, and folders of caches and builds, which have a CACHEDIR.TAG
// (https://bford.info/cachedir/). Files are refused as by AddArchive.
func (g *Stage) AddFolder(ctx context.Context, dir string) error {
	if err := g.copyFolder(ctx, dir); err != nil {
		return fmt.Errorf("bundle: copying %s: %w", dir, err)
	}
	return nil
}

// isCache reports whether a folder is tagged as a cache, such as the target of cargo.
func isCache(root *os.Root, dir string) bool {
	info, err := root.Lstat(path.Join(dir, "CACHEDIR.TAG"))
	return err == nil && info.Mode().IsRegular()
}

func (g *Stage) copyFolder(ctx context.Context, dir string) error {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	in, err := g.receive(-1)
	if err != nil {
		return err
	}
	defer in.root.Close()
	return fs.WalkDir(from.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == versionControl && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir() && name != "." && isCache(from, name):
			return fs.SkipDir
		case name == "." || entry.Name() == versionControl || isJunk(entry.Name()):
			return nil
		case !entry.Type().IsRegular():
			return in.add(ctx, name, entry.Type(), nil)
		}
		f, err := from.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return in.add(ctx, name, info.Mode(), f)
	})
}
