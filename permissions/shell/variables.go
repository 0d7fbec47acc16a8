package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// isNumber reports whether arithmetic treats the value as a number, not as an
// expression, which could run commands.
func (v value) isNumber() bool {
	return v.kind == number || v.kind == literal && isDecimal(v.text)
}

func isDecimal(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// assigned reports the assignment of variables that change how the shell or later
// programs behave.
func (w *walker) assigned(n syntax.Node, name string) {
	if why := w.objection(name); why != "" {
		w.unclear(n, why)
	}
}

func (w *walker) objection(name string) string {
	switch {
	case !syntax.ValidName(name):
		return "assigns to something other than a plain variable"
	case AffectsPrograms(name):
		return "sets " + name + ", which changes what the shell or programs do"
	}
	return ""
}

// AffectsPrograms reports whether a variable, which may already be exported, has a meaning
// for the shell, the C library or a known program.
func AffectsPrograms(name string) bool {
	if strings.ToLower(name) == name { // programs rarely use such names
		return strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_") || name == "_"
	}
	switch name {
	case "PATH", "HOME", "PWD", "OLDPWD", "IFS", "ENV", "CDPATH", "GLOBIGNORE", "FIGNORE", "EXECIGNORE", "HOSTFILE",
		"INPUTRC", "SHELL", "SHELLOPTS", "PROMPT_COMMAND", "PROMPT_DIRTRIM", "TMPDIR", "TMOUT", "FUNCNEST", "REPLY", "OPTIND",
		"OPTARG", "COPROC", "DIRSTACK", "FCEDIT", "LOCPATH", "NLSPATH", "GCONV_PATH", "GETCONF_DIR", "HOSTALIASES",
		"LOCALDOMAIN", "RES_OPTIONS", "TZ", "TZDIR", "MAGIC", "TERM", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "POSIXLY_CORRECT",
		"PAGER", "EDITOR", "VISUAL", "BROWSER", "GZIP", "BZIP", "BZIP2", "ZIPOPT", "UNZIP", "TAPE", "MAIL", "MAILPATH", "USER", "LOGNAME", "GREP_COLORS":
		return true
	}
	for _, prefix := range [...]string{
		"BASH", "PS", "LD_", "DYLD_", "GLIBC_", "MALLOC_", "HIST", "TEXTDOMAIN", "COMP", "READLINE_",
		"GIT", "SSH_", "XDG_", "LESS", "MAN", "GREP_", "RIPGREP_", "FD_", "FZF_", "JQ_", "BAT_", "DELTA_", "AG_", "ACK", "EZA_", "LS_", "TREE_", "DIFF_",
		"GO", "CGO_", "CARGO", "RUST", "PYTHON", "PIP", "PERL", "RUBY", "GEM_", "BUNDLE_", "NODE_", "NPM_", "YARN_", "DENO_", "BUN_", "JAVA", "JDK_", "MAVEN_", "GRADLE_",
		"TAR_", "XZ_", "ZSTD_", "RSYNC_", "CVS_", "SVN_", "HG", "DOCKER_", "COMPOSE_", "KUBE", "AWS_", "AZURE_", "GCLOUD_", "CLOUDSDK_", "GH_", "GITHUB_",
		"AWK", "GAWK", "SED", "SUDO_", "DBUS_", "SYSTEMD_", "GNUPG", "GPG_", "MAKE", "CMAKE_", "QT_", "GTK_", "OPENSSL_", "SSL_", "CURL_", "WGET", "NO_PROXY",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, suffix := range [...]string{
		"PAGER", "EDITOR", "_PROXY", "_OPTS", "_OPTIONS", "FLAGS", "_CONFIG", "CONFIG_FILE", "CONFIG_PATH", "_COMMAND", "_PATH", "_PRELOAD", "_HOME", "_ASKPASS", "RC",
	} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// exportable reports whether a variable is harmless for programs, such as those
// that only affect formatting.
func exportable(name string, v value) bool {
	if v.kind != literal && v.kind != number || strings.Trim(v.text, plainCharacters+"*") != "" {
		return false
	}
	switch name {
	case "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES":
		return !strings.Contains(v.text, "/")
	case "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "CI", "BLOCK_SIZE", "QUOTING_STYLE", "TIME_STYLE":
		return true
	case "TZ":
		return !strings.HasPrefix(v.text, "/") && !strings.HasPrefix(v.text, ":") && !strings.Contains(v.text, "..")
	case "GIT_PAGER", "PAGER":
		return v.text == "cat" || v.text == ""
	case "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT":
		return v.text == "0"
	case "GOFLAGS":
		return v.text == "" || v.text == "-mod=vendor" || v.text == "-mod=readonly"
	case "GOOS", "GOARCH", "CGO_ENABLED":
		return !strings.ContainsAny(v.text, "/.")
	case "GOTOOLCHAIN":
		return v.text == "local"
	case "GOPROXY", "GOWORK", "GOSUMDB":
		return v.text == "off"
	}
	return false
}

// assign judges an assignment and remembers its value.
func (w *walker) assign(st *state, as *syntax.Assign) {
	if as.Name == nil {
		w.single(st, as.Value)
		w.unclear(as, "assigns to a name only known at run time")
		return
	}
	w.assigned(as, as.Name.Value)
	if as.Index != nil {
		w.arithmetic(st, as.Index)
	}
	v := value{kind: unknown}
	switch {
	case as.Array != nil:
		w.array(st, as.Array)
	case as.Value != nil:
		v = w.single(st, as.Value).value
	case !as.Naked:
		v = value{}
	}
	if as.Append || as.Index != nil || as.Naked {
		v = value{kind: unknown}
	}
	if w.assignedInFunction(as.Name.Value) {
		v = value{kind: unknown}
	}
	st.bind(as.Name.Value, v)
}

// array walks through the elements of an array; their values are not tracked.
func (w *walker) array(st *state, a *syntax.ArrayExpr) {
	for _, elem := range a.Elems {
		if elem.Index != nil {
			w.arithmetic(st, elem.Index)
		}
		if elem.Value != nil {
			w.words(st, elem.Value)
		}
	}
}

// assignedInFunction reports whether a function of the script assigns the variable, so
// that any call may change its value.
func (w *walker) assignedInFunction(name string) bool {
	f := w.scriptFacts()
	return len(f.functions) > 0 && f.inFunctions[name]
}

// declare judges declare, local, export, readonly and typeset.
func (w *walker) declare(st *state, d *syntax.DeclClause) {
	export := d.Variant.Value == "export"
	if d.Variant.Value == "nameref" {
		w.unclear(d, "makes one variable a reference to another")
	}
	for _, as := range d.Args {
		if as.Naked && as.Name == nil {
			w.declareOption(st, as, d.Variant.Value)
			continue
		}
		before := st.vars
		w.assign(st, as)
		if !export {
			continue
		}
		v := value{kind: unknown}
		if b := st.vars; b != before && !as.Naked && !as.Append {
			v = b.value
		}
		if !exportable(as.Name.Value, v) {
			w.unclear(as, "exports "+as.Name.Value+" to all later programs")
		}
	}
}

func (w *walker) declareOption(st *state, as *syntax.Assign, variant string) {
	option := w.single(st, as.Value)
	if option.kind == literal && variant != "export" {
		switch option.text {
		case "-r", "-g", "-a", "-A", "-p", "-ga", "-gA", "-ar", "-ra", "-gr":
			return
		}
	}
	w.unclear(as, "is an unsupported option or name")
}

// parameter judges a parameter expansion and returns what is known of it.
func (w *walker) parameter(st *state, p *syntax.ParamExp) value {
	if p.Param == nil || p.Flags != nil || p.NestedParam != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 {
		w.unclear(p, "is not a bash or sh expansion")
		return value{kind: unknown}
	}
	if p.Excl && p.Names == 0 {
		w.unclear(p, "expands the variable named by another")
	}
	v := w.variable(st, p.Param.Value)
	if p.Index != nil {
		w.index(st, p.Index)
		v = value{kind: unknown}
	}
	if p.Length {
		return value{text: "*", kind: number}
	}
	if p.Slice != nil {
		w.arithmetic(st, p.Slice.Offset)
		w.arithmetic(st, p.Slice.Length)
		v = value{kind: unknown}
	}
	if p.Repl != nil {
		w.inExpansion(st, p.Repl.Orig)
		w.inExpansion(st, p.Repl.With)
		v = value{kind: unknown}
	}
	if p.Exp != nil {
		v = w.modified(st, p, v)
	}
	if p.Excl || p.Names != 0 {
		v = value{kind: unknown}
	}
	return v
}

// modified judges ${name:-word} and the like.
func (w *walker) modified(st *state, p *syntax.ParamExp, v value) value {
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		if arg := p.Exp.Word.Lit(); arg == "" || !strings.Contains("UuLQ", arg) {
			w.unclear(p, "is an expansion that the shell evaluates again")
		}
		return value{kind: unknown}
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		w.assigned(p, p.Param.Value)
		w.inExpansion(st, p.Exp.Word)
		st.bind(p.Param.Value, value{kind: unknown})
		return value{kind: unknown}
	}
	w.inExpansion(st, p.Exp.Word)
	return value{kind: unknown}
}

// inExpansion walks through a word of an expansion. Whether single quotes quote
// there depends on the context and on the shell.
func (w *walker) inExpansion(st *state, sw *syntax.Word) {
	if sw == nil {
		return
	}
	for _, part := range sw.Parts {
		if q, ok := part.(*syntax.SglQuoted); ok && strings.ContainsAny(q.Value, "$`\\\"}\n") {
			w.unclear(q, "has quotes in an expansion, which may not quote")
		}
	}
	w.single(st, sw)
}

// variable returns what is known of a variable's value.
func (w *walker) variable(st *state, name string) value {
	if v, ok := st.lookup(name); ok {
		return v
	}
	switch name {
	case "#", "?", "$", "!", "UID", "EUID", "PPID", "BASHPID", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "LINENO":
		return value{text: "*", kind: number}
	case "HOME":
		if w.o.Home != "" {
			return value{text: w.o.Home}
		}
	case "PWD":
		if len(st.dirs) == 1 {
			return value{text: st.dirs[0]}
		}
	}
	return value{kind: unknown}
}

// index judges the subscript of an array.
func (w *walker) index(st *state, x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && (word.Lit() == "@" || word.Lit() == "*") {
		return
	}
	w.arithmetic(st, x)
}

// arithmetic judges an expression. The shell evaluates the values of variables as
// expressions, and runs the substitutions in subscripts.
func (w *walker) arithmetic(st *state, x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.ParenArithm:
		w.arithmetic(st, x.X)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.arithmeticTarget(st, x.X)
			return
		}
		w.arithmetic(st, x.X)
	case *syntax.BinaryArithm:
		w.arithmetic(st, x.Y)
		if assigns(x.Op) {
			w.arithmeticTarget(st, x.X)
			return
		}
		w.arithmetic(st, x.X)
	case *syntax.Word:
		w.operandOf(st, x)
	default:
		w.unclear(x, "is unsupported arithmetic")
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn,
		syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn, syntax.AndBoolAssgn, syntax.OrBoolAssgn,
		syntax.XorBoolAssgn, syntax.PowAssgn:
		return true
	}
	return false
}

