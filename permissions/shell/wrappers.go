package shell

import (
	"slices"
	"strings"
)

// wrappers are programs that run the command after their options. They are
// harmless with these options; skip is the number of operands before the
// command.
var wrappers = map[string]struct {
	program

	skip int
}{
	"timeout": {program{options: "s= signal= k= kill-after= v verbose foreground preserve-status"}, 1},
	"nice":    {program{options: "n= adjustment= #"}, 0},
	"ionice":  {program{options: "c= class= n= classdata= t ignore"}, 0},
	"stdbuf":  {program{options: "i= o= e= input= output= error="}, 0},
	"time":    {program{options: "p v f= format= portability verbose", refused: map[string]string{"o": "writes a file", "output": "writes a file"}}, 0},
	"chronic": {program{options: "v e"}, 0},
}

// runners also run a command, but change something else, too.
var runners = map[string]string{
	"sudo": "runs a command as another user", "doas": "runs a command as another user", "su": "runs a command as another user",
	"pkexec": "runs a command as another user", "run0": "runs a command as another user", "runuser": "runs a command as another user",
	"sudo-rs": "runs a command as another user", "gosu": "runs a command as another user", "setpriv": "runs a command with different privileges",
	"setsid": "runs a command that outlives the script", "nohup": "runs a command that may outlive the script, and may write nohup.out",
	"chroot": "runs a command with another root directory", "unshare": "runs a command in other namespaces", "nsenter": "runs a command in other namespaces",
	"busybox": "runs one of its own programs", "toybox": "runs one of its own programs", "caffeinate": "keeps the machine awake", "taskset": "runs a command on selected processors",
	"chrt": "runs a command with another priority", "flock": "runs a command with a lock on a file", "script": "runs a command and writes its output to a file",
	"strace": "runs a command under a tracer", "ltrace": "runs a command under a tracer", "watch": "runs a command repeatedly",
	"entr": "runs a command when files change", "parallel": "runs a command many times", "systemd-run": "runs a command outside the session",
	"unbuffer": "runs a command in a terminal", "proxychains": "runs a command through a proxy", "faketime": "runs a command with a preloaded library",
	"fakeroot": "runs a command with a preloaded library", "direnv": "runs a command with settings from a file", "rlwrap": "runs a command in a terminal", "dbus-run-session": "runs a command in its own session",
}

var shells = map[string]string{"bash": "bash", "sh": "sh", "dash": "sh", "ash": "sh"}

func wraps(name string) bool {
	_, wrapper := wrappers[name]
	return wrapper || runners[name] != "" || shells[name] != "" || name == "env" || name == "xargs"
}

// wrapper judges a program that runs another command.
func (in *invocation) wrapper() bool {
	if w, ok := wrappers[in.name]; ok {
		w.first = true
		in.parse(&w.program)
		if len(in.operands) > w.skip {
			for i := range in.operands[:w.skip] {
				if !in.operands[i].exact() {
					in.unclearAfter("has operands only known at run time before its command")
				}
			}
			in.inner(in.operands[w.skip:])
		}
		return true
	}
	if why := runners[in.name]; why != "" {
		in.unknown(why)
		in.guess()
		return true
	}
	switch {
	case shells[in.name] != "":
		in.shell(shells[in.name])
	case in.name == "env":
		in.env()
	case in.name == "xargs":
		in.xargs()
	default:
		return false
	}
	return true
}

// inner judges the command that this one runs.
func (in *invocation) inner(words []word) {
	if len(words) == 0 {
		return
	}
	first, last := &words[0], &words[len(words)-1]
	text := in.cmd.Text
	if from, to := first.pos, last.pos+len(last.src); !in.walker.inner && from >= 0 && from < to && to <= len(in.script) {
		text = in.script[from:to]
	}
	in.external(words, text)
}

// external judges a command that is started without the shell, so that builtins
// and functions do not apply.
func (in *invocation) external(words []word, text string) {
	name := words[0].text
	if words[0].exact() && (in.scriptFacts().functions[name] || builtin(name) != nil && !alsoProgram(name)) {
		in.unclearAfter("runs the program " + name + ", not the shell builtin")
		return
	}
	if strings.Contains(name, "=") || in.name == "time" && name == "!" {
		in.unclearAfter("may set a variable for a command, if time is a shell keyword")
		return
	}
	in.depth++
	defer func() { in.depth-- }()
	if in.depth > maxNesting {
		in.unclearAfter("nests too deeply")
		return
	}
	in.run(*in.st, words, text, words[0].pos)
}

// alsoProgram reports whether a builtin also exists as a program.
func alsoProgram(name string) bool {
	switch name {
	case "echo", "printf", "test", "[", "true", "false", "pwd":
		return true
	}
	return false
}

