package tools

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// lineDFA finds the lines that an expression matches. It builds a deterministic
// automaton lazily, so that a character costs a table look-up, where package regexp
// steps through a set of states. As there, an invalid byte is the character U+FFFD.
// It is not safe for concurrent use.
//
// The method is that of R. Cox, Regular Expression Matching in the Wild, 2010.
type lineDFA struct {
	prog    *syntax.Prog
	nodes   map[string]*dfaNode
	begin   *dfaNode // start of a line
	matched *dfaNode
	full    bool // there are too many nodes

	// What of the place the expression depends on. Nodes that differ only in
	// something else are the same one, in which the automaton then stays.
	begins, words bool
	// bounds divides the characters beyond ASCII into classes that no instruction
	// tells apart: each begins with one of these, the first with U+0080.
	bounds []rune

	// Scratch space of step.
	stack  []uint32
	seen   []bool // by instruction
	closed []uint32
}

// dfaNode is the state between two characters: the instructions the automaton may
// be at, before it follows those that consume none.
type dfaNode struct {
	next  [256]*dfaNode // by byte; see stay for those that are not ASCII
	wide  []*dfaNode    // by class
	tried [utf8.RuneSelf]bool
	at    []uint32
	begin bool // start of a line
	word  bool // the previous character is a word character
}

// maxDFANodes limits memory to about 4 MiB.
const maxDFANodes = 2000

// newLineDFA returns the automaton of an expression prepared by keepInLine, or
// nil if it cannot be compiled.
func newLineDFA(tree *syntax.Regexp) *lineDFA {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	d := &lineDFA{prog: prog, nodes: map[string]*dfaNode{}, matched: &dfaNode{}, seen: make([]bool, len(prog.Inst))}
	for i := range prog.Inst {
		switch inst := &prog.Inst[i]; inst.Op {
		case syntax.InstEmptyWidth:
			need := syntax.EmptyOp(inst.Arg)
			d.begins = d.begins || need&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0
			d.words = d.words || need&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
		case syntax.InstRune, syntax.InstRune1:
			d.divide(inst.Rune)
		}
	}
	slices.Sort(d.bounds)
	d.bounds = slices.Compact(d.bounds)
	d.begin = d.node([]uint32{uint32(prog.Start)}, d.begins, false)
	return d
}

