package shell

import (
	"path"
	"slices"
	"strings"
)

// findWords are the words of find's expression and what they take: "1" is an
// operand, "." a path whose metadata is read.
var findWords = map[string]string{
	"-H": "", "-P": "", "-O0": "", "-O1": "", "-O2": "", "-O3": "", "-E": "", "-X": "", "-x": "", "-s": "",
	"-maxdepth": "1", "-mindepth": "1", "-depth": "", "-mount": "", "-xdev": "", "-noleaf": "", "-ignore_readdir_race": "", "-warn": "", "-nowarn": "", "-daystart": "", "-regextype": "1",
	"-name": "1", "-iname": "1", "-path": "1", "-ipath": "1", "-wholename": "1", "-iwholename": "1", "-regex": "1", "-iregex": "1", "-lname": "1", "-ilname": "1",
	"-type": "1", "-xtype": "1", "-size": "1", "-empty": "", "-perm": "1", "-user": "1", "-group": "1", "-uid": "1", "-gid": "1", "-nouser": "", "-nogroup": "", "-links": "1", "-inum": "1",
	"-mtime": "1", "-atime": "1", "-ctime": "1", "-mmin": "1", "-amin": "1", "-cmin": "1", "-used": "1", "-newer": ".", "-anewer": ".", "-cnewer": ".", "-newermt": "1", "-newerat": "1", "-newerct": "1", "-samefile": ".",
	"-readable": "", "-writable": "", "-executable": "", "-fstype": "1", "-true": "", "-false": "",
	"-print": "", "-print0": "", "-printf": "1", "-ls": "", "-prune": "", "-quit": "",
	"!": "", "-not": "", "-a": "", "-and": "", "-o": "", "-or": "", "(": "", ")": "", ",": "",
}

// findRefused says why some other words are not harmless.
var findRefused = map[string]string{
	"-delete": "deletes what it finds", "-fprint": writesFile, "-fprint0": writesFile, "-fprintf": writesFile, "-fls": writesFile,
	"-ok": "runs a program", "-okdir": "runs a program", "-execdir": "runs a program in the directories it finds", "-L": followsLink, "-follow": followsLink, "-files0-from": readsList,
}

// findRunners are the words of find that run a program on what it finds.
var findRunners = []string{"-exec", "-execdir", "-ok", "-okdir"}

// blind are programs that do not read the files that they are given.
var blind = []string{"ls", "stat", "chmod", "chown", "touch", "echo", "printf", "mv", "rm", "rmdir", "unlink", "basename", "dirname", "readlink", "realpath", "test", "du", "mkdir", "ln"}

// removers are programs that remove the files that they are given.
var removers = []string{"rm", "unlink", "shred"}

// find judges find: roots, then an expression.
func find(in *invocation) {
	i := 0
	for i < len(in.args) && in.args[i].exact() && (in.args[i].text == "-H" || in.args[i].text == "-P") {
		i++
	}
	start := i
	for i < len(in.args) && !beginsExpression(in, &in.args[i]) {
		i++
	}
	roots := in.args[start:i]
	a := Access{Kind: List, Recursive: true}
	if slices.ContainsFunc(in.args[i:], func(w word) bool { return w.text == "-delete" || slices.Contains(removers, path.Base(w.text)) }) {
		a.Loss = LosesSome
	}
	in.each(roots, a)
	in.findExpression(in.args[i:], roots)
}

// findReads records that a program that find runs may read what it finds.
func (in *invocation) findReads(program string, args, roots []word) {
	if slices.Contains(blind, path.Base(program)) {
		return
	}
	if len(roots) == 0 {
		roots = []word{{value: value{text: "."}, src: "find"}}
	}
	in.readTrees(roots, nil, Access{Kind: Read, Recursive: true, Name: named(args)})
}

func beginsExpression(in *invocation, arg *word) bool {
	if !arg.exact() {
		if arg.maybeOption() {
			in.unknown(arg.src + " may be part of the expression")
		}
		return false
	}
	return strings.HasPrefix(arg.text, "-") && len(arg.text) > 1 || arg.text == "!" || arg.text == "(" || arg.text == ")" || arg.text == ","
}

func (in *invocation) findExpression(args []word, roots []word) {
	onlyFiles, simple := false, true
	in.found = nil
	for i := 0; i < len(args); i++ {
		arg := &args[i]
		if arg.exact() && arg.text == "-exec" {
			found := filesBelow(roots, onlyFiles && simple)
			if found.name = named(args); found.kind != below && i+1 < len(args) {
				in.findReads(args[i+1].text, args, roots)
			}
			i += in.findExec(args[i+1:], found)
			simple = false // the output is mixed with the command's
			continue
		}
		takes, known := findWords[arg.text]
		if !arg.exact() || !known {
			if slices.Contains(findRunners, arg.text) && i+1 < len(args) {
				in.findReads(args[i+1].text, args, roots)
			}
			in.refuseFind(arg)
			return
		}
		switch arg.text {
		case "-o", "-or", ",", "!", "-not", "(", "-print", "-printf", "-ls":
			simple = false
		case "-print0":
			if v := filesBelow(roots, onlyFiles && simple && i == len(args)-1); v.kind == below {
				v.name = named(args)
				in.found = &v
			}
		}
		if takes == "" || i+1 == len(args) {
			continue
		}
		i++
		onlyFiles = onlyFiles || arg.text == "-type" && args[i].exact() && args[i].text == "f"
		if args[i].many {
			in.unknown(args[i].src + " may be part of the expression")
		}
		if takes == "." {
			in.touch(List, &args[i], false)
		}
	}
}

func (in *invocation) refuseFind(arg *word) {
	why, ok := findRefused[arg.text]
	if !ok {
		why = "is not known to be harmless"
	}
	in.unknown("find " + arg.src + " " + why)
	if arg.text == "-execdir" || arg.text == "-ok" || arg.text == "-okdir" {
		in.guessBehind(arg.text)
	}
}

// guessBehind reports the command after a word of this one.
func (in *invocation) guessBehind(text string) {
	for i := range in.args {
		if in.args[i].text == text {
			in.args = in.args[i+1:]
			in.guess()
			return
		}
	}
}

// filesBelow is what is known of the files that find finds: that they are below
// its root and not symbolic links, if the expression ensures it.
func filesBelow(roots []word, sure bool) value {
	switch {
	case !sure || len(roots) > 1:
	case len(roots) == 0:
		return value{text: ".", kind: below}
	case roots[0].exact() && !strings.HasPrefix(roots[0].text, "-"):
		return value{text: roots[0].text, kind: below}
	}
	return value{kind: unknown}
}

// findExec judges the command of -exec, with a value in place of {}, and returns
// the number of its words.
func (in *invocation) findExec(args []word, found value) int {
	end := 0
	for end < len(args) && !(args[end].exact() && (args[end].text == ";" || args[end].text == "+" && end > 0 && args[end-1].text == "{}")) {
		end++
	}
	if end == 0 || end == len(args) {
		in.unclearAfter("has an unterminated -exec")
		return len(args)
	}
	in.inner(substitute(append([]word{}, args[:end]...), "{}", found))
	return end + 1
}
