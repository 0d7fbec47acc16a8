package snapshot

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
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

// Import adds what [Workspace.Export] wrote. What is missing or damaged is noticed when it
// is restored.
func (w *Workspace) Import(from io.Reader) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	end, err := w.objects.bulk()
	if err != nil {
		return err
	}
	if err = w.objects.readPack(bufio.NewReader(from)); err != nil {
		err = fmt.Errorf("snapshot store %s: import: %w", w.opts.Dir, err)
	}
	return errors.Join(err, end(err == nil))
}

func (o *objects) readPack(r *bufio.Reader) error {
	head := make([]byte, 12)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	if string(head[:8]) != "PACK\x00\x00\x00\x02" {
		return errors.New("it is not a pack")
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		k, data, err := readObject(r)
		if err != nil {
			return err
		}
		if _, err := o.put(k, data); err != nil {
			return err
		}
	}
	return nil
}

// readObject reads the next object of a pack.
func readObject(r *bufio.Reader) (kind, []byte, error) {
	b, err := r.ReadByte()
	k, size := kind(b>>4&7), uint64(b&15)
	for shift := 4; err == nil && b&0x80 != 0 && shift < 64; shift += 7 {
		b, err = r.ReadByte()
		size |= uint64(b&0x7f) << shift
	}
	if err != nil || size > math.MaxInt32 || k < kindCommit || k > kindBlob {
		return 0, nil, errors.Join(errors.New("the pack is damaged"), err)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return 0, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(z, int64(size)+1)) // to its checksum
	if err == nil && uint64(len(data)) != size {
		err = errors.New("the pack is damaged")
	}
	return k, data, err
}
