package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin returns the judge of a shell builtin; nil if the name is not one.
func builtin(name string) func(*invocation) {
	switch name {
	case "cd":
		return changeDir
	case ":", "true", "false", "echo", "times", "pwd", "jobs", "shift", "break", "continue", "return", "exit":
		return func(*invocation) {}
	case "printf":
		return printf
	case "test", "[":
		return test
	case "set":
		return set
	case "read":
		return read
	case "unset":
		return unset
	case "wait", "umask", "hash", "getopts":
		return plainWords
	case "export", "readonly", "local":
		return export
	case "type":
		return func(in *invocation) { in.parse(&program{options: "a f p P t"}) }
	case "exec":
		return replace
	case "command", "builtin":
		return command
	case "eval", "source", ".", "trap", "fc", "compgen", "mapfile", "readarray", "coproc":
		return func(in *invocation) { in.unclearAfter("runs commands only known at run time") }
	case "alias", "unalias", "enable", "shopt", "bind", "complete", "compopt", "history", "pushd", "popd", "dirs",
		"declare", "typeset", "let", "logout", "suspend", "disown", "ulimit", "caller":
		return func(in *invocation) { in.unclearAfter("may change what later commands mean") }
	}
	return nil
}

// isKnownName reports whether a function of this name would hide a known command.
func isKnownName(name string) bool {
	_, known := programs[name]
	return known || builtin(name) != nil || wraps(name) || judgeOf(name) != nil
}

// unclearAfter reports that nothing after the command can be analyzed.
func (in *invocation) unclearAfter(why string) {
	in.unclearText(in.cmd.Text, in.cmd.Offset, why)
	in.unknown(why)
}

// changeDir judges cd. If cd fails, the directory stays the same.
func changeDir(in *invocation) {
	ok := *in.st
	ok.dirs = in.entered()
	if ok.dirs == nil {
		in.unknown("changes to a directory only known at run time")
	}
	for _, dir := range ok.dirs {
		in.cmd.Accesses = append(in.cmd.Accesses, Access{Kind: List, Path: dir, Text: in.cmd.Text, Offset: in.cmd.Offset})
	}
	in.setEnv("CDPATH=")
	*in.result = outcome{ok: ok, failed: *in.st}
}

// entered returns the directories that cd may change to; nil if unknown.
func (in *invocation) entered() []string {
	args := in.args
	if len(args) > 0 && args[0].exact() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 && in.o.Home != "" {
		return []string{in.o.Home}
	}
	if len(args) != 1 || !args[0].exact() || strings.HasPrefix(args[0].text, "-") || args[0].text == "" {
		return nil
	}
	target := args[0].text
	// Shells differ in what .. means after a symbolic link.
	if up := strings.LastIndex(target, ".."); up >= 0 && strings.Trim(target[:up], "./") != "" {
		return nil
	}
	if strings.HasPrefix(target, "/") {
		return []string{path.Clean(target)}
	}
	if in.st.dirs == nil {
		return nil
	}
	dirs := []string{}
	for _, dir := range in.st.dirs {
		dirs = joinDirs(dirs, []string{path.Join(dir, target)})
	}
	return dirs
}

// setEnv records variables that the verdict relies on.
func (w *walker) setEnv(entries ...string) {
	if !slices.Contains(w.out.Env, entries[0]) {
		w.out.Env = append(w.out.Env, entries...)
	}
}

// printf judges printf: -v assigns, and evaluates subscripts.
func printf(in *invocation) {
	if len(in.args) == 0 {
		return
	}
	if format := &in.args[0]; strings.HasPrefix(format.text, "-") && !(format.exact() && format.text == "--") || !format.exact() && format.maybeOption() {
		in.unclearAfter("has a format that is or may be an option")
	}
}

// test judges test and [, which evaluate the operands of some operators. It must
// be known which words are operators.
func test(in *invocation) {
	args := in.args
	if in.name == "[" {
		if len(args) == 0 || args[len(args)-1].text != "]" {
			in.unclearAfter("has no closing bracket")
			return
		}
		args = args[:len(args)-1]
	}
	for len(args) > 1 && args[0].exact() && args[0].text == "!" {
		args = args[1:]
	}
	for i := range args {
		if args[i].many {
			in.unclearAfter("may expand to words that are operators")
			return
		}
	}
	switch {
	case len(args) <= 1:
	case len(args) == 2 && args[0].exact():
		in.unaryTest(args[0].text, &args[1])
	case len(args) == 3 && args[1].exact() && isBinaryTest(args[1].text):
		if strings.HasSuffix(args[1].text, "t") && len(args[1].text) == 3 && strings.Contains("-nt -ot", args[1].text) || args[1].text == "-ef" {
			in.touch(List, &args[0], false)
			in.touch(List, &args[2], false)
		}
	default:
		in.longTest(args)
	}
}