// divide puts bounds around the ranges of an instruction, and around all that a
// single character may be folded to.
func (d *lineDFA) divide(ranges []rune) {
	bound := func(lo, hi rune) {
		for _, r := range []rune{lo, hi + 1} {
			if r > utf8.RuneSelf {
				d.bounds = append(d.bounds, r)
			}
		}
	}
	if len(ranges) == 1 {
		bound(ranges[0], ranges[0])
		for r := unicode.SimpleFold(ranges[0]); r != ranges[0]; r = unicode.SimpleFold(r) {
			bound(r, r)
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		bound(ranges[i], ranges[i+1])
	}
}

// stride is for how many characters find goes from node to node before it looks
// whether it is still at the same one. To look more often would be a guess that is
// wrong too often where the nodes change.
const stride = 16

// find returns a position in the first matching line that starts at pos or
// later, or -1. If it is not sure, the line must be matched in another way.
func (d *lineDFA) find(text []byte, pos int) (at int, sure bool) {
	node := d.begin
	before := node // some characters ago
	for i := pos; i < len(text); {
		if node == before { // while it stays, the processor need not wait for the next node
			for i < len(text) && node.next[text[i]] == node {
				i++
			}
		}
		before = node
		for end := min(i+stride, len(text)); i < end; {
			next, size := node.next[text[i]], 1
			if next == nil {
				if next, size = d.advance(node, text[i:]); next == nil {
					return i, false
				}
			}
			if next == d.matched {
				return i, true
			}
			node = next
			i += size
		}
	}
	if pos < len(text) && text[len(text)-1] != '\n' {
		if end := d.step(node, '\n'); end == nil || end == d.matched {
			return len(text), end != nil
		}
	}
	return -1, true
}

// advance returns the node after the first character of a text, and its size; nil if
// there are too many nodes.
func (d *lineDFA) advance(node *dfaNode, text []byte) (next *dfaNode, size int) {
	c, size := rune(text[0]), 1
	if c >= utf8.RuneSelf {
		c, size = utf8.DecodeRune(text)
	}
	next = d.step(node, c)
	if next == node && c >= utf8.RuneSelf {
		d.stay(node, text[0])
	}
	return next, size
}

// step returns the node after a character, or nil if there are too many nodes. A
// line feed is the end of the line.
func (d *lineDFA) step(from *dfaNode, c rune) *dfaNode {
	var slot **dfaNode
	if c < utf8.RuneSelf {
		slot = &from.next[c]
	} else {
		if from.wide == nil {
			from.wide = make([]*dfaNode, len(d.bounds)+1)
		}
		slot = &from.wide[d.class(c)]
	}
	if *slot != nil || d.full {
		return *slot
	}
	word := syntax.IsWordChar(c)
	switch matched := d.close(from, c, word); {
	case matched:
		*slot = d.matched
	case c == '\n':
		*slot = d.begin
	default:
		*slot = d.node(d.after(c), false, d.words && word)
	}
	return *slot
}

// class returns the class of a character beyond ASCII: how many bounds it is not
// below.
func (d *lineDFA) class(c rune) int {
	n, _ := slices.BinarySearch(d.bounds, c+1)
	return n
}

// maxStayClasses limits what stay tries.
const maxStayClasses = 8

// stay lets the automaton pass characters that begin with a byte byte by byte, if
// it stays at the node with all of them, and with an invalid byte: then it need not
// know where they end.
func (d *lineDFA) stay(node *dfaNode, lead byte) {
	if node.tried[lead-utf8.RuneSelf] {
		return
	}
	node.tried[lead-utf8.RuneSelf] = true
	lo, hi := utf8.RuneError, utf8.RuneError
	switch {
	case lead >= 0xF0 && lead <= 0xF4:
		lo, hi = rune(lead&0x07)<<18, rune(lead&0x07)<<18|0x3FFFF
	case lead >= 0xE0 && lead < 0xF0:
		lo, hi = rune(lead&0x0F)<<12, rune(lead&0x0F)<<12|0xFFF
	case lead >= 0xC2 && lead < 0xE0:
		lo, hi = rune(lead&0x1F)<<6, rune(lead&0x1F)<<6|0x3F
	}
	first, last := d.class(max(lo, utf8.RuneSelf)), d.class(hi)
	if last-first >= maxStayClasses || d.step(node, utf8.RuneError) != node {
		return
	}
	for class := first; class <= last; class++ {
		c := rune(utf8.RuneSelf)
		if class > 0 {
			c = d.bounds[class-1]
		}
		if d.step(node, c) != node {
			return
		}
	}
	node.next[lead] = node
	for b := 0x80; b < 0xC0; b++ { // what follows the first byte
		node.next[b] = node
	}
}

// close follows the instructions that consume nothing, before the character c, and
// reports whether there is a match. It leaves those that do in closed.
func (d *lineDFA) close(from *dfaNode, c rune, word bool) (matched bool) {
	var holds syntax.EmptyOp
	if from.begin {
		holds |= syntax.EmptyBeginLine
	}
	if c == '\n' {
		holds |= syntax.EmptyEndLine
	}
	if from.word != word {
		holds |= syntax.EmptyWordBoundary
	} else {
		holds |= syntax.EmptyNoWordBoundary
	}
	clear(d.seen)
	d.closed = d.closed[:0]
	d.stack = append(d.stack[:0], from.at...)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] {
			continue
		}
		d.seen[pc] = true
		switch inst := &d.prog.Inst[pc]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if need := syntax.EmptyOp(inst.Arg); need&^holds == 0 {
				d.stack = append(d.stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			d.closed = append(d.closed, pc)
		}
	}
	return false
}

// after returns where the instructions in closed lead on the character c, sorted. A
// match may start anywhere, so the start of the program is included.
func (d *lineDFA) after(c rune) []uint32 {
	at := append(d.stack[:0], uint32(d.prog.Start))
	for _, pc := range d.closed {
		inst := &d.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			at = append(at, inst.Out)
		default:
			if inst.MatchRune(c) {
				at = append(at, inst.Out)
			}
		}
	}
	slices.Sort(at)
	d.stack = at
	return slices.Compact(at)
}

// node returns the unique node for a state, or nil if there are too many.
func (d *lineDFA) node(at []uint32, begin, word bool) *dfaNode {
	key := make([]byte, 0, 4*len(at)+1)
	for _, pc := range at {
		key = append(key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	switch {
	case begin:
		key = append(key, 'b')
	case word:
		key = append(key, 'w')
	}
	n := d.nodes[string(key)]
	if n == nil {
		if len(d.nodes) == maxDFANodes {
			d.full = true
			return nil
		}
		n = &dfaNode{at: slices.Clone(at), begin: begin, word: word}
		d.nodes[string(key)] = n
	}
	return n
}
