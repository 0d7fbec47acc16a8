package rank

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sort"
)

// frozen is the terms of an index in the form of AppendBinary. Postings are
// decoded when they are searched for.
type frozen struct {
	terms    []byte // the texts of all terms, in order
	ends     []byte // where each ends in terms, and the end of its postings
	postings []byte
}

// Sizes of the parts of a frozen index, in bytes.
const (
	headSize    = 12
	endSize     = 8
	postingSize = 8
	maxCount    = 1<<24 - 1
)

var order = binary.LittleEndian

// AppendBinary implements encoding.BinaryAppender. [Load] reads the result.
func (x *Index) AppendBinary(b []byte) ([]byte, error) {
	if x.frozen != nil || len(x.fields) > 255 {
		return nil, errors.New("rank: a loaded index, or one with more than 255 fields, cannot be written")
	}
	terms := slices.Sorted(maps.Keys(x.terms))
	for _, n := range []int{len(x.fields), len(x.docs), len(terms)} {
		b = order.AppendUint32(b, uint32(n))
	}
	for _, size := range x.sizes {
		b = order.AppendUint64(b, uint64(size))
	}
	for _, d := range x.docs {
		for _, size := range d.sizes {
			b = order.AppendUint32(b, uint32(size))
		}
		b = append(order.AppendUint32(b, uint32(len(d.id))), d.id...)
	}
	end, last := 0, 0
	for _, t := range terms {
		end, last = end+len(t), last+len(x.terms[t])
		b = order.AppendUint32(order.AppendUint32(b, uint32(end)), uint32(last))
	}
	for _, t := range terms {
		b = append(b, t...)
	}
	for _, t := range terms {
		for _, p := range x.terms[t] {
			b = order.AppendUint32(order.AppendUint32(b, uint32(p.doc)), uint32(p.field)<<24|uint32(min(p.count, maxCount)))
		}
	}
	return b, nil
}

var errDamaged = errors.New("rank: the index is damaged")

// Load returns an index that AppendBinary wrote, for the same fields. It keeps the
// data, and takes no more documents.
func Load(data []byte, fields ...Field) (*Index, error) {
	r := reader{data: data}
	head := r.next(headSize)
	if head == nil || int(order.Uint32(head)) != len(fields) {
		return nil, errDamaged
	}
	docs, terms := int(order.Uint32(head[4:])), int(order.Uint32(head[8:]))
	if docs > len(data) || terms > len(data) {
		return nil, errDamaged
	}
	x := &Index{fields: slices.Clone(fields), sizes: make([]int, len(fields)), docs: make([]document, docs), frozen: &frozen{}}
	for i := range x.sizes {
		if b := r.next(8); b != nil {
			x.sizes[i] = int(order.Uint64(b))
		}
	}
	sizes := make([]int32, docs*len(fields))
	for i := range x.docs {
		d := &x.docs[i]
		d.sizes, sizes = sizes[:len(fields):len(fields)], sizes[len(fields):]
		for j := range d.sizes {
			d.sizes[j] = int32(r.number())
		}
		d.id = string(r.next(r.number()))
	}
	f := x.frozen
	f.ends = r.next(terms * endSize)
	if r.failed {
		return nil, errDamaged
	}
	if terms > 0 {
		text, last := f.end(terms - 1)
		f.terms, f.postings = r.next(text), r.next(last*postingSize)
	}
	if r.failed || len(r.data) > 0 || !f.ordered(terms) {
		return nil, errDamaged
	}
	return x, nil
}

// reader cuts data into parts. After a failure it returns nothing.
type reader struct {
	data   []byte
	failed bool
}

func (r *reader) next(n int) []byte {
	if r.failed = r.failed || n < 0 || n > len(r.data); r.failed {
		return nil
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part
}

func (r *reader) number() int {
	b := r.next(4)
	if b == nil {
		return 0
	}
	return int(order.Uint32(b))
}

// end returns where the text of a term and its postings end.
func (f *frozen) end(term int) (text, postings int) {
	if term < 0 {
		return 0, 0
	}
	at := f.ends[term*endSize:]
	return int(order.Uint32(at)), int(order.Uint32(at[4:]))
}

// ordered reports whether all terms lie within the data.
func (f *frozen) ordered(terms int) bool {
	text, postings := 0, 0
	for i := range terms {
		t, p := f.end(i)
		if t < text || p < postings {
			return false
		}
		text, postings = t, p
	}
	return true
}

// of returns the postings of a term, without those that the index cannot have.
func (f *frozen) of(term string, docs, fields int) []posting {
	text := func(i int) []byte {
		from, _ := f.end(i - 1)
		to, _ := f.end(i)
		return f.terms[from:to]
	}
	n := len(f.ends) / endSize
	at := sort.Search(n, func(i int) bool { return string(text(i)) >= term })
	if at == n || string(text(at)) != term {
		return nil
	}
	_, from := f.end(at - 1)
	_, to := f.end(at)
	list := make([]posting, 0, to-from)
	for b := f.postings[from*postingSize : to*postingSize]; len(b) > 0; b = b[postingSize:] {
		rest := order.Uint32(b[4:])
		p := posting{int32(order.Uint32(b)), int32(rest >> 24), int32(rest & maxCount)}
		if p.doc >= 0 && int(p.doc) < docs && int(p.field) < fields {
			list = append(list, p)
		}
	}
	return list
}