// arithmeticTarget judges a variable that arithmetic reads and assigns.
func (w *walker) arithmeticTarget(st *state, x syntax.ArithmExpr) {
	target, ok := x.(*syntax.Word)
	if !ok || !syntax.ValidName(target.Lit()) {
		w.unclear(x, "is an assignment in arithmetic to something other than a plain variable")
		return
	}
	name := target.Lit()
	if v, bound := st.lookup(name); bound && !v.isNumber() {
		w.unclear(x, "is a variable in arithmetic that may contain an expression that runs commands")
	}
	w.assigned(x, name)
	st.bind(name, value{text: "*", kind: number})
}

// operandOf judges a number or variable in arithmetic. A variable that the script
// has not assigned comes from the environment or is empty.
func (w *walker) operandOf(st *state, x *syntax.Word) {
	text := x.Lit()
	if text != "" && text[0] >= '0' && text[0] <= '9' && strings.Trim(text, "0123456789abcdefABCDEFxX#") == "" {
		return
	}
	const why = "is a value in arithmetic that may contain an expression that runs commands"
	if syntax.ValidName(text) {
		if v, bound := st.lookup(text); bound && !v.isNumber() || !bound && setByShell(text) && !w.variable(st, text).isNumber() {
			w.unclear(x, why)
		}
		return
	}
	if len(x.Parts) == 1 {
		if p, ok := x.Parts[0].(*syntax.ParamExp); ok && p.Param != nil && p.Index == nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && !p.Excl && syntax.ValidName(p.Param.Value) {
			if _, bound := st.lookup(p.Param.Value); !bound && !setByShell(p.Param.Value) {
				return
			}
		}
	}
	if v := w.single(st, x); !v.isNumber() {
		w.unclear(x, why)
	}
}

