package snapshot

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1" // as git's format wants
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
)

// Export writes a pack with all that some snapshots hold and others do not, which
// [Workspace.Import] adds to another store.
func (w *Workspace) Export(to io.Writer, ids, without []string) error {
	o, err := openObjects(w.opts.Dir)
	if err != nil {
		return err
	}
	for _, id := range without {
		if err := o.skip(id); err != nil {
			return err
		}
	}
	p, err := newPackWriter(filepath.Join(o.dir, "objects", "pack"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err == nil {
			err = o.copySnapshot(p, id)
		}
	}
	if err == nil {
		_, err = p.seal()
	}
	if err == nil {
		_, err = p.f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = io.Copy(to, p.f)
	}
	return errors.Join(err, p.discard())
}

// skip makes a copy leave out what a snapshot holds.
func (o *objects) skip(id string) error {
	tree, _, err := o.commit(id)
	if err != nil {
		return err
	}
	name, err := parseID(id)
	if err != nil {
		return err
	}
	o.known[name] = true
	return o.skipTree(tree)
}

func (o *objects) skipTree(id ID) error {
	if o.known[id] {
		return nil
	}
	o.known[id] = true
	entries, err := o.entries(id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.kind() != typeDir {
			o.known[e.id] = true
		} else if err := o.skipTree(e.id); err != nil {
			return err
		}
	}
	return nil
}

// maxObject is the size up to which an object is imported that is no file, such as the
// list of a directory.
const maxObject = 64 << 20

// Import adds what [Workspace.Export] wrote, all of it or nothing. What is missing in it is
// noticed when it is restored.
func (w *Workspace) Import(from io.Reader) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	end, err := w.objects.bulk()
	if err != nil {
		return err
	}
	if err = w.objects.importPack(from, max(w.opts.MaxFileSize, maxObject)); err != nil {
		err = fmt.Errorf("snapshot store %s: import: %w", w.opts.Dir, err)
	}
	return errors.Join(err, end(err == nil))
}

// importPack reads a pack, whose objects may have up to so many bytes.
func (o *objects) importPack(from io.Reader, limit int64) error {
	t := &trailed{sum: sha1.New()}
	r := bufio.NewReader(io.TeeReader(from, t))
	head := make([]byte, 12)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:8]) != "PACK\x00\x00\x00\x02" {
		return errors.Join(errors.New("it is not a pack"), err)
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		k, data, err := readObject(r, limit)
		if err != nil {
			return err
		}
		if _, err := o.put(k, data); err != nil {
			return err
		}
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != sha1.Size || !bytes.Equal(t.sum.Sum(nil), t.tail) {
		return errors.Join(errDamaged, err)
	}
	return nil
}

// trailed sums up what is written, but for a checksum at its end.
type trailed struct {
	sum  hash.Hash
	tail []byte
}

// Write implements [io.Writer].
func (t *trailed) Write(p []byte) (int, error) {
	t.tail = append(t.tail, p...)
	if n := len(t.tail) - sha1.Size; n > 0 {
		t.sum.Write(t.tail[:n])
		t.tail = append(t.tail[:0], t.tail[n:]...)
	}
	return len(p), nil
}

var errDamaged = errors.New("the pack is damaged")

// readObject reads the next object of a pack, which may have up to so many bytes.
func readObject(r *bufio.Reader, limit int64) (kind, []byte, error) {
	b, err := r.ReadByte()
	k, size := kind(b>>4&7), uint64(b&15)
	for shift := 4; err == nil && b&0x80 != 0 && shift < 64; shift += 7 {
		b, err = r.ReadByte()
		size |= uint64(b&0x7f) << shift
	}
	switch {
	case err != nil:
		return 0, nil, errors.Join(errDamaged, err)
	case k < kindCommit || k > kindBlob:
		return 0, nil, fmt.Errorf("%w: it has an object of kind %d", errDamaged, k)
	case size > uint64(limit):
		return 0, nil, fmt.Errorf("an object has %d bytes, at most %d are possible", size, limit)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return 0, nil, errors.Join(errDamaged, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, int64(size)+1)) // to its checksum
	if err != nil || uint64(len(data)) != size {
		return 0, nil, errors.Join(errDamaged, err)
	}
	return k, data, nil
}
