package snapshot

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" // git's objects are named by it
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// ID names a git object.
type ID [sha1.Size]byte

// String returns the ID in hex.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// parseID parses an ID in hex.
func parseID(text string) (ID, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(ID{}) {
		return ID{}, fmt.Errorf("%q is not the id of a snapshot: expected %d hexadecimal digits", text, 2*len(ID{}))
	}
	return ID(raw), nil
}

// kind is the type of an object, numbered as in packs.
type kind byte

const (
	kindCommit kind = 1
	kindTree   kind = 2
	kindBlob   kind = 3
)

func (k kind) String() string { return [...]string{"", "commit", "tree", "blob"}[k] }

// objects is a bare git repository. It may be used by several goroutines, and by
// several processes at once.
type objects struct {
	dir string

	mu    sync.Mutex
	known map[ID]bool // written or seen by this process
	packs []*pack
	open  *packWriter // set while objects go into a pack
}

// openObjects opens the repository in dir, or creates it.
func openObjects(dir string) (*objects, error) {
	for _, sub := range []string{"objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		"HEAD":   "ref: refs/heads/none\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n",
	} {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.Size() == int64(len(text)) {
			continue
		}
		if err := replace(path, []byte(text)); err != nil {
			return nil, err
		}
	}
	o := &objects{dir: dir, known: map[ID]bool{}}
	return o, o.loadPacks()
}

// loadPacks finds the packs of the repository.
func (o *objects) loadPacks() error {
	names, err := filepath.Glob(filepath.Join(o.dir, "objects", "pack", "*.idx"))
	if err != nil {
		return err
	}
	o.packs = nil
	for _, name := range names {
		p, err := openPack(name)
		if err != nil {
			return err
		}
		o.packs = append(o.packs, p)
	}
	return nil
}

// identify returns the header and the name of an object.
func identify(k kind, data []byte) (head []byte, id ID) {
	head = fmt.Appendf(nil, "%s %d\x00", k, len(data))
	h := sha1.New()
	h.Write(head)
	h.Write(data)
	return head, ID(h.Sum(nil))
}

// put writes an object, unless it is there.
func (o *objects) put(k kind, data []byte) (ID, error) {
	head, id := identify(k, data)
	if o.claim(id) {
		return id, nil
	}
	err := o.write(k, id, head, data)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.known, id)
	}
	return id, err
}

func (o *objects) write(k kind, id ID, head, data []byte) error {
	if o.open != nil {
		return o.open.add(k, id, data)
	}
	path := o.loose(id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeLoose(path, head, data)
}

// claim reports whether an object is in the repository. If it is not, the caller
// writes it.
func (o *objects) claim(id ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known[id] {
		return true
	}
	o.known[id] = true
	return o.stored(id)
}

// stored reports whether an object is in a file of the repository.
func (o *objects) stored(id ID) bool {
	for _, p := range o.packs {
		if _, ok := p.find(id); ok {
			return true
		}
	}
	info, err := os.Lstat(o.loose(id))
	return err == nil && info.Size() > 0
}

func (o *objects) loose(id ID) string {
	name := id.String()
	return filepath.Join(o.dir, "objects", name[:2], name[2:])
}

var deflaters = sync.Pool{New: func() any {
	w, _ := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed) // the level is valid
	return w
}}

// incompressible is the size up to which data is stored as it is: a file has
// whole blocks of the disk, and a compressor more than 1 MB of tables.
const incompressible = 1 << 10

func deflate(to io.Writer, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size <= incompressible {
		return store(to, bytes.Join(parts, nil))
	}
	w := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(w)
	w.Reset(to)
	for _, p := range parts {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return w.Close()
}

// store writes a zlib stream of one stored block: RFC 1950 and 1951.
func store(to io.Writer, data []byte) error {
	out := []byte{0x78, 0x01, 1} // the last block
	out = binary.LittleEndian.AppendUint16(out, uint16(len(data)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(data)))
	out = append(out, data...)
	_, err := to.Write(binary.BigEndian.AppendUint32(out, adler32.Checksum(data)))
	return err
}

// writeLoose writes an object's file: a read compares the content with the name.
func writeLoose(path string, parts ...[]byte) error {
	var b bytes.Buffer
	if err := deflate(&b, parts...); err != nil {
		return err
	}
	return replace(path, b.Bytes())
}

// replace writes a file in one step, without waiting for the disk: it is for what
// is checked when it is read.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "tmp_obj_*") // git prune removes these names
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// get reads an object and compares it with its name.
func (o *objects) get(k kind, id ID) ([]byte, error) {
	data, err := o.read(k, id)
	if err != nil {
		return nil, fmt.Errorf("snapshot store %s: %s %s: %w", o.dir, k, id, err)
	}
	if _, got := identify(k, data); got != id {
		return nil, fmt.Errorf("snapshot store %s: %s %s is damaged", o.dir, k, id)
	}
	return data, nil
}

func (o *objects) read(k kind, id ID) ([]byte, error) {
	f, err := os.Open(o.loose(id))
	if errors.Is(err, fs.ErrNotExist) {
		return o.readPacked(id)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReader(z)
	head, err := r.ReadString(0)
	if err != nil {
		return nil, err
	}
	var size int64
	if n, found := bytes.CutPrefix([]byte(head[:len(head)-1]), []byte(k.String()+" ")); !found {
		return nil, fmt.Errorf("it is a %q", head)
	} else if size, err = strconv.ParseInt(string(n), 10, 64); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, size+1))
}

// readPacked reads an object from a pack. Another process may have written it
// since the packs were loaded.
func (o *objects) readPacked(id ID) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range 2 {
		for _, p := range o.packs {
			if at, ok := p.find(id); ok {
				return p.read(at)
			}
		}
		if err := o.loadPacks(); err != nil {
			return nil, err
		}
	}
	return nil, fs.ErrNotExist
}

// bulk makes the following objects go into one pack, until the returned function
// is called.
func (o *objects) bulk() (end func(keep bool) error, err error) {
	w, err := newPackWriter(filepath.Join(o.dir, "objects", "pack"))
	if err != nil {
		return nil, err
	}
	o.open = w
	return func(keep bool) error {
		o.open = nil
		if !keep {
			clear(o.known)
			return w.discard()
		}
		p, err := w.finish()
		if err != nil {
			clear(o.known)
			return err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if p != nil {
			o.packs = append(o.packs, p)
		}
		return nil
	}, nil
}