// setByShell reports whether the shell itself sets a variable to a value that may
// come from the script: $_ is the last argument of the last command.
func setByShell(name string) bool {
	switch name {
	case "_", "REPLY", "MAPFILE", "OPTARG", "OPTIND", "PWD", "OLDPWD", "DIRSTACK", "FUNCNAME", "COPROC", "PIPESTATUS":
		return true
	}
	return strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "READLINE_") || strings.HasPrefix(name, "COMP")
}

// facts are properties of a script as a whole.
type facts struct {
	jumps       bool            // break, continue or return occurs
	functions   map[string]bool // that the script defines
	inFunctions map[string]bool // variables that functions assign
	cdInside    bool            // a function changes the directory
}

// scriptFacts gathers the facts in one pass, if the script can have any.
func (w *walker) scriptFacts() *facts {
	if w.facts != nil {
		return w.facts
	}
	w.facts = &facts{}
	for _, sign := range [...]string{"function", "break", "continue", "return"} {
		if strings.Contains(w.script, sign) {
			w.facts.gather(w.root)
			return w.facts
		}
	}
	for _, behind := range strings.Split(w.script, "(")[1:] {
		if strings.HasPrefix(strings.TrimLeft(behind, " \t\n\\"), ")") { // f()
			w.facts.gather(w.root)
			break
		}
	}
	return w.facts
}

