package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// indexName is the file with the index in a store. It begins with the version,
// and ends with a checksum.
const (
	indexName    = "agent-index"
	indexVersion = "agent index 2\n"
)

func newIndex() *node { return &node{isDir: true, dirty: true} }

// loadIndex reads the index that the previous process wrote. Without a valid one
// the next scan reads everything.
func (w *Workspace) loadIndex() *node {
	if w.opts.NoIndex {
		return newIndex()
	}
	data, err := os.ReadFile(filepath.Join(w.opts.Dir, indexName))
	if err != nil || len(data) < len(indexVersion)+4 {
		return newIndex()
	}
	body, sum := data[:len(data)-4], data[len(data)-4:]
	rest, ok := bytes.CutPrefix(body, []byte(indexVersion))
	if !ok || crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(sum) {
		return newIndex()
	}
	d := &decoder{data: rest}
	if d.text() != w.opts.Root || d.text() != w.rulesText() {
		return newIndex()
	}
	root := d.node()
	if d.failed || len(d.data) > 0 {
		return newIndex()
	}
	return root
}

// rulesText identifies the rules from outside of the workspace.
func (w *Workspace) rulesText() string {
	var b bytes.Buffer
	for _, l := range w.opts.levels {
		b.WriteString(l.Below + "\n")
		for _, r := range l.Rules {
			fmt.Fprintf(&b, "%+v\n", r)
		}
	}
	return b.String()
}

// saveIndex writes the index, unless nothing was scanned.
func (w *Workspace) saveIndex() error {
	if w.last.ID == "" || w.opts.NoIndex {
		return nil
	}
	out := []byte(indexVersion)
	out = appendText(out, w.opts.Root)
	out = appendText(out, w.rulesText())
	out = w.index.encode(out)
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	err := replace(filepath.Join(w.opts.Dir, indexName), out)
	if errors.Is(err, fs.ErrNotExist) { // the store was removed
		return nil
	}
	return err
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// encode appends a node and those below. The rules of a .gitignore are read
// again.
func (n *node) encode(out []byte) []byte {
	out = appendText(out, n.name)
	out = appendText(out, n.left)
	flags := byte(0)
	for i, set := range []bool{n.racy || n.ruled != (stamp{}), n.ignored, n.isDir, n.dirty} {
		if set {
			flags |= 1 << i
		}
	}
	out = append(out, flags)
	out = binary.AppendUvarint(out, uint64(n.stamp.mode))
	for _, v := range []int64{n.stamp.size, n.stamp.mtime, n.stamp.ctime} {
		out = binary.AppendVarint(out, v)
	}
	out = binary.AppendUvarint(out, n.stamp.inode)
	out = binary.AppendUvarint(out, n.stamp.links)
	out = append(out, n.id[:]...)
	out = binary.AppendUvarint(out, uint64(n.written.mode))
	out = append(out, n.written.id[:]...)
	out = binary.AppendUvarint(out, uint64(len(n.kids)))
	for _, kid := range n.kids {
		out = kid.encode(out)
	}
	return out
}

// decoder reads an index.
type decoder struct {
	data   []byte
	failed bool
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.data)) {
		d.failed, n = true, 0
	}
	out := d.data[:n]
	d.data = d.data[n:]
	return out
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	d.failed = d.failed || n <= 0
	d.take(uint64(max(n, 0)))
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.data)
	d.failed = d.failed || n <= 0
	d.take(uint64(max(n, 0)))
	return v
}

func (d *decoder) text() string { return string(d.take(d.uvarint())) }

func (d *decoder) id() (id ID) {
	copy(id[:], d.take(uint64(len(id))))
	return id
}

func (d *decoder) node() *node {
	n := &node{name: d.text(), left: d.text()}
	flags := append(slices.Clone(d.take(1)), 0)[0]
	n.racy, n.ignored, n.isDir, n.dirty = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	n.stamp.mode = uint32(d.uvarint())
	n.stamp.size, n.stamp.mtime, n.stamp.ctime = d.varint(), d.varint(), d.varint()
	n.stamp.inode, n.stamp.links = d.uvarint(), d.uvarint()
	n.id = d.id()
	n.written.mode = uint32(d.uvarint())
	n.written.id = d.id()
	for count := d.uvarint(); count > 0 && !d.failed; count-- {
		n.kids = append(n.kids, d.node())
	}
	return n
}
