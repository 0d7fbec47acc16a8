package rank

import (
	"cmp"
	"math"
	"slices"
)

// The constants of BM25: how soon more occurrences of a term stop to count, and
// how much the length of a field does. 0.75 would be usual for the latter; for
// the short texts here, length matters less.
const (
	saturation = 1.2
	lengthBias = 0.5
)

// maxTerms is the number of distinct terms of a query that count.
const maxTerms = 256

// Field is a part of all documents of an index.
type Field struct {
	Name   string  // documents the field
	Weight float64 // of a term in it; 1 is normal, 0 or less ignores the field
}

// Index holds documents and searches them. It may be searched concurrently, but
// not while documents are added.
type Index struct {
	fields []Field
	docs   []document
	terms  map[string][]posting
	sizes  []int   // number of terms of all documents, by field
	frozen *frozen // instead of terms
}

// document is an indexed document.
type document struct {
	id    string
	sizes []int32 // number of terms, by field
}

// posting is how often a term occurs in a field of a document. Those of a term
// are ordered by document and field.
type posting struct {
	doc   int32 // its index in docs
	field int32
	count int32
}

// New returns an empty index of documents with these fields.
func New(fields ...Field) *Index {
	return &Index{fields: slices.Clone(fields), terms: map[string][]posting{}, sizes: make([]int, len(fields))}
}

// Put adds a document with a unique ID. The texts are those of the index's
// fields, in order; missing ones are empty, surplus ones are ignored.
func (x *Index) Put(id string, texts ...string) {
	doc := document{id: id, sizes: make([]int32, len(x.fields))}
	counts := map[string]int32{}
	for field, text := range texts[:min(len(texts), len(x.fields))] {
		tokens := Tokens(text)
		doc.sizes[field] = int32(len(tokens))
		x.sizes[field] += len(tokens)
		clear(counts)
		for _, term := range tokens {
			counts[term]++
		}
		for term, count := range counts {
			x.terms[term] = append(x.terms[term], posting{int32(len(x.docs)), int32(field), count})
		}
	}
	x.docs = append(x.docs, doc)
}

// Hit is a document that was found.
type Hit struct {
	ID    string
	Score float64 // above 0; comparable within one search only
	Terms []Term  // of the query that the document has, in the query's order
}

// Term is a term of the query that matched a hit.
type Term struct {
	Text  string  // as Tokens makes it
	Score float64 // its part of the hit's score
}

// Search returns the k documents that match a query best, the best first, and of
// equal ones the one with the smaller ID. Documents that share no term with the
// query are not found. A repeated term counts once; only the first 256 distinct
// terms count.
func (x *Index) Search(query string, k int) []Hit {
	tokens := Tokens(query)
	terms := make([]Weighted, len(tokens))
	for i, t := range tokens {
		terms[i] = Weighted{t, 1}
	}
	return x.SearchTerms(terms, k)
}

// Weighted is a term of a query, as [Tokens] makes it, and its weight.
type Weighted struct {
	Text   string
	Weight float64 // 1 is normal, a term of 0 or less is ignored
}

// SearchTerms is [Index.Search] for a query whose terms have different weights,
// such as words that a caller has added. Of a repeated term the first counts.
func (x *Index) SearchTerms(query []Weighted, k int) []Hit {
	terms := distinct(query)
	if k <= 0 || len(x.docs) == 0 {
		return nil
	}
	scores := make([]float64, len(x.docs))
	for _, term := range terms {
		x.score(x.postings(term.Text), func(doc int32, score float64) { scores[doc] += term.Weight * score })
	}
	best := x.best(scores, k)
	hits := make([]Hit, len(best))
	for i, doc := range best {
		hits[i] = Hit{ID: x.docs[doc].id, Score: scores[doc]}
	}
	x.explain(hits, best, terms)
	return hits
}

// postings returns the postings of a term.
func (x *Index) postings(term string) []posting {
	if x.frozen != nil {
		return x.frozen.of(term, len(x.docs), len(x.fields))
	}
	return x.terms[term]
}

// explain says which terms the hits, whose places are given, were found by.
func (x *Index) explain(hits []Hit, docs []int32, terms []Weighted) {
	for _, term := range terms {
		list := x.postings(term.Text)
		rarity := x.rarity(list)
		for i, doc := range docs {
			from, _ := slices.BinarySearchFunc(list, doc, func(p posting, doc int32) int { return cmp.Compare(p.doc, doc) })
			if score, _ := x.first(list[from:], doc, rarity); score > 0 {
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

// score calls yield for each document in which a term with these postings has a
// score.
func (x *Index) score(list []posting, yield func(doc int32, score float64)) {
	rarity := x.rarity(list)
	for len(list) > 0 {
		doc := list[0].doc
		score, n := x.first(list, doc, rarity)
		if list = list[n:]; score > 0 {
			yield(doc, score)
		}
	}
}

// rarity returns the inverse document frequency of a term with these postings.
func (x *Index) rarity(list []posting) float64 {
	containing := 0
	for i, p := range list {
		if i == 0 || p.doc != list[i-1].doc {
			containing++
		}
	}
	all, some := float64(len(x.docs)), float64(containing)
	return math.Log(1 + (all-some+0.5)/(some+0.5))
}

// first returns the score of a document, and how many postings at the beginning
// of the list are its.
func (x *Index) first(list []posting, doc int32, rarity float64) (score float64, n int) {
	weight := 0.0
	for n < len(list) && list[n].doc == doc {
		weight += x.weight(list[n])
		n++
	}
	return rarity * weight * (saturation + 1) / (saturation + weight), n
}

// weight returns the weight of the occurrences of a term in a field.
func (x *Index) weight(p posting) float64 {
	size := float64(x.docs[p.doc].sizes[p.field])
	mean := float64(x.sizes[p.field]) / float64(len(x.docs))
	return max(x.fields[p.field].Weight, 0) * float64(p.count) / (1 - lengthBias + lengthBias*size/mean)
}

// best returns the documents with the k best scores above 0.
func (x *Index) best(scores []float64, k int) []int32 {
	k = min(k, len(x.docs))
	better := func(a, b int32) int {
		if c := cmp.Compare(scores[b], scores[a]); c != 0 {
			return c
		}
		return cmp.Compare(x.docs[a].id, x.docs[b].id)
	}
	found := make([]int32, 0, k+1)
	for doc, score := range scores {
		if score <= 0 || len(found) == k && better(int32(doc), found[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(found, int32(doc), better)
		found = slices.Insert(found, at, int32(doc))
		found = found[:min(k, len(found))]
	}
	return found
}

// Len returns the number of documents.
func (x *Index) Len() int { return len(x.docs) }