func (f *facts) gather(root syntax.Node) {
	f.functions, f.inFunctions = map[string]bool{}, map[string]bool{}
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				f.functions[n.Name.Value] = true
			}
			c := changes(n.Body)
			for name := range c.vars {
				f.inFunctions[name] = true
			}
			f.cdInside = f.cdInside || c.cd
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				switch n.Args[0].Lit() {
				case "break", "continue", "return":
					f.jumps = true
				}
			}
		}
		return true
	})
}

// change is what a part of a script may change.
type change struct {
	vars map[string]bool // assigned variables; true if only to numbers
	cd   bool            // the directory may change
}

// below returns what may change below a node.
func (w *walker) below(n syntax.Node) change {
	c, known := w.changed[n]
	if !known {
		c = changes(n)
		if w.changed == nil {
			w.changed = map[syntax.Node]change{}
		}
		w.changed[n] = c
	}
	return c
}

func changes(root syntax.Node) change {
	c := change{vars: map[string]bool{}}
	note := func(name string, isNumber bool) {
		before, seen := c.vars[name]
		c.vars[name] = isNumber && (before || !seen)
	}
	syntax.Walk(root, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				note(n.Name.Value, !n.Append && n.Index == nil && n.Array == nil && isNumberWord(n.Value))
			}
		case *syntax.WordIter:
			note(n.Name.Value, false)
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				note(n.Param.Value, false)
			}
		case *syntax.UnaryArithm:
			if target, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.Inc || n.Op == syntax.Dec) {
				note(target.Lit(), true)
			}
		case *syntax.BinaryArithm:
			if target, ok := n.X.(*syntax.Word); ok && assigns(n.Op) {
				note(target.Lit(), true)
			}
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			switch n.Args[0].Lit() {
			case "cd", "pushd", "popd":
				c.cd = true
			case "command", "builtin":
				c.cd = true
				fallthrough
			case "read", "getopts", "mapfile", "readarray", "unset", "printf", "wait":
				for _, arg := range n.Args[1:] {
					note(arg.Lit(), false)
				}
				note("REPLY", false)
				note("MAPFILE", false)
			}
		}
		return true
	})
	return c
}

func isNumberWord(word *syntax.Word) bool {
	if word == nil || len(word.Parts) != 1 {
		return false
	}
	if _, ok := word.Parts[0].(*syntax.ArithmExp); ok {
		return true
	}
	return isDecimal(word.Lit())
}

// forget returns the state without what a node may change: it is unknown when and
// how often a loop or function runs.
func (w *walker) forget(st state, n syntax.Node) state {
	c := w.below(n)
	for name := range c.vars {
		v := value{kind: unknown}
		old, bound := st.lookup(name)
		if bound && old.isNumber() && w.below(w.root).vars[name] {
			v = value{text: "*", kind: number}
		}
		if !bound || old != v {
			st.bind(name, v)
		}
	}
	if c.cd {
		st.dirs = nil
	}
	return st
}