// guess reports what a runner seems to run, so that rules can match it: all words
// from the first that could be a program.
func (in *invocation) guess() {
	for i := range in.args {
		arg := &in.args[i]
		if arg.exact() && (arg.text == "" || strings.HasPrefix(arg.text, "-") || strings.Contains(arg.text, "=")) {
			continue
		}
		if in.depth < maxNesting {
			in.depth++
			in.run(*in.st, in.args[i:], in.cmd.Text, in.cmd.Offset)
			in.depth--
		}
		return
	}
}

// shell judges bash -c and the like.
func (in *invocation) shell(dialect string) {
	args := in.args
	hasScript := false
	for len(args) > 0 && args[0].exact() && len(args[0].text) > 1 && args[0].text[0] == '-' {
		letters := args[0].text[1:]
		args = args[1:]
		if letters == "-version" || letters == "-help" {
			return
		}
		if strings.HasSuffix(letters, "o") && len(args) > 0 && args[0].text == "pipefail" {
			args = args[1:]
			letters = letters[:len(letters)-1]
		}
		if strings.Trim(letters, "ceux") != "" {
			in.unclearAfter("starts a shell with unsupported options")
			return
		}
		hasScript = hasScript || strings.Contains(letters, "c")
	}
	if !hasScript || len(args) == 0 {
		in.unclearAfter("runs commands from a file or from stdin")
		return
	}
	if !args[0].exact() {
		in.unclearAfter("runs commands only known at run time")
		return
	}
	in.nested(args[0].text, dialect)
}

// nested judges a script within this one. It has its own variables.
func (in *invocation) nested(script, dialect string) {
	f, bad := screen(script)
	if !bad {
		file, finding, ok := parse(script, dialect)
		if f, bad = finding, !ok; ok {
			o := in.o
			o.Dialect = dialect
			w := &walker{script: script, o: o, out: in.out, root: file, steps: in.steps, depth: in.depth + 1, outer: in.cmd.Offset, inner: true}
			inner := state{dirs: in.st.dirs}
			for name := range in.below(in.root).vars {
				inner.bind(name, value{kind: unknown}) // may be in the environment
			}
			for b := in.st.vars; b != nil; b = b.next {
				inner.bind(b.name, value{kind: unknown})
			}
			w.stmts(inner, file.Stmts)
			in.walker.out, in.walker.steps = w.out, w.steps
		}
	}
	if bad {
		in.unclearAfter("runs a script that " + f.Why)
	}
}

// env judges env.
func (in *invocation) env() {
	p := program{first: true, options: "i ignore-environment 0 null u= unset= v debug help version", refused: map[string]string{
		"S": "splits a string into a command", "split-string": "splits a string into a command", "C": "changes the directory", "chdir": "changes the directory",
	}}
	in.parse(&p)
	if in.cmd.Effect != ReadOnly {
		in.unclearAfter("has unsupported options")
		return
	}
	for _, o := range in.options {
		if o.value != nil && (!o.value.exact() || AffectsPrograms(o.value.text)) {
			in.unclearAfter("unsets a variable that may change what the command does")
		}
	}
	if in.has("i", "ignore-environment") {
		in.unclearAfter("clears the variables that keep commands harmless")
	}
	rest := in.operands
	for len(rest) > 0 && rest[0].text == "-" {
		in.unclearAfter("clears the variables that keep commands harmless")
		rest = rest[1:]
	}
	for len(rest) > 0 && strings.Contains(rest[0].text, "=") {
		name, text, _ := strings.Cut(rest[0].text, "=")
		if !rest[0].exact() || !exportable(name, value{text: text}) {
			in.unclearAfter("sets a variable that may change what the command does")
		}
		rest = rest[1:]
	}
	in.inner(rest)
}

// xargs judges xargs.
func (in *invocation) xargs() {
	p := program{first: true, options: "0 null r no-run-if-empty t verbose x exit n= max-args= P= max-procs= L= max-lines= s= max-chars= d= delimiter= I= a=< arg-file=< E= i? show-limits"}
	in.parse(&p)
	if in.cmd.Effect != ReadOnly {
		in.unclearAfter("has unsupported options")
		return
	}
	if len(in.operands) == 0 {
		return // echo
	}
	more := word{value: value{kind: unknown}, many: true, src: "…", pos: in.cmd.Offset}
	words := append([]word{}, in.operands...)
	exact := !slices.ContainsFunc(in.args, func(v word) bool { return !v.exact() })
	if in.st.names != nil && exact && in.has("0", "null") && !in.has("a", "arg-file", "d", "delimiter") {
		more.value = *in.st.names
	}
	if mark := in.option("I", "i"); mark != nil {
		token := "{}"
		if mark.value != nil {
			token = mark.value.text
		}
		words = substitute(words, token, more.value)
	} else {
		words = append(words, more)
	}
	in.inner(words)
}

// substitute replaces a token in the words by a value.
func substitute(words []word, token string, v value) []word {
	for i := range words {
		prefix, _, found := strings.Cut(words[i].text, token)
		switch {
		case token == "" || !found:
		case words[i].text == token && v.kind != unknown:
			words[i].value = v
		default:
			words[i].value = value{text: prefix, kind: unknown}
		}
	}
	return words
}
