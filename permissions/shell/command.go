package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// invocation is one simple command being judged.
type invocation struct {
	*walker
	st       *state
	cmd      *Command
	name     string // of the program, without its directory
	args     []word // after the name
	options  []option
	operands []word
	result   *outcome // set by what changes the shell's state
}

// option is an option on the command line.
type option struct {
	name  string // without dashes
	value *word  // nil if it has none
}

// unknown marks the command as not known to be harmless.
func (in *invocation) unknown(why string) {
	in.lower(Unknown, why)
}

func (in *invocation) lower(to Effect, why string) {
	if to < in.cmd.Effect {
		in.cmd.Effect, in.cmd.Why = to, why
	}
}

// call judges a simple command.
func (w *walker) call(st state, c *syntax.CallExpr) outcome {
	if len(c.Args) == 0 {
		for _, as := range c.Assigns {
			w.assign(&st, as)
		}
		return same(st)
	}
	for _, as := range c.Assigns {
		w.prefix(&st, as, c.Args[0].Lit())
	}
	words := make([]word, 0, len(c.Args)+2)
	for _, arg := range c.Args {
		words = append(words, w.words(&st, arg)...)
	}
	if len(words) == 0 {
		return same(st) // found unclear
	}
	if lit, ok := c.Args[0].Parts[0].(*syntax.Lit); !ok || len(c.Args[0].Parts) > 1 || strings.ContainsAny(lit.Value, "\\{~*?") || w.source(lit) != words[0].text {
		w.unclear(c.Args[0], "is a program name with quoting or expansions")
	}
	return w.run(st, words, w.source(c), w.offset(c))
}

// prefix judges an assignment before a command.
func (w *walker) prefix(st *state, as *syntax.Assign, program string) {
	if as.Name == nil || as.Index != nil || as.Array != nil || as.Append || as.Naked {
		w.unclear(as, "is an unsupported assignment")
		return
	}
	v := value{}
	if as.Value != nil {
		v = w.single(st, as.Value).value
	}
	if as.Name.Value == "IFS" && program == "read" && v.kind == literal {
		return // how read splits what it reads
	}
	if !exportable(as.Name.Value, v) {
		w.unclear(as, "sets a variable that may change what the command does")
	}
}

// run judges a command whose words are evaluated, and adds it to the analysis.
func (w *walker) run(st state, words []word, text string, offset int) outcome {
	if len(w.out.Commands) >= maxCommands {
		w.unclearText(text, offset, "belongs to a script with too many commands")
		return same(st)
	}
	at := len(w.out.Commands)
	w.out.Commands = append(w.out.Commands, Command{})
	cmd := Command{Argv: make([]string, len(words)), Text: text, Offset: offset, Effect: ReadOnly}
	for i := range words {
		cmd.Argv[i] = words[i].shown()
		if !words[i].exact() {
			cmd.Vague = append(cmd.Vague, i)
		}
	}
	result := same(st)
	in := &invocation{walker: w, st: &st, cmd: &cmd, args: words[1:], result: &result}
	in.judge(&words[0])
	w.out.Commands[at] = cmd
	return *in.result
}

// judge judges the command by its program.
func (in *invocation) judge(program *word) {
	if !program.exact() || program.text == "" {
		in.unclearText(program.src, program.pos, "is a program name only known at run time")
		in.unknown("its program is unknown")
		return
	}
	in.name = program.text
	if strings.Contains(in.name, "/") {
		if !isSystemDir(path.Dir(in.name)) || path.Clean(in.name) != in.name {
			in.unknown(in.name + " is not a system program")
			return
		}
		in.name = path.Base(in.name)
	} else if in.isFunction() {
		return
	} else if judge := builtin(in.name); judge != nil {
		judge(in)
		return
	}
	if in.wrapper() {
		return
	}
	in.losses()
	in.trees()
	if judge := judgeOf(in.name); judge != nil {
		judge(in)
		return
	}
	p, known := programs[in.name]
	if !known {
		in.unknown(in.name + " is not known to be read-only")
		return
	}
	in.conform(&p)
}

func isSystemDir(dir string) bool {
	return slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"}, dir)
}

// isFunction handles the call of a function, whose body is judged where it is
// defined.
func (in *invocation) isFunction() bool {
	if in.root == nil || !in.defined[in.name] {
		return false
	}
	st := *in.st
	for name := range in.scriptFacts().inFunctions {
		st.bind(name, value{kind: unknown})
	}
	if in.scriptFacts().cdInside {
		st.dirs = nil
	}
	*in.result = same(st)
	return true
}

// conform judges a command by the table's entry for its program.
func (in *invocation) conform(p *program) {
	in.parse(p)
	if p.most > 0 && (len(in.operands) > p.most || slices.ContainsFunc(in.operands, func(o word) bool { return o.many })) {
		in.unknown(p.beyond)
	}
	for i := range in.operands {
		in.operand(p, &in.operands[i])
	}
}

func (in *invocation) operand(p *program, o *word) {
	switch p.operands {
	case files:
		in.touch(Read, o, false)
	case names:
		in.touch(List, o, false)
	case nothing:
		in.unknown("takes no arguments")
	}
}

// touch records an access to the file that a word names.
func (in *invocation) touch(kind Kind, o *word, recursive bool) {
	in.reach(o, Access{Kind: kind, Recursive: recursive})
}

// reach records an access to what a word names.
func (in *invocation) reach(o *word, a Access) {
	a.Text, a.Offset = o.src, o.pos
	accesses, ok := in.accesses(in.st, &o.value, a)
	if !ok {
		in.unknown(o.src + " is a path only known at run time")
		return
	}
	in.cmd.Accesses = append(in.cmd.Accesses, accesses...)
	if a.Kind >= Write && len(accesses) > 0 {
		in.lower(Writes, verbs[a.Kind]+" "+o.src)
	}
}

var verbs = [...]string{Write: "writes", Delete: "deletes", Network: "connects to"}

// here records an access to the directory that the command runs in.
func (in *invocation) here(a Access) {
	in.reach(&word{value: value{text: "."}, src: in.name, pos: in.cmd.Offset}, a)
}

// accesses completes an access with the path in a value, once for each directory
// that the script may be in. It is false if the path is unknown.
func (w *walker) accesses(st *state, v *value, a Access) ([]Access, bool) {
	text := v.text
	switch v.kind {
	case unknown:
		return nil, false
	case glob, number:
		if v.isPipe() {
			return nil, true
		}
		a.Glob = true
	case below:
		a.Recursive, a.Name = true, v.name
	case literal:
		if isStream(text, a.Kind) || text == "" {
			return nil, true
		}
	}
	if strings.HasPrefix(text, "/") {
		a.Path = text
		return []Access{a}, true
	}
	if st.dirs == nil {
		return nil, false
	}
	out := make([]Access, len(st.dirs))
	for i, dir := range st.dirs {
		out[i] = a
		if a.Glob {
			var b strings.Builder
			escapeTo(&b, dir)
			dir = b.String()
		}
		out[i].Path = within(dir, text)
	}
	return out, true
}

// within joins a directory and a relative path without cleaning.
func within(dir, text string) string {
	for strings.HasPrefix(text, "./") {
		text = strings.TrimLeft(text[2:], "/")
	}
	if text == "." || text == "" {
		return dir
	}
	return strings.TrimSuffix(dir, "/") + "/" + text
}

// isStream reports whether a path is a stream of the process, not a file.
func isStream(path string, kind Kind) bool {
	switch path {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin":
		return true
	case "/dev/zero", "/dev/urandom", "/dev/random":
		return kind < Write
	}
	n, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && isDecimal(n)
}
