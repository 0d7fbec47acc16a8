package rank

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// The usual constants of BM25: how soon more occurrences of a term stop to
// count, and how much the length of a field does. 0.75 would be usual for the
// latter; the texts here are short, and their length says less.
const (
	saturation = 1.2
	lengthBias = 0.5
)

// maxTerms is the number of different terms of a query that count.
const maxTerms = 256

// Field is a part of all documents of an index.
type Field struct {
	Name   string  // for the reader
	Weight float64 // what a term in it counts; 1 is ordinary, 0 or less counts nothing
}

// Index holds documents and finds them. It is safe for concurrent use.
type Index struct {
	fields []Field

	mu    sync.RWMutex
	slots map[string]int32 // of the documents' IDs
	docs  []document       // by slot
	free  []int32          // slots without a document
	terms map[string][]posting
	sizes []int // number of terms of all documents, by field
}

// document is what the index knows of a document.
type document struct {
	id    string
	sizes []int32 // number of terms, by field
	terms []string
}

// posting says how often a term occurs in a field of a document. Those of a
// term are in the order of slot and field.
type posting struct {
	slot  int32
	field int32
	count int32
}

func (p posting) compare(o posting) int {
	return cmp.Or(cmp.Compare(p.slot, o.slot), cmp.Compare(p.field, o.field))
}

// New returns an empty index of documents with these fields.
func New(fields ...Field) *Index {
	return &Index{
		fields: slices.Clone(fields), slots: map[string]int32{},
		terms: map[string][]posting{}, sizes: make([]int, len(fields)),
	}
}

// Len returns the number of documents.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.slots)
}

