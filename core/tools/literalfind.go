package tools

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// literalFinder finds literals in one text after another. It is not safe for
// concurrent use.
type literalFinder struct {
	one    []pairFinder // of each text, if they are few
	places []int        // where the next one of each is
	many   *manyFinder  // else
	ascii  bool         // they match only ASCII
	wide   bool         // they match more than these texts; see foldsWide
}

// maxPairs is up to how many texts are faster to find one by one.
const maxPairs = 3

func newLiteralFinder(l literals) *literalFinder {
	f := &literalFinder{wide: l.foldsWide()}
	f.ascii = l.ascii() && !f.wide
	if len(l.texts) > maxPairs {
		f.many = newManyFinder(l)
		return f
	}
	f.places = make([]int, len(l.texts))
	for _, t := range l.texts {
		f.one = append(f.one, newPairFinder(t, l.fold))
	}
	return f
}

// reset prepares for another text.
func (f *literalFinder) reset() {
	for i := range f.places {
		f.places[i], f.one[i].pairs = -1, false
	}
}

// next returns the first position of any literal in text from pos, or -1.
// Positions must be asked for in ascending order: each literal is searched for
// over the text once.
func (f *literalFinder) next(text []byte, pos int) int {
	first := len(text)
	if f.many != nil {
		first = f.many.find(text, pos)
	}
	for i := range f.one {
		if f.places[i] < pos {
			f.places[i] = f.one[i].find(text, pos)
		}
		first = min(first, f.places[i])
	}
	if first == len(text) {
		return -1
	}
	return first
}

// foldBit is what the cases of a letter differ in.
const foldBit = 'a' - 'A'

// pairFinder finds a text: first the two of its bytes that are the rarest in
// texts, at their distance, many positions at once.
type pairFinder struct {
	text string // in lower case if fold
	fold bool   // ignore the case of ASCII letters
	a, b int    // where these bytes are in the text; a < b, unless it has only one
	rare int    // the rarer one
	pair bytePair
	// pairs says that in this text the rarer one is common.
	pairs bool
}

// bytePair is two bytes, each eight times; lowerA and lowerB set foldBit in each
// byte of what is compared with them.
type bytePair struct{ a, b, lowerA, lowerB uint64 }

const (
	eachByte = 0x0101010101010101
	highBits = 0x8080808080808080
)

func newPairFinder(text string, fold bool) pairFinder {
	order := make([]int, len(text))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return commonness(text[i]) - commonness(text[j]) })
	f := pairFinder{text: text, fold: fold, rare: order[0]}
	f.a, f.b = order[0], order[min(1, len(order)-1)]
	if f.a > f.b {
		f.a, f.b = f.b, f.a
	}
	f.pair.a, f.pair.lowerA = f.word(f.a)
	f.pair.b, f.pair.lowerB = f.word(f.b)
	return f
}

func (f *pairFinder) word(at int) (word, lower uint64) {
	c := f.text[at]
	if f.fold && 'a' <= c && c <= 'z' {
		lower = foldBit * eachByte
	}
	return uint64(c) * eachByte, lower
}

// find returns the first position of the text in another from pos, or the other's
// length.
func (f *pairFinder) find(text []byte, pos int) int {
	if f.fold || f.pairs {
		return f.findPair(text, pos)
	}
	// As long as the rarest byte is rare, it is faster to look only for that.
	const gap = 128 // bytes between two of them, at least
	for at, tries := pos+f.rare, 0; at < len(text); tries++ {
		if tries*gap > at-pos+8*gap {
			f.pairs = true
			return f.findPair(text, at-f.rare)
		}
		n := bytes.IndexByte(text[at:], f.text[f.rare])
		if n < 0 {
			break
		}
		if start := at + n - f.rare; f.is(text, start) {
			return start
		}
		at += n + 1
	}
	return len(text)
}

// findPair is find, by pairs.
func (f *pairFinder) findPair(text []byte, pos int) int {
	for pos+f.b < len(text) {
		x, y := text[pos+f.a:], text[pos+f.b:]
		n := f.pair.skip(x, y)
		if pos += n; len(y) < n+pairStep {
			break
		}
		for at := n; at < n+pairStep; at += 8 {
			for found := f.pair.in(x[at:], y[at:]); found != 0; found &= found - 1 {
				if i := pos + at - n + bits.TrailingZeros64(found)/8; f.is(text, i) {
					return i
				}
			}
		}
		pos += pairStep
	}
	for ; pos < len(text); pos++ {
		if f.is(text, pos) {
			return pos
		}
	}
	return len(text)
}

// pairStep is how many positions skip looks at together.
const pairStep = 32

