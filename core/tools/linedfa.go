package tools

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// lineDFA finds the lines that an expression matches. It builds a deterministic
// automaton lazily, so that a byte costs one table look-up, where package regexp
// steps through a set of states. It handles only ASCII and reports any other
// byte. It is not safe for concurrent use.
//
// The method is that of R. Cox, Regular Expression Matching in the Wild, 2010.
type lineDFA struct {
	prog    *syntax.Prog
	nodes   map[string]*dfaNode
	begin   *dfaNode // start of a line
	matched *dfaNode
	full    bool // there are too many nodes

	// Scratch space of step.
	stack  []uint32
	seen   []bool // by instruction
	closed []uint32
}

// dfaNode is the state between two bytes: the instructions the automaton may be
// at, before it follows those that consume no byte.
type dfaNode struct {
	next  [utf8.RuneSelf]*dfaNode
	at    []uint32
	begin bool // start of a line
	word  bool // the previous byte is a word character
}

// maxDFANodes limits memory to about 4 MiB.
const maxDFANodes = 4000

// newLineDFA returns the automaton of an expression prepared by keepInLine, or
// nil if it cannot be compiled.
func newLineDFA(tree *syntax.Regexp) *lineDFA {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	d := &lineDFA{prog: prog, nodes: map[string]*dfaNode{}, matched: &dfaNode{}, seen: make([]bool, len(prog.Inst))}
	d.begin = &dfaNode{at: []uint32{uint32(prog.Start)}, begin: true}
	return d
}

// find returns a position in the first matching line that starts at pos or
// later, or -1. If it is not sure, the line must be matched in another way.
func (d *lineDFA) find(text []byte, pos int) (at int, sure bool) {
	node := d.begin
	for i := pos; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf {
			return i, false
		}
		next := node.next[c]
		if next == nil {
			if next = d.step(node, c); next == nil {
				return i, false
			}
		}
		if next == d.matched {
			return i, true
		}
		node = next
	}
	if pos < len(text) && text[len(text)-1] != '\n' {
		if end := d.step(node, '\n'); end == nil || end == d.matched {
			return len(text), end != nil
		}
	}
	return -1, true
}

// step returns the node after a byte, or nil if there are too many nodes. A
// line feed is the end of the line.
func (d *lineDFA) step(from *dfaNode, c byte) *dfaNode {
	to := from.next[c]
	if to != nil || d.full {
		return to
	}
	word := syntax.IsWordChar(rune(c))
	switch matched := d.close(from, c, word); {
	case matched:
		to = d.matched
	case c == '\n':
		to = d.begin
	default:
		to = d.node(d.after(c), word)
	}
	from.next[c] = to
	return to
}

// close follows the instructions that consume no byte, before the byte c, and
// reports whether there is a match. It leaves those that do in closed.
func (d *lineDFA) close(from *dfaNode, c byte, word bool) (matched bool) {
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

// after returns where the instructions in closed lead on byte c, sorted. A match
// may start anywhere, so the start of the program is included.
func (d *lineDFA) after(c byte) []uint32 {
	at := append(d.stack[:0], uint32(d.prog.Start))
	for _, pc := range d.closed {
		inst := &d.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			at = append(at, inst.Out)
		default:
			if inst.MatchRune(rune(c)) {
				at = append(at, inst.Out)
			}
		}
	}
	slices.Sort(at)
	d.stack = at
	return slices.Compact(at)
}

// node returns the unique node for a state.
func (d *lineDFA) node(at []uint32, word bool) *dfaNode {
	key := make([]byte, 0, 4*len(at)+1)
	for _, pc := range at {
		key = append(key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	if word {
		key = append(key, 'w')
	}
	n := d.nodes[string(key)]
	if n == nil {
		if len(d.nodes) == maxDFANodes {
			d.full = true
			return nil
		}
		n = &dfaNode{at: slices.Clone(at), word: word}
		d.nodes[string(key)] = n
	}
	return n
}
