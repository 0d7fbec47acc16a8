package graph

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// storeMagic begins each store. Another version is another file.
const storeMagic = "agent graph " + version + "\n"

// store keeps the facts of files in one file of records that is appended to; the
// last record of a path counts. Each has its length and a checksum, so that what
// an ended process wrote in part is ignored.
type store struct {
	name    string
	written int // bytes in the file
	live    int // bytes of the records that count, when it was last written as a whole
}

// openStore returns the store of a workspace in a directory, which it creates.
func openStore(dir, root string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(root))
	return &store{name: filepath.Join(dir, filepath.Base(root)+"-"+hex.EncodeToString(sum[:6])+".graph")}, nil
}

// load returns the facts by path; none if the file is missing or of another version.
func (s *store) load() map[string]*fileFacts {
	files := map[string]*fileFacts{}
	data, err := os.ReadFile(s.name)
	if err != nil || !bytes.HasPrefix(data, []byte(storeMagic)) {
		return files
	}
	records, whole := split(data[len(storeMagic):])
	for _, f := range decodeAll(records) {
		if f == nil {
			whole = false
			break
		}
		if f.language == "" {
			delete(files, f.path)
		} else {
			files[f.path] = f
		}
	}
	s.written = len(data)
	s.live = s.written
	if !whole {
		s.live = 0 // rewrite
	}
	return files
}

// split returns the records of a store up to the first that is not complete, and whether
// that is all.
func split(data []byte) (records [][]byte, whole bool) {
	for len(data) >= 8 {
		n, sum := int(binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint32(data[4:])
		if n > len(data)-8 || crc32.ChecksumIEEE(data[8:8+n]) != sum {
			break
		}
		records, data = append(records, data[8:8+n]), data[8+n:]
	}
	return records, len(data) == 0
}

// decodeAll decodes records side by side; what cannot be decoded is nil.
func decodeAll(records [][]byte) []*fileFacts {
	all := make([]*fileFacts, len(records))
	var wg sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for worker := range n {
		wg.Go(func() {
			for i := worker; i < len(records); i += n {
				if f, ok := decodeFacts(records[i]); ok {
					all[i] = f
				}
			}
		})
	}
	wg.Wait()
	return all
}

// save appends what changed, or writes everything if most of the file is out of date.
func (s *store) save(changed, all map[string]*fileFacts) error {
	if s.written == 0 || s.live == 0 || s.written > 2*s.live+1<<20 {
		return s.rewrite(all)
	}
	var b []byte
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		f := changed[path]
		if f == nil {
			f = &fileFacts{path: path}
		}
		b = appendRecord(b, f)
	}
	f, err := os.OpenFile(s.name, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return s.rewrite(all)
	}
	_, err = f.Write(b)
	s.written += len(b)
	return errors.Join(err, f.Close())
}

func (s *store) rewrite(all map[string]*fileFacts) error {
	b := []byte(storeMagic)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		b = appendRecord(b, all[path])
	}
	tmp, err := os.CreateTemp(filepath.Dir(s.name), ".graph-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), s.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	s.written, s.live = len(b), len(b)
	return nil
}

func appendRecord(b []byte, f *fileFacts) []byte {
	start := len(b)
	b = append(b, make([]byte, 8)...)
	e := encoder{b: b, strings: map[string]uint64{}}
	e.facts(f)
	b = e.b
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-8))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.ChecksumIEEE(b[start+8:]))
	return b
}

// encoder writes values in order; a text that was written before is its number.
type encoder struct {
	b       []byte
	strings map[string]uint64
}

func (e *encoder) num(n int) { e.b = binary.AppendVarint(e.b, int64(n)) }

