package tools

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// lineDFA looks for the lines that an expression matches. It makes the
// expression's automaton deterministic as far as the text wants it, so that a
// byte costs one look into a table, where package regexp steps through a set.
// It knows ASCII only and says so when it meets more. It is for one goroutine.
//
// The method is that of R. Cox, Regular Expression Matching in the Wild, 2010.
type lineDFA struct {
	prog    *syntax.Prog
	nodes   map[string]*dfaNode
	begin   *dfaNode // of a line
	matched *dfaNode
	full    bool // there are too many nodes

	// What step works with.
	stack  []uint32
	seen   []bool // by instruction
	closed []uint32
}

// dfaNode is what is known between two bytes: the instructions that the
// automaton may be at, before it looks at what matches without a byte.
type dfaNode struct {
	next  [utf8.RuneSelf]*dfaNode
	at    []uint32
	begin bool // of a line
	word  bool // the byte before belongs to a word
}

// maxDFANodes bounds the memory to about 4 MiB.
const maxDFANodes = 4000

// newLineDFA returns the automaton of an expression that went through
// keepInLine, or nil if there is none.
func newLineDFA(tree *syntax.Regexp) *lineDFA {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil
	}
	d := &lineDFA{prog: prog, nodes: map[string]*dfaNode{}, matched: &dfaNode{}, seen: make([]bool, len(prog.Inst))}
	d.begin = &dfaNode{at: []uint32{uint32(prog.Start)}, begin: true}
	return d
}

// find returns a place in the first line that matches of those that begin at
// pos or behind it, or -1. If it is not sure, the line must be looked at in
// another way.
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

// step returns the node behind a byte, or nil if there are too many of them. A
// line feed stands for the end of the line.
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
		to = d.node(d.behind(c), word)
	}
	from.next[c] = to
	return to
}

// close follows what needs no byte, before the byte c, and reports whether
// there is a match. The instructions that want a byte are left in closed.
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

// behind returns where the instructions in closed lead with a byte, sorted. A
// match may begin anywhere, so the beginning is among it.
func (d *lineDFA) behind(c byte) []uint32 {
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

// node returns the one node for what is known.
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
