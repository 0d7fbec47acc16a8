package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Approved are the files of an installed bundle as its entry lists them, for readers
// that do not need all of them: the list is the entry's, not the folder's, and a file
// is compared with it when it is opened. It is safe for concurrent use; the caller
// closes it.
type Approved struct {
	root  *os.Root // nil if there is no folder
	files []File   // by path

	mu      sync.Mutex
	changes []Change
	failed  []error
}

// Approved returns the files of an entry.
func (s *Store) Approved(entry Entry) (*Approved, error) {
	root, err := os.OpenRoot(s.Path(entry.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Approved{root: root, files: entry.Files}, nil
}

// Close closes the folder.
func (a *Approved) Close() error {
	if a.root == nil {
		return nil
	}
	return a.root.Close()
}

// Verify returns which of the files that were opened are not those of the entry, by
// path, as [Store.Verify] does of all.
func (a *Approved) Verify() ([]Change, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := errors.Join(a.failed...); err != nil {
		return nil, err
	}
	list := slices.Clone(a.changes)
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(list, func(a, b Change) bool { return a.Path == b.Path }), nil
}

// find returns the first file at a path or below it.
func (a *Approved) find(name string) (f File, folder, ok bool) {
	if name == "." {
		return File{}, true, true
	}
	i, exact := slices.BinarySearchFunc(a.files, name, func(f File, name string) int { return strings.Compare(f.Path, name) })
	if exact {
		return a.files[i], false, true
	}
	i, _ = slices.BinarySearchFunc(a.files, name+"/", func(f File, name string) int { return strings.Compare(f.Path, name) })
	return File{}, true, i < len(a.files) && inside(name, a.files[i].Path)
}

// Open implements [fs.FS], for files: folders are only listed.
func (a *Approved) Open(name string) (fs.File, error) {
	info, err := a.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("is a folder")}
	}
	data, change, err := a.read(info.(*approvedInfo).file)
	if change != nil {
		err = ErrChanged
	}
	if err != nil {
		err = &fs.PathError{Op: "open", Path: name, Err: err}
		a.note(change, err)
		return nil, err
	}
	return &approvedFile{bytes.NewReader(data), info}, nil
}

// note keeps why a file cannot be used.
func (a *Approved) note(change *Change, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if change != nil {
		a.changes = append(a.changes, *change)
	} else {
		a.failed = append(a.failed, err)
	}
}

// read returns the content of a file, or how it changed.
func (a *Approved) read(want File) ([]byte, *Change, error) {
	removed := &Change{Path: want.Path, Kind: Removed, Old: &want}
	if a.root == nil {
		return nil, removed, nil
	}
	for i := range len(want.Path) + 1 { // links are not followed, as in Scan
		if i < len(want.Path) && want.Path[i] != '/' {
			continue
		}
		if info, err := a.root.Lstat(want.Path[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, nil, &RefusedError{want.Path[:i], kindRefused(fs.ModeSymlink)}
		}
	}
	var content bytes.Buffer
	found, err := readFile(context.Background(), a.root, want.Path, want.Size, &content, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, removed, nil
	case err != nil:
		return nil, nil, err
	}
	if !modesKept {
		found.Executable = want.Executable
	}
	if changes := Compare(Tree{Files: []File{want}}, Tree{Files: []File{found}}); len(changes) > 0 {
		return nil, &changes[0], nil
	}
	return content.Bytes(), nil, nil
}

// Stat implements [fs.StatFS].
func (a *Approved) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	f, folder, ok := a.find(name)
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return &approvedInfo{path.Base(name), f, folder}, nil
}

// ReadDir implements [fs.ReadDirFS].
func (a *Approved) ReadDir(folder string) (list []fs.DirEntry, err error) {
	if info, err := a.Stat(folder); err != nil || !info.IsDir() {
		return nil, cmp.Or(err, error(&fs.PathError{Op: "readdir", Path: folder, Err: errors.New("not a folder")}))
	}
	prefix := ""
	if folder != "." {
		prefix = folder + "/"
	}
	i, _ := slices.BinarySearchFunc(a.files, prefix, func(f File, prefix string) int { return strings.Compare(f.Path, prefix) })
	seen := map[string]bool{}
	for _, f := range a.files[i:] {
		rest, ok := strings.CutPrefix(f.Path, prefix)
		if !ok {
			break
		}
		name, _, below := strings.Cut(rest, "/")
		if below {
			f = File{}
		}
		if !seen[name] {
			seen[name] = true
			list = append(list, fs.FileInfoToDirEntry(&approvedInfo{name, f, below}))
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// approvedInfo describes a file or folder of an entry.
type approvedInfo struct {
	name   string
	file   File
	folder bool
}

func (i *approvedInfo) Name() string     { return i.name }
func (i *approvedInfo) Size() int64      { return i.file.Size }
func (*approvedInfo) ModTime() time.Time { return time.Time{} }
func (i *approvedInfo) IsDir() bool      { return i.folder }
func (*approvedInfo) Sys() any           { return nil }
func (i *approvedInfo) Mode() fs.FileMode {
	switch {
	case i.folder:
		return fs.ModeDir | 0o555
	case i.file.Executable:
		return 0o555
	}
	return 0o444
}

// approvedFile is an open file.
type approvedFile struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *approvedFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (*approvedFile) Close() error                 { return nil }
