package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxSteps      = 2_000 // statements analyzed
	maxCommands   = 500   // commands reported
	maxIterations = 32    // of one loop over known words
	maxDirs       = 8     // directories that the script may be in at one point
	maxUnclear    = 20    // findings kept
)

// state is what is known at one point of the script. It is copied by value.
type state struct {
	dirs []string // where the shell may be; nil if unknown
	vars *binding // newest first; other names have their value from the environment
	// names is what find -print0 writes to the command's stdin, if it does.
	names *value
}

// binding is the value of a variable. Bindings are immutable, so that states can
// share them.
type binding struct {
	name string
	value
	next *binding
	age  int // the number of bindings before it
}

func (s *state) bind(name string, v value) {
	age := 0
	if s.vars != nil {
		age = s.vars.age + 1
	}
	s.vars = &binding{name: name, value: v, next: s.vars, age: age}
}

// lookup returns what is known of a variable; false if the script has not
// assigned it.
func (s *state) lookup(name string) (value, bool) { return s.find(name, nil) }

// find searches the bindings that are newer than one.
func (s *state) find(name string, older *binding) (value, bool) {
	for b := s.vars; b != older; b = b.next {
		if b.name == name {
			return b.value, true
		}
	}
	return value{}, false
}

// join is the state if either of two may apply.
func join(a, b state) state {
	out := a
	if !slices.Equal(a.dirs, b.dirs) {
		out.dirs = joinDirs(a.dirs, b.dirs)
	}
	if a.vars == b.vars {
		return out
	}
	common := commonTail(a.vars, b.vars)
	out.vars = common
	for _, list := range [...]*binding{a.vars, b.vars} {
		for v := list; v != common; v = v.next {
			if _, done := out.find(v.name, common); !done {
				out.bind(v.name, either(&a, &b, v.name))
			}
		}
	}
	return out
}

// either is what is known of a variable in either of two states.
func either(a, b *state, name string) value {
	x, inA := a.lookup(name)
	y, inB := b.lookup(name)
	switch {
	case inA && inB && x == y:
		return x
	case inA && inB && x.isNumber() && y.isNumber():
		return value{text: "*", kind: number}
	}
	return value{kind: unknown}
}

// commonTail is the part that two lists of bindings have in common.
func commonTail(a, b *binding) *binding {
	for a != b {
		if b == nil || a != nil && a.age >= b.age {
			a = a.next
		} else {
			b = b.next
		}
	}
	return a
}

func joinDirs(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	out := slices.Clone(a)
	for _, dir := range b {
		if !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if len(out) > maxDirs {
		return nil
	}
	return out
}

// outcome is the state after a command that succeeded, and after one that
// failed: they differ by cd.
type outcome struct{ ok, failed state }

func same(s state) outcome { return outcome{s, s} }

func (o outcome) either() state { return join(o.ok, o.failed) }

// walker walks through a script in the order in which it would run.
type walker struct {
	script string
	o      Options
	out    Analysis
	facts  *facts // about loops and functions; gathered when first needed
	root   syntax.Node
	// found is what the last command writes, if it was find -print0.
	found *value
	// changed remembers what changes below loops and functions.
	changed map[syntax.Node]change
	// defined are the functions that are certainly defined.
	defined map[string]bool
	steps   int
	depth   int
	outer   int // the offset of all findings of an inner script
	inner   bool
}

func newWalker(script string, o Options) *walker {
	w := &walker{script: script, o: o, steps: maxSteps}
	w.out.Commands = make([]Command, 0, min(32, 1+len(script)/16))
	return w
}

func (w *walker) file(f *syntax.File) {
	st := state{}
	if path.IsAbs(w.o.Dir) {
		st.dirs = []string{w.o.Dir}
	}
	w.root = f
	w.stmts(st, f.Stmts)
}

// posix says that the shell may be any POSIX shell.
func (w *walker) posix() bool { return w.o.Dialect == "sh" }

func (w *walker) offset(n syntax.Node) int {
	if w.inner {
		return w.outer
	}
	return int(n.Pos().Offset())
}

// source is the source text of a node.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(w.script) || from > to {
		return ""
	}
	return w.script[from:to]
}

