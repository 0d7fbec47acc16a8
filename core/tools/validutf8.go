package tools

import (
	"encoding/binary"
	"sync"
)

// The states of the automaton that checks UTF-8: how far it is in a character, as
// shifts by which the next state is found in an entry of its table.
const (
	between  uint64 = 6 * iota
	one             // one more byte
	two             // two more
	three           // three more
	afterE0         // two more, the first from A0 on
	afterED         // two more, the first up to 9F: no surrogates
	afterF0         // three more, the first from 90 on
	afterF4         // three more, the first up to 8F
	notValid        // whatever follows
)

// utf8Table has for each byte the next state of each state, at its shift: one shift
// a byte, without a branch. The method is that of P. Wilson, "shift DFA".
var utf8Table = sync.OnceValue(func() *[256]uint64 {
	var table [256]uint64
	for b := range table {
		for state := between; state <= notValid; state += 6 {
			table[b] |= nextUTF8(state, byte(b)) << state
		}
	}
	return &table
})

// nextUTF8 returns the state after a byte.
func nextUTF8(state uint64, b byte) uint64 {
	follows := func(lo, hi byte, next uint64) uint64 {
		if lo <= b && b <= hi {
			return next
		}
		return notValid
	}
	switch state {
	case one:
		return follows(0x80, 0xBF, between)
	case two:
		return follows(0x80, 0xBF, one)
	case three:
		return follows(0x80, 0xBF, two)
	case afterE0:
		return follows(0xA0, 0xBF, one)
	case afterED:
		return follows(0x80, 0x9F, one)
	case afterF0:
		return follows(0x90, 0xBF, two)
	case afterF4:
		return follows(0x80, 0x8F, two)
	case notValid:
		return notValid
	}
	switch {
	case b < 0x80:
		return between
	case b >= 0xC2 && b <= 0xDF:
		return one
	case b == 0xE0:
		return afterE0
	case b == 0xED:
		return afterED
	case b >= 0xE1 && b <= 0xEF:
		return two
	case b == 0xF0:
		return afterF0
	case b >= 0xF1 && b <= 0xF3:
		return three
	case b == 0xF4:
		return afterF4
	}
	return notValid
}

// notASCII has of eight bytes the bits that ASCII has not.
const notASCII = 0x8080808080808080

// asciiStep is how many bytes are looked at together.
const asciiStep = 32

// ascii reports whether asciiStep bytes are all ASCII.
func ascii(text []byte) bool {
	le := binary.LittleEndian
	return ((le.Uint64(text)|le.Uint64(text[8:]))|(le.Uint64(text[16:])|le.Uint64(text[24:])))&notASCII == 0
}

// afterASCII returns a text without most of the ASCII that it begins with. It is
// written as utf8.Valid is, so that the compiler leaves out what it can.
func afterASCII(text []byte) []byte {
	text = text[:len(text):len(text)]
	for len(text) >= asciiStep && ascii(text) {
		text = text[asciiStep:]
	}
	return text
}

// validUTF8 is utf8.Valid. It checks both halves of a text at once, as a step need
// not wait for that of the other half: where a text is not ASCII, this is several
// times as fast.
func validUTF8(text []byte) bool {
	a, b := halves(afterASCII(text))
	table, inA, inB := utf8Table(), between, between
	for ; len(a) >= asciiStep && len(b) >= asciiStep; a, b = a[asciiStep:], b[asciiStep:] {
		if (inA|inB)&63 == between && ascii(a) && ascii(b) {
			continue
		}
		for i := 0; i < asciiStep; i += 8 {
			a, b := a[i:i+8], b[i:i+8]
			inA, inB = table[a[0]]>>(inA&63), table[b[0]]>>(inB&63)
			inA, inB = table[a[1]]>>(inA&63), table[b[1]]>>(inB&63)
			inA, inB = table[a[2]]>>(inA&63), table[b[2]]>>(inB&63)
			inA, inB = table[a[3]]>>(inA&63), table[b[3]]>>(inB&63)
			inA, inB = table[a[4]]>>(inA&63), table[b[4]]>>(inB&63)
			inA, inB = table[a[5]]>>(inA&63), table[b[5]]>>(inB&63)
			inA, inB = table[a[6]]>>(inA&63), table[b[6]]>>(inB&63)
			inA, inB = table[a[7]]>>(inA&63), table[b[7]]>>(inB&63)
		}
	}
	for _, c := range a {
		inA = table[c] >> (inA & 63)
	}
	for _, c := range b {
		inB = table[c] >> (inB & 63)
	}
	return (inA|inB)&63 == between
}

// halves cuts a text before a character.
func halves(text []byte) (a, b []byte) {
	half := len(text) / 2
	for n := 0; n < 3 && half > 0 && text[half]&0xC0 == 0x80; n++ {
		half--
	}
	return text[:half], text[half:]
}