// longTest judges an expression of several tests, all of which must be known.
func (in *invocation) longTest(args []word) {
	for i := range args {
		switch {
		case args[i].exact() && (args[i].text == "-v" || args[i].text == "-R"):
			in.unclearAfter("tests a variable by name, which evaluates its subscript")
			return
		case !args[i].exact() && (i == 0 || !args[i-1].exact() || !strings.HasPrefix(args[i-1].text, "-") && !isBinaryTest(args[i-1].text)) &&
			!(i+1 < len(args) && args[i+1].exact() && isBinaryTest(args[i+1].text) && args[i+1].text != "-a" && args[i+1].text != "-o"):
			in.unclearAfter("tests words that may be operators")
			return
		case !args[i].exact():
			in.unclearAfter("is a long test of words only known at run time; use && between short tests")
			return
		case i > 0 && strings.HasPrefix(args[i-1].text, "-") && len(args[i-1].text) == 2 && strings.Contains(fileTests, args[i-1].text[1:]):
			in.touch(List, &args[i], false)
		}
	}
}

const fileTests = "abcdefghkprstuwxGLNOS"

func (in *invocation) unaryTest(op string, arg *word) {
	switch {
	case op == "-n" || op == "-z" || op == "-t" || op == "-o":
	case op == "-v" || op == "-R":
		in.unclearAfter("tests a variable by name, which evaluates its subscript")
	case len(op) == 2 && op[0] == '-' && strings.Contains(fileTests, op[1:]):
		in.touch(List, arg, false)
	}
}

func isBinaryTest(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o":
		return true
	}
	return false
}

// set judges set: only options that stop a script earlier or print more are known.
func set(in *invocation) {
	for i := 0; i < len(in.args); i++ {
		arg := &in.args[i]
		if arg.exact() && (arg.text == "--" || arg.text == "-") {
			return // positional parameters, which are never tracked
		}
		if !arg.exact() && arg.maybeOption() {
			in.unclearAfter("sets options only known at run time")
			return
		}
		if !strings.HasPrefix(arg.text, "-") && !strings.HasPrefix(arg.text, "+") {
			return
		}
		letters := arg.text[1:]
		if strings.HasSuffix(letters, "o") && i+1 < len(in.args) {
			i++
			letters = letters[:len(letters)-1]
			switch in.args[i].text {
			case "pipefail", "errexit", "nounset", "xtrace", "verbose", "noclobber":
			default:
				letters = "?"
			}
		}
		if strings.Trim(letters, "euxvC") != "" {
			in.unclearAfter("sets unsupported shell options")
			return
		}
	}
}

// read judges read, which assigns what it reads.
func read(in *invocation) {
	in.parse(&program{options: "r s e= d= n= N= p= t= u= a="})
	if in.cmd.Effect != ReadOnly {
		in.unclearAfter("has unsupported options")
	}
	targets := in.operands
	if a := in.option("a"); a != nil {
		targets = append(targets, *a.value)
	}
	for i := range targets {
		in.assignTo(&targets[i])
	}
	in.st.bind("REPLY", value{kind: unknown})
	*in.result = same(*in.st)
}

// assignTo judges an assignment to the variable that a word names.
func (in *invocation) assignTo(target *word) {
	why := "assigns to a variable only known at run time"
	if target.exact() {
		why = in.objection(target.text)
	}
	if why != "" {
		in.unclearAfter(why)
	}
	in.st.bind(target.text, value{kind: unknown})
}

// unset judges unset, which evaluates subscripts.
func unset(in *invocation) {
	in.parse(&program{options: "v"})
	if in.cmd.Effect != ReadOnly {
		in.unclearAfter("may unset functions or name references")
	}
	for i := range in.operands {
		in.assignTo(&in.operands[i])
	}
	*in.result = same(*in.st)
}