func (w *walker) unclear(n syntax.Node, why string) {
	w.unclearText(w.source(n), w.offset(n), why)
}

func (w *walker) unclearText(text string, offset int, why string) {
	if len(w.out.Unclear) < maxUnclear {
		w.out.Unclear = append(w.out.Unclear, Finding{Text: excerpt(text), Offset: offset, Why: why})
	}
}

func (w *walker) stmts(st state, list []*syntax.Stmt) outcome {
	out := same(st)
	for _, s := range list {
		out = w.stmt(out.either(), s)
	}
	return out
}

// subshell walks through statements whose changes do not affect later ones.
func (w *walker) subshell(st *state, list []*syntax.Stmt) {
	inner := *st
	inner.names = nil
	w.stmts(inner, list)
}

func (w *walker) substitution(st *state, c *syntax.CmdSubst) {
	switch {
	case c.TempFile || c.ReplyVar:
		w.unclear(c, "is a substitution that shells parse differently")
	case c.Backquotes && strings.Contains(w.source(c), `\`):
		w.unclear(c, "has a backslash in backquotes, which shells parse differently; use $(…)")
	}
	w.subshell(st, c.Stmts)
}

func (w *walker) stmt(st state, s *syntax.Stmt) outcome {
	w.depth++
	defer func() { w.depth-- }()
	w.steps--
	if _, call := s.Cmd.(*syntax.CallExpr); !call {
		if pipe, ok := s.Cmd.(*syntax.BinaryCmd); !ok || pipe.Op != syntax.Pipe {
			st.names = nil // others may consume part of it
		}
	}
	if w.steps < 0 || w.depth > maxNesting || len(w.out.Commands) >= maxCommands {
		if w.steps >= -1 {
			w.unclear(s, "nests or repeats too much to analyze")
		}
		w.steps = -2
		return same(st)
	}
	if s.Coprocess || s.Disown {
		w.unclear(s, "is not bash or sh")
	}
	for _, r := range s.Redirs {
		w.redirect(&st, r)
	}
	if s.Cmd == nil {
		return same(st)
	}
	out := w.cmd(st, s.Cmd)
	if s.Background {
		return same(st)
	}
	if s.Negated {
		out.ok, out.failed = out.failed, out.ok
	}
	return out
}

func (w *walker) cmd(st state, cmd syntax.Command) outcome {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return w.call(st, c)
	case *syntax.BinaryCmd:
		return w.binary(st, c)
	case *syntax.Block:
		return w.stmts(st, c.Stmts)
	case *syntax.Subshell:
		w.subshell(&st, c.Stmts)
		return same(st)
	case *syntax.IfClause:
		return same(w.ifClause(st, c))
	case *syntax.WhileClause:
		return same(w.while(st, c))
	case *syntax.ForClause:
		return same(w.forClause(st, c))
	case *syntax.CaseClause:
		return same(w.caseClause(st, c))
	case *syntax.FuncDecl:
		w.function(st, c)
		return same(st)
	case *syntax.TestClause:
		w.testClause(&st, c.X)
		return same(st)
	case *syntax.ArithmCmd:
		w.arithmetic(&st, c.X)
		return same(st)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithmetic(&st, x)
		}
		return same(st)
	case *syntax.DeclClause:
		w.declare(&st, c)
		return same(st)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return same(st)
		}
		return w.stmt(st, c.Stmt)
	default:
		w.unclear(cmd, "is an unsupported construct")
		return same(st)
	}
}

func (w *walker) binary(st state, b *syntax.BinaryCmd) outcome {
	w.depth-- // a long list nests only in the tree
	defer func() { w.depth++ }()
	w.found = nil
	x := w.stmt(st, b.X)
	switch b.Op {
	case syntax.AndStmt:
		y := w.stmt(x.ok, b.Y)
		return outcome{ok: y.ok, failed: join(x.failed, y.failed)}
	case syntax.OrStmt:
		y := w.stmt(x.failed, b.Y)
		return outcome{ok: join(x.ok, y.ok), failed: y.failed}
	default: // a pipe; each side runs in a subshell
		to := st
		if to.names = w.found; !isCall(b.X, "find") || !isCall(first(b.Y), "xargs") {
			to.names = nil
		}
		w.stmt(to, b.Y)
		return same(st)
	}
}

// first is the first command of a pipe.
func first(s *syntax.Stmt) *syntax.Stmt {
	for {
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe || len(s.Redirs) > 0 {
			return s
		}
		s = b.X
	}
}

// isCall reports whether a statement only runs a program, without redirecting its
// input or output.
func isCall(s *syntax.Stmt, program string) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || call.Args[0].Lit() != program || s.Negated || s.Background {
		return false
	}
	for _, r := range s.Redirs {
		if r.N == nil || r.N.Value != "2" {
			return false
		}
	}
	return true
}

func (w *walker) ifClause(st state, c *syntax.IfClause) state {
	if len(c.Cond) == 0 { // else
		return w.stmts(st, c.Then).either()
	}
	cond := w.stmts(st, c.Cond)
	then := w.stmts(cond.ok, c.Then).either()
	otherwise := cond.failed
	if c.Else != nil {
		otherwise = w.ifClause(cond.failed, c.Else)
	}
	return join(then, otherwise)
}

func (w *walker) while(st state, c *syntax.WhileClause) state {
	st = w.forget(st, c)
	cond := w.stmts(st, c.Cond)
	body := cond.ok
	if c.Until {
		body = cond.failed
	}
	after := w.stmts(body, c.Do).either()
	return join(cond.either(), after)
}

func (w *walker) forClause(st state, c *syntax.ForClause) state {
	switch loop := c.Loop.(type) {
	case *syntax.CStyleLoop:
		w.arithmetic(&st, loop.Init)
		st = w.forget(st, c)
		w.arithmetic(&st, loop.Cond)
		after := w.stmts(st, c.Do).either()
		w.arithmetic(&after, loop.Post)
		return join(st, after)
	case *syntax.WordIter:
		name := loop.Name.Value
		w.assigned(loop.Name, name)
		items := make([]word, 0, len(loop.Items))
		for _, item := range loop.Items {
			items = append(items, w.words(&st, item)...)
		}
		return w.iterate(st, c, name, items, loop.InPos.IsValid() && !c.Select)
	default:
		w.unclear(c, "is an unsupported loop")
		return st
	}
}

// iterate walks through the body of a loop for each of its words. If one of them
// is unknown, or there are too many, it does so once for an unknown word.
func (w *walker) iterate(st state, c *syntax.ForClause, name string, items []word, known bool) state {
	unknowns := slices.ContainsFunc(items, func(i word) bool { return i.kind == unknown || i.many && i.kind != glob })
	if !known || unknowns || len(items) > maxIterations {
		st = w.forget(st, c)
		st.bind(name, value{kind: unknown})
		return join(st, w.stmts(st, c.Do).either())
	}
	jumps := w.scriptFacts().jumps
	if jumps || slices.ContainsFunc(items, func(i word) bool { return i.many }) {
		st = w.forget(st, c)
	}
	after := st
	for _, item := range items {
		now := after
		if jumps { // may have left the last iteration at any point
			now = st
		}
		now.bind(name, item.value)
		after = w.stmts(now, c.Do).either()
	}
	if jumps {
		after = w.forget(after, c)
	}
	return join(st, after)
}

func (w *walker) caseClause(st state, c *syntax.CaseClause) state {
	w.single(&st, c.Word)
	out, through := st, st
	for _, item := range c.Items {
		for _, pattern := range item.Patterns {
			w.single(&st, pattern)
		}
		through = w.stmts(join(st, through), item.Stmts).either()
		out = join(out, through)
		if item.Op == syntax.Break {
			through = st
		}
	}
	return out
}

// function walks through a function's body, which may run at any later point.
func (w *walker) function(st state, f *syntax.FuncDecl) {
	if f.Name == nil {
		w.unclear(f, "is a function without a name")
		return
	}
	name := f.Name.Value
	if isKnownName(name) || !syntax.ValidName(name) {
		w.unclear(f.Name, "defines a function with the name of a command")
	}
	w.stmt(w.forget(st, w.root), f.Body)
	if w.depth == 1 {
		if w.defined == nil {
			w.defined = map[string]bool{}
		}
		w.defined[name] = true
	}
}