// Put adds a document, or replaces the one with its ID. The texts belong to the
// index's fields in their order; missing ones are empty, surplus ones are
// ignored.
func (x *Index) Put(id string, texts ...string) {
	texts = texts[:min(len(texts), len(x.fields))]
	tokens := make([][]string, len(texts))
	for field, text := range texts {
		tokens[field] = Tokens(text)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(id)
	slot := x.slot()
	doc := document{id: id, sizes: make([]int32, len(x.fields))}
	counts := map[string]int32{}
	for field, list := range tokens {
		doc.sizes[field] = int32(len(list))
		x.sizes[field] += len(list)
		clear(counts)
		for _, term := range list {
			counts[term]++
		}
		for term, count := range counts {
			x.terms[term] = insert(x.terms[term], posting{slot, int32(field), count})
			doc.terms = append(doc.terms, term)
		}
	}
	slices.Sort(doc.terms)
	doc.terms = slices.Compact(doc.terms)
	x.docs[slot], x.slots[id] = doc, slot
}

// insert keeps a list of postings in order; most of them come at its end.
func insert(list []posting, p posting) []posting {
	if len(list) == 0 || list[len(list)-1].compare(p) < 0 {
		return append(list, p)
	}
	at, _ := slices.BinarySearchFunc(list, p, posting.compare)
	return slices.Insert(list, at, p)
}

// slot returns one that is free.
func (x *Index) slot() int32 {
	if last := len(x.free) - 1; last >= 0 {
		slot := x.free[last]
		x.free = x.free[:last]
		return slot
	}
	x.docs = append(x.docs, document{})
	return int32(len(x.docs) - 1)
}

// Remove takes a document out and reports whether there was one with this ID.
func (x *Index) Remove(id string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.remove(id)
}

func (x *Index) remove(id string) bool {
	slot, ok := x.slots[id]
	if !ok {
		return false
	}
	doc := x.docs[slot]
	for field, size := range doc.sizes {
		x.sizes[field] -= int(size)
	}
	for _, term := range doc.terms {
		list := slices.DeleteFunc(x.terms[term], func(p posting) bool { return p.slot == slot })
		if len(list) == 0 {
			delete(x.terms, term)
			continue
		}
		x.terms[term] = list
	}
	x.docs[slot] = document{}
	x.free = append(x.free, slot)
	delete(x.slots, id)
	return true
}

// Hit is a document that was found.
type Hit struct {
	ID    string
	Score float64 // above 0; comparable within one search only
	Terms []Term  // of the query that the document has, in the query's order
}

// Term is what a term of the query has to do with a hit.
type Term struct {
	Text  string  // as Tokens makes it
	Score float64 // its part of the hit's score
}

// Search returns the k documents that fit a query best, the best first, and of
// equal ones the one with the smaller ID. Documents that share no term with the
// query are not found. A repeated term counts once; terms after the first 256
// different ones do not count.
func (x *Index) Search(query string, k int) []Hit {
	tokens := Tokens(query)
	terms := make([]Weighted, len(tokens))
	for i, t := range tokens {
		terms[i] = Weighted{t, 1}
	}
	return x.SearchTerms(terms, k)
}

// Weighted is a term of a query, as [Tokens] makes it, and what it counts.
type Weighted struct {
	Text   string
	Weight float64 // 1 is ordinary, 0 or less counts nothing
}

// SearchTerms is [Index.Search] for a query whose terms do not count the same,
// such as words that a caller has added. Of a repeated term the first counts.
func (x *Index) SearchTerms(query []Weighted, k int) []Hit {
	terms := distinct(query)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if k <= 0 || len(x.slots) == 0 {
		return nil
	}
	scores := make([]float64, len(x.docs))
	for _, term := range terms {
		x.score(x.terms[term.Text], func(slot int32, score float64) { scores[slot] += term.Weight * score })
	}
	best := x.best(scores, k)
	hits := make([]Hit, len(best))
	for i, slot := range best {
		hits[i] = Hit{ID: x.docs[slot].id, Score: scores[slot]}
	}
	x.explain(hits, best, terms)
	return hits
}

// explain says which terms the hits, whose slots are given, were found by.
func (x *Index) explain(hits []Hit, slots []int32, terms []Weighted) {
	for _, term := range terms {
		list := x.terms[term.Text]
		rarity := x.rarity(list)
		for i, slot := range slots {
			from, _ := slices.BinarySearchFunc(list, posting{slot: slot}, posting.compare)
			if score, _ := x.first(list[from:], slot, rarity); score > 0 {
				hits[i].Terms = append(hits[i].Terms, Term{term.Text, term.Weight * score})
			}
		}
	}
}

// distinct returns the different terms that count, in the order of their first
// occurrence.
func distinct(query []Weighted) []Weighted {
	var terms []Weighted
	seen := make(map[string]bool, min(len(query), maxTerms))
	for _, term := range query {
		if len(terms) == maxTerms {
			break
		}
		if term.Weight > 0 && !seen[term.Text] {
			seen[term.Text] = true
			terms = append(terms, term)
		}
	}
	return terms
}

// score calls yield for each document in which a term with these postings
// counts for something.
func (x *Index) score(list []posting, yield func(slot int32, score float64)) {
	rarity := x.rarity(list)
	for len(list) > 0 {
		slot := list[0].slot
		score, n := x.first(list, slot, rarity)
		if list = list[n:]; score > 0 {
			yield(slot, score)
		}
	}
}

// rarity returns what a term with these postings tells about a document.
func (x *Index) rarity(list []posting) float64 {
	containing := 0
	for i, p := range list {
		if i == 0 || p.slot != list[i-1].slot {
			containing++
		}
	}
	all, some := float64(len(x.slots)), float64(containing)
	return math.Log(1 + (all-some+0.5)/(some+0.5))
}

// first returns the score of a document, and how many postings at the begin of
// the list are about it.
func (x *Index) first(list []posting, slot int32, rarity float64) (score float64, n int) {
	weight := 0.0
	for n < len(list) && list[n].slot == slot {
		weight += x.weight(list[n])
		n++
	}
	return rarity * weight * (saturation + 1) / (saturation + weight), n
}

// weight returns what the occurrences of a term in a field count.
func (x *Index) weight(p posting) float64 {
	size := float64(x.docs[p.slot].sizes[p.field])
	mean := float64(x.sizes[p.field]) / float64(len(x.slots))
	return max(x.fields[p.field].Weight, 0) * float64(p.count) / (1 - lengthBias + lengthBias*size/mean)
}

// best returns the slots of the k best scores above 0.
func (x *Index) best(scores []float64, k int) []int32 {
	k = min(k, len(x.slots))
	better := func(a, b int32) int {
		if c := cmp.Compare(scores[b], scores[a]); c != 0 {
			return c
		}
		return cmp.Compare(x.docs[a].id, x.docs[b].id)
	}
	found := make([]int32, 0, k+1)
	for slot, score := range scores {
		if score <= 0 || len(found) == k && better(int32(slot), found[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, int32(slot), better)
		found = slices.Insert(found, at, int32(slot))
		found = found[:min(k, len(found))]
	}
	return found
}