// skip returns where the pair may begin in x and continue in y, of which the second
// is the shorter one: that is less than pairStep positions further, or there are no
// more as many.
func (p bytePair) skip(x, y []byte) int {
	n := 0
	for x = x[:len(y)]; n <= len(y)-pairStep; n += pairStep {
		x, y := x[n:n+pairStep:len(x)], y[n:n+pairStep:len(y)]
		if p.in(x, y)|p.in(x[8:], y[8:])|p.in(x[16:], y[16:])|p.in(x[24:], y[24:]) != 0 {
			break
		}
	}
	return n
}

// in returns the high bits of the first eight positions where the pair is; and those
// of others, but only after one where it is.
func (p *bytePair) in(x, y []byte) uint64 {
	le := binary.LittleEndian
	return zeros(((le.Uint64(x) | p.lowerA) ^ p.a) | ((le.Uint64(y) | p.lowerB) ^ p.b))
}

// zeros returns the high bits of the bytes of a word that are zero; those of
// others, too, but only above one that is.
func zeros(word uint64) uint64 { return (word - eachByte) &^ word & highBits }

// is reports whether the text is at a position of another.
func (f *pairFinder) is(text []byte, at int) bool {
	return literalAt(text[at:], f.text, f.fold)
}

// literalAt reports whether a text begins with a literal; it is in lower case if
// fold.
func literalAt(text []byte, literal string, fold bool) bool {
	if len(text) < len(literal) {
		return false
	}
	if !fold {
		return string(text[:len(literal)]) == literal
	}
	for i := range literal {
		if lowerByte(text[i]) != literal[i] {
			return false
		}
	}
	return true
}

// rarity has the characters from the rarest to the most common, in programs and
// texts.
const rarity = `^$@?Z~JQ%!&+<Yz>jWqKHV7;G][XUB98}{5F\6#M4D3LP=*N|O2RCIAvwkT1/E-'b"y:S` + "`" + `)(xg.m0uhfp_,cdloiranste `

// commonness ranks bytes by their frequency. The last bytes of characters beyond
// ASCII differ more than the first ones.
func commonness(c byte) int {
	switch i := strings.IndexByte(rarity, c); {
	case i >= 0:
		return i
	case c >= 0xC0:
		return len(rarity)
	case c >= utf8.RuneSelf:
		return len(rarity) / 2
	case c == '\t':
		return len(rarity)
	}
	return 0
}

// manyFinder finds many texts at once. Each is in one of eight groups, of which a
// byte has one bit each: for each of the first bytes of its texts, the table says
// to which groups it belongs. So it takes a look-up a byte to find where a text of
// a group may be; only there they are compared. The method is that of the Teddy of
// Hyperscan, without its instructions.
type manyFinder struct {
	groups [8][]string
	fold   bool
	size   int // bytes that the table knows of each text, up to 4
	// table has, inverted, the groups of a byte as the first one of a text in the
	// lowest byte, as the second one in the next.
	table [256]uint64
}

func newManyFinder(l literals) *manyFinder {
	f := &manyFinder{fold: l.fold, size: min(l.shortest(), 4)}
	texts := slices.Compact(slices.Sorted(slices.Values(l.texts))) // neighbours begin alike
	for c := range f.table {
		f.table[c] = ^uint64(0) >> (64 - 8*f.size)
	}
	for i, t := range texts {
		group := i * len(f.groups) / len(texts)
		f.groups[group] = append(f.groups[group], t)
		for at := range f.size {
			bit := uint64(1) << (8*at + group)
			f.table[t[at]] &^= bit
			if f.fold && 'a' <= t[at] && t[at] <= 'z' {
				f.table[t[at]-foldBit] &^= bit
			}
		}
	}
	return f
}

// find is that of pairFinder.
func (f *manyFinder) find(text []byte, pos int) int {
	// After a byte, byte n of the state has the groups, inverted, of which the last
	// n+1 bytes are there. The bytes from done on are of the bytes before.
	state, done := ^uint64(0), 8*(f.size-1)
	for ; pos+4 <= len(text); pos += 4 {
		four := text[pos:][:4]
		state = state<<32 | (f.table[four[0]]<<24 | f.table[four[1]]<<16) | (f.table[four[2]]<<8 | f.table[four[3]])
		if ^uint32(state>>done) == 0 {
			continue
		}
		for i := range 4 {
			if groups := ^uint8(state >> (done + 24 - 8*i)); groups != 0 {
				if at := pos + i + 1 - f.size; f.is(text, at, groups) {
					return at
				}
			}
		}
	}
	for ; pos < len(text); pos++ {
		state = state<<8 | f.table[text[pos]]
		if groups := ^uint8(state >> done); groups != 0 {
			if at := pos + 1 - f.size; f.is(text, at, groups) {
				return at
			}
		}
	}
	return len(text)
}

// is reports whether a text of some groups is at a position of another.
func (f *manyFinder) is(text []byte, at int, groups uint8) bool {
	for ; groups != 0; groups &= groups - 1 {
		for _, t := range f.groups[bits.TrailingZeros8(groups)] {
			if literalAt(text[at:], t, f.fold) {
				return true
			}
		}
	}
	return false
}