func (e *encoder) str(s string) {
	if i, ok := e.strings[s]; ok {
		e.b = binary.AppendUvarint(e.b, i+1)
		return
	}
	e.strings[s] = uint64(len(e.strings))
	e.b = binary.AppendUvarint(binary.AppendUvarint(e.b, 0), uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) list(list []string) {
	e.num(len(list))
	for _, s := range list {
		e.str(s)
	}
}

func (e *encoder) bool(b bool) {
	if b {
		e.num(1)
	} else {
		e.num(0)
	}
}

func (e *encoder) facts(f *fileFacts) {
	e.str(f.path)
	e.str(f.language)
	e.str(f.hash)
	e.num(int(f.size))
	modified := 0
	if !f.modified.IsZero() {
		modified = int(f.modified.UnixNano())
	}
	e.num(modified)
	e.num(len(f.nodes))
	for _, n := range f.nodes {
		e.str(n.ID)
		e.str(string(n.Kind))
		e.str(n.File)
		e.num(n.Line)
		e.num(n.EndLine)
		e.str(n.Signature)
		e.str(n.Doc)
		e.str(n.Hash)
	}
	e.num(len(f.facts))
	for _, x := range f.facts {
		e.str(x.from)
		e.str(x.to)
		e.num(int(x.line))
		e.str(string(x.kind))
		e.str(string(x.confidence))
		e.str(x.rule)
	}
	e.num(len(f.warnings))
	for _, w := range f.warnings {
		e.str(w.Code)
		e.num(w.Line)
		e.str(w.Text)
	}
	e.bool(f.golang != nil)
	if f.golang != nil {
		f.golang.encode(e)
	}
	e.bool(f.outline != nil)
	if f.outline != nil {
		f.outline.encode(e)
		e.str(f.resolved)
	}
}

func (f *goFile) encode(e *encoder) {
	e.str(f.Package)
	e.list(f.Imports)
	e.str(f.Decls)
	e.str(f.Unit)
	e.num(len(f.Methods))
	for _, t := range f.Methods {
		e.str(t.ID)
		e.bool(t.Interface)
		e.num(len(t.Methods))
		for _, m := range t.Methods {
			e.str(m.Key)
			e.str(m.Target)
		}
	}
}

// decoder reads what an encoder wrote; bad is set if it cannot. The texts that it returns
// are parts of one, so that each need not be allocated.
type decoder struct {
	b       []byte // the rest
	text    string // all
	strings []string
	bad     bool
}

func (d *decoder) num() int {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return int(n)
}

// count reads the length of a list; each element takes a byte at least.
func (d *decoder) count() int {
	n := d.num()
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return 0
	}
	return n
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) str() string {
	i := d.uint()
	if i > 0 {
		if i > uint64(len(d.strings)) {
			d.bad = true
			return ""
		}
		return d.strings[i-1]
	}
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	start := len(d.text) - len(d.b)
	s := d.text[start : start+int(n)]
	d.b = d.b[n:]
	d.strings = append(d.strings, s)
	return s
}

func (d *decoder) list() []string {
	var list []string
	for range d.count() {
		list = append(list, d.str())
	}
	return list
}

func (d *decoder) bool() bool { return d.num() != 0 }

func decodeFacts(b []byte) (*fileFacts, bool) {
	d := &decoder{b: b, text: string(b)}
	f := &fileFacts{path: d.str(), language: d.str(), hash: d.str(), size: int64(d.num())}
	if n := d.num(); n != 0 {
		f.modified = time.Unix(0, int64(n))
	}
	f.nodes = make([]Node, 0, d.count())
	for range cap(f.nodes) {
		f.nodes = append(f.nodes, Node{d.str(), Kind(d.str()), d.str(), d.num(), d.num(), d.str(), d.str(), d.str()})
	}
	f.facts = make([]fact, 0, d.count())
	for range cap(f.facts) {
		f.facts = append(f.facts, fact{d.str(), d.str(), int32(d.num()), Relation(d.str()), Confidence(d.str()), d.str()})
	}
	for range d.count() {
		f.warnings = append(f.warnings, Warning{d.str(), f.path, d.num(), d.str()})
	}
	if d.bool() {
		f.golang = &goFile{Package: d.str(), Imports: d.list(), Decls: d.str(), Unit: d.str()}
		for range d.count() {
			t := goType{ID: d.str(), Interface: d.bool()}
			for range d.count() {
				t.Methods = append(t.Methods, goMethod{d.str(), d.str()})
			}
			f.golang.Methods = append(f.golang.Methods, t)
		}
	}
	if d.bool() {
		f.outline, f.resolved = decodeOutline(d), d.str()
	}
	return f, !d.bad
}