// plainWords judges builtins that are harmless with plain words and no options.
func plainWords(in *invocation) {
	for i := range in.args {
		if in.name != "wait" && !(in.name == "umask" && i == 0 && in.args[i].text == "-S") || !in.args[i].exact() && in.args[i].maybeOption() || strings.HasPrefix(in.args[i].text, "-") {
			in.unclearAfter("has unsupported arguments")
		}
	}
}

// export judges export, readonly and local where they are not keywords, as in sh.
func export(in *invocation) {
	for i := range in.args {
		arg := &in.args[i]
		name, text, given := strings.Cut(arg.text, "=")
		v := value{text: text}
		if !arg.exact() || !syntax.ValidName(name) {
			in.unclearAfter("is an unsupported assignment")
			continue
		}
		if why := in.objection(name); why != "" && !(in.name == "export" && given && exportable(name, v)) {
			in.unclearAfter(why)
		}
		if in.name == "export" && !(given && exportable(name, v)) {
			in.unclearAfter("exports " + name + " to all programs after it")
		}
		if !given {
			v = value{kind: unknown}
		}
		in.st.bind(name, v)
	}
	*in.result = same(*in.st)
}

// replace judges exec, which replaces the shell by a program.
func replace(in *invocation) {
	if len(in.args) == 0 {
		return // its redirections are judged like any others
	}
	if !in.args[0].exact() || strings.HasPrefix(in.args[0].text, "-") {
		in.unclearAfter("has unsupported options")
		return
	}
	in.inner(in.args)
}

// command judges command and builtin, which bypass functions.
func command(in *invocation) {
	args := in.args
	looks := false
	for in.name == "command" && len(args) > 0 && args[0].exact() && strings.HasPrefix(args[0].text, "-") {
		switch args[0].text {
		case "-v", "-V":
			looks = true
		case "--":
		default:
			in.unclearAfter("has unsupported options")
			return
		}
		args = args[1:]
	}
	switch {
	case looks || len(args) == 0:
	case args[0].exact() && builtin(args[0].text) == nil && in.name == "command" && !in.scriptFacts().functions[args[0].text]:
		in.inner(args)
	default:
		in.unclearAfter("runs a shell builtin by another name")
	}
}

// testClause judges [[ ]].
func (w *walker) testClause(st *state, x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		w.testClause(st, x.X)
	case *syntax.Word:
		w.single(st, x)
	case *syntax.UnaryTest:
		w.testUnary(st, x)
	case *syntax.BinaryTest:
		w.testBinary(st, x)
	default:
		w.unclear(x, "is an unsupported test")
	}
}

func (w *walker) testUnary(st *state, x *syntax.UnaryTest) {
	switch x.Op {
	case syntax.TsVarSet, syntax.TsRefVar:
		w.unclear(x, "tests a variable by name, which evaluates its subscript")
	case syntax.TsNot, syntax.TsParen, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsFdTerm, syntax.TsOptSet:
		w.testClause(st, x.X)
	default:
		word, ok := x.X.(*syntax.Word)
		if !ok {
			w.unclear(x, "is an unsupported test")
			return
		}
		w.testedFile(st, word)
	}
}

func (w *walker) testBinary(st *state, x *syntax.BinaryTest) {
	switch x.Op {
	case syntax.AndTest, syntax.OrTest, syntax.TsReMatch, syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsBefore, syntax.TsAfter:
		w.testClause(st, x.X)
		w.testClause(st, x.Y)
	case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
		for _, side := range []syntax.TestExpr{x.X, x.Y} {
			if word, ok := side.(*syntax.Word); ok {
				w.testedFile(st, word)
			}
		}
	default: // -eq and its like
		for _, side := range []syntax.TestExpr{x.X, x.Y} {
			word, ok := side.(*syntax.Word)
			if !ok {
				w.unclear(x, "is an unsupported test")
				continue
			}
			w.operandOf(st, word)
		}
	}
}

// testedFile records a file that a test of the shell examines.
func (w *walker) testedFile(st *state, sw *syntax.Word) {
	v := w.single(st, sw)
	accesses, ok := w.accesses(st, &v.value, Access{Kind: List, Text: v.src, Offset: v.pos})
	if !ok {
		w.unclear(sw, "tests a path only known at run time")
	}
	w.out.Redirects = append(w.out.Redirects, accesses...)
}
