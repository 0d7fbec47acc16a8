package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha1" // as git's format wants
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/seed-009c0928/agent/core/atomicfile"
)

// Packs and their indexes have the formats of gitformat-pack(5), version 2,
// without deltas.

// packWriter writes a pack.
type packWriter struct {
	mu      sync.Mutex
	dir     string
	f       *os.File
	at      int64
	objects []packed
}

// packed is an object in a pack.
type packed struct {
	id  ID
	crc uint32
	at  uint32
}

func newPackWriter(dir string) (*packWriter, error) {
	f, err := os.CreateTemp(dir, "tmp_pack_*")
	if err != nil {
		return nil, err
	}
	w := &packWriter{dir: dir, f: f, at: 12}
	if _, err := f.Write(make([]byte, w.at)); err != nil {
		return nil, errors.Join(err, w.discard())
	}
	return w, nil
}

// add adds an object.
func (w *packWriter) add(k kind, id ID, data []byte) error {
	size := uint64(len(data))
	b := bytes.NewBuffer([]byte{byte(k)<<4 | byte(size&15)})
	for size >>= 4; size > 0; size >>= 7 {
		b.Bytes()[b.Len()-1] |= 0x80
		b.WriteByte(byte(size & 0x7f))
	}
	if err := deflate(b, data); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at+int64(b.Len()) > math.MaxInt32 {
		return errors.New("the snapshot is larger than 2 GiB")
	}
	if _, err := w.f.Write(b.Bytes()); err != nil {
		return err
	}
	w.objects = append(w.objects, packed{id, crc32.ChecksumIEEE(b.Bytes()), uint32(w.at)})
	w.at += int64(b.Len())
	return nil
}

// discard removes what was written.
func (w *packWriter) discard() error {
	return errors.Join(w.f.Close(), os.Remove(w.f.Name()))
}

// finish puts the pack and its index in place; nil if it is empty.
func (w *packWriter) finish() (*pack, error) {
	if len(w.objects) == 0 {
		return nil, w.discard()
	}
	sum, err := w.seal()
	if err != nil {
		return nil, errors.Join(err, w.discard())
	}
	if err := w.f.Close(); err != nil {
		return nil, errors.Join(err, os.Remove(w.f.Name()))
	}
	base := filepath.Join(w.dir, fmt.Sprintf("pack-%x", sum))
	if err := os.Rename(w.f.Name(), base+".pack"); err != nil {
		return nil, errors.Join(err, os.Remove(w.f.Name()))
	}
	p := &pack{path: base + ".pack", index: w.index(sum)}
	return p, atomicfile.Write(base+".idx", p.index, 0o600)
}

// seal writes the header with the number of objects, and the checksum.
func (w *packWriter) seal() ([]byte, error) {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(w.objects)))
	if _, err := w.f.WriteAt(head, 0); err != nil {
		return nil, err
	}
	if _, err := w.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	h := sha1.New()
	if _, err := io.Copy(h, w.f); err != nil {
		return nil, err
	}
	sum := h.Sum(nil)
	if _, err := w.f.Write(sum); err != nil {
		return nil, err
	}
	return sum, w.f.Sync()
}

// index returns the index of the pack with the given checksum.
func (w *packWriter) index(sum []byte) []byte {
	slices.SortFunc(w.objects, func(a, b packed) int { return bytes.Compare(a.id[:], b.id[:]) })
	out := []byte("\xfftOc\x00\x00\x00\x02")
	n := 0
	for first := range 256 {
		for n < len(w.objects) && int(w.objects[n].id[0]) <= first {
			n++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for _, o := range w.objects {
		out = append(out, o.id[:]...)
	}
	for _, o := range w.objects {
		out = binary.BigEndian.AppendUint32(out, o.crc)
	}
	for _, o := range w.objects {
		out = binary.BigEndian.AppendUint32(out, o.at)
	}
	out = append(out, sum...)
	total := sha1.Sum(out)
	return append(out, total[:]...)
}

// pack is a pack in place.
type pack struct {
	path  string
	index []byte
}

const (
	indexHead = 8 + 256*4
	indexItem = len(ID{}) + 4 + 4
	indexTail = 2 * sha1.Size
)

// openPack reads the index of a pack, whose checksum it verifies.
func openPack(path string) (*pack, error) {
	index, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &pack{path: strings.TrimSuffix(path, ".idx") + ".pack", index: index}
	if len(index) < indexHead+indexTail || !bytes.HasPrefix(index, []byte("\xfftOc\x00\x00\x00\x02")) ||
		len(index) != indexHead+p.len()*indexItem+indexTail || [sha1.Size]byte(index[len(index)-sha1.Size:]) != sha1.Sum(index[:len(index)-sha1.Size]) {
		return nil, fmt.Errorf("the index %s of a snapshot store is damaged", path)
	}
	return p, nil
}

func (p *pack) len() int { return int(binary.BigEndian.Uint32(p.index[indexHead-4:])) }

func (p *pack) id(i int) ID { return ID(p.index[indexHead+i*len(ID{}):]) }

// find returns the position of an object.
func (p *pack) find(id ID) (int64, bool) {
	i, ok := sort.Find(p.len(), func(i int) int {
		at := p.id(i)
		return bytes.Compare(id[:], at[:])
	})
	if !ok {
		return 0, false
	}
	return int64(binary.BigEndian.Uint32(p.index[indexHead+p.len()*(len(ID{})+4)+4*i:])), true
}

// read reads the object at a position.
func (p *pack) read(at int64) ([]byte, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	_, data, err := readObject(bufio.NewReader(f), math.MaxInt32)
	return data, err
}
