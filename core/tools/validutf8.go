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

// utf8Table has for each byte the next state of each state, at its shift. One shift
// a byte, without a branch, is almost twice as fast as utf8.Valid where a text is not
// ASCII. The method is that of P. Wilson, "shift DFA".
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

// afterASCII returns a text without most of the ASCII that it begins with. It is
// written as utf8.Valid is, so that the compiler leaves out what it can.
func afterASCII(text []byte) []byte {
	text = text[:len(text):len(text)]
	for len(text) > 32 && ((binary.LittleEndian.Uint64(text)|binary.LittleEndian.Uint64(text[8:]))|
		(binary.LittleEndian.Uint64(text[16:])|binary.LittleEndian.Uint64(text[24:])))&notASCII == 0 {
		text = text[32:]
	}
	return text
}

// validUTF8 is utf8.Valid.
func validUTF8(text []byte) bool {
	text = afterASCII(text)
	table, state := utf8Table(), between
	for len(text) >= 8 {
		b := text[:8]
		text = text[8:]
		if state&63 == between && binary.LittleEndian.Uint64(b)&notASCII == 0 {
			text = afterASCII(text)
			continue
		}
		state = table[b[0]] >> (state & 63)
		state = table[b[1]] >> (state & 63)
		state = table[b[2]] >> (state & 63)
		state = table[b[3]] >> (state & 63)
		state = table[b[4]] >> (state & 63)
		state = table[b[5]] >> (state & 63)
		state = table[b[6]] >> (state & 63)
		state = table[b[7]] >> (state & 63)
		if state&63 == notValid {
			return false
		}
	}
	for _, c := range text {
		state = table[c] >> (state & 63)
	}
	return state&63 == between
}
