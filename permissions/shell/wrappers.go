package shell

import (
	"slices"
	"strings"
)

// wrappers are programs that run the command behind their options. By
// themselves they are harmless with the options that stand here; skip is the
// number of operands before the command.
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

// runners run a command too, but change more than that by themselves.
var runners = map[string]string{
	"sudo": "runs a command as another user", "doas": "runs a command as another user", "su": "runs a command as another user",
	"pkexec": "runs a command as another user", "run0": "runs a command as another user", "runuser": "runs a command as another user",
	"sudo-rs": "runs a command as another user", "gosu": "runs a command as another user", "setpriv": "runs a command with other rights",
	"setsid": "runs a command that outlives the script", "nohup": "runs a command that may outlive the script, and may write nohup.out",
	"chroot": "runs a command in another root", "unshare": "runs a command in other namespaces", "nsenter": "runs a command in other namespaces",
	"busybox": "runs a program of its own", "toybox": "runs a program of its own", "caffeinate": "keeps the machine awake", "taskset": "runs a command bound to processors",
	"chrt": "runs a command with another priority", "flock": "runs a command with a lock on a file", "script": "runs a command and writes its output to a file",
	"strace": "runs a command under a tracer", "ltrace": "runs a command under a tracer", "watch": "runs a command again and again",
	"entr": "runs a command when files change", "parallel": "runs a command many times", "systemd-run": "runs a command outside of the session",
	"unbuffer": "runs a command in a terminal", "proxychains": "runs a command with its network changed", "faketime": "runs a command with a library put into it",
	"fakeroot": "runs a command with a library put into it", "direnv": "runs a command with settings from a file", "rlwrap": "runs a command in a terminal", "dbus-run-session": "runs a command in a session of its own",
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
					in.bend("has operands before its command that are only known when the script runs")
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

// external judges a command that is started without the shell: builtins and
// functions do not count.
func (in *invocation) external(words []word, text string) {
	name := words[0].text
	if words[0].exact() && (in.scriptFacts().functions[name] || builtin(name) != nil && !alsoProgram(name)) {
		in.bend("runs the program " + name + ", which is not the shell's " + name)
		return
	}
	if strings.Contains(name, "=") || in.name == "time" && name == "!" {
		in.bend("may set a variable for a command, if time is a word of the shell's own")
		return
	}
	in.depth++
	defer func() { in.depth-- }()
	if in.depth > maxNesting {
		in.bend("nests too deeply")
		return
	}
	in.run(*in.st, words, text, words[0].pos)
}

// alsoProgram reports whether a builtin exists as a program that does the same.
func alsoProgram(name string) bool {
	switch name {
	case "echo", "printf", "test", "[", "true", "false", "pwd":
		return true
	}
	return false
}

// guess reports what a runner seems to run, so that rules can see it: the words
// from the first one on that could be a program.
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

// shell judges bash -c and its like.
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
			in.bend("starts a shell with options that are not judged here")
			return
		}
		hasScript = hasScript || strings.Contains(letters, "c")
	}
	if !hasScript || len(args) == 0 {
		in.bend("runs commands from a file or from its input")
		return
	}
	if !args[0].exact() {
		in.bend("runs commands that are only known when the script runs")
		return
	}
	in.nested(args[0].text, dialect)
}

// nested judges a script within this one. Its variables are its own.
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
				inner.bind(name, value{kind: unknown}) // it may have been in the environment
			}
			for b := in.st.vars; b != nil; b = b.next {
				inner.bind(b.name, value{kind: unknown})
			}
			w.stmts(inner, file.Stmts)
			in.walker.out, in.walker.steps = w.out, w.steps
		}
	}
	if bad {
		in.bend("runs a script that " + f.Why)
	}
}

// env judges env.
func (in *invocation) env() {
	p := program{first: true, options: "i ignore-environment 0 null u= unset= v debug help version", refused: map[string]string{
		"S": "splits a text into a command", "split-string": "splits a text into a command", "C": "changes the directory", "chdir": "changes the directory",
	}}
	in.parse(&p)
	if in.cmd.Effect != ReadOnly {
		in.bend("has options that are not judged here")
		return
	}
	for _, o := range in.options {
		if o.value != nil && (!o.value.exact() || steers(o.value.text)) {
			in.bend("takes away a variable that may change what the command does")
		}
	}
	if in.has("i", "ignore-environment") {
		in.bend("takes away the variables that keep commands harmless")
	}
	rest := in.operands
	for len(rest) > 0 && rest[0].text == "-" {
		in.bend("takes away the variables that keep commands harmless")
		rest = rest[1:]
	}
	for len(rest) > 0 && strings.Contains(rest[0].text, "=") {
		name, text, _ := strings.Cut(rest[0].text, "=")
		if !rest[0].exact() || !exportable(name, value{text: text}) {
			in.bend("gives the command a variable that may change what it does")
		}
		rest = rest[1:]
	}
	in.inner(rest)
}

// xargs runs a command with arguments that it reads.
func (in *invocation) xargs() {
	p := program{first: true, options: "0 null r no-run-if-empty t verbose x exit n= max-args= P= max-procs= L= max-lines= s= max-chars= d= delimiter= I= a=< arg-file=< E= i? show-limits"}
	in.parse(&p)
	if in.cmd.Effect != ReadOnly {
		in.bend("has options that are not judged here")
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

// substitute puts a value into the words where a token stands.
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
