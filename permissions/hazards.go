package permissions

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/lazy"
)

// hazard is something a command does that no rule can allow, except for an
// escalation (sudo), which a rule of the user can.
type hazard struct {
	what       string // as in "removes /"
	instead    string // what to do instead
	escalation string // the program that escalates
}

const (
	maxNesting    = 3
	maxRemovals   = 50 // rm calls within one command
	insteadRemove = "name the files or directories in it to remove"
	insteadDevice = "write to a file"
)

// hazards looks for what is never allowed in a command. If its words are not
// known it examines the text, and takes every word after a program that runs
// others for a program.
func (p *Policy) hazards(s *subject) hazard {
	if len(s.Resource) > maxCommand {
		return hazard{} // needs approval in every mode
	}
	if len(s.Argv) > 0 {
		return p.inArgv(s.Argv, cwd{s.dir, s.dir}, 0)
	}
	return p.inText(s.Resource, cwd{s.dir, s.dir}, 0)
}

// cwd is the session's directory and the one that a script has changed to;
// empty if unknown.
type cwd struct{ session, now string }

// inArgv judges a command and those that it may run.
func (p *Policy) inArgv(argv []string, at cwd, depth int) hazard {
	soft := p.inCommand(argv, at)
	if soft.binding() {
		return soft
	}
	removals := 0
	for i := runsFrom(argv); i < len(argv); i++ {
		if program(argv[i]) == "rm" {
			removals++
		}
		if removals > maxRemovals {
			return hazard{what: "runs rm too many times to check", instead: insteadRemove}
		}
		h := p.inCommand(argv[i:], at)
		if h.what == "" && depth < maxNesting && strings.ContainsAny(argv[i], " \t\n;|&(") {
			h = p.inText(argv[i], at, depth+1)
		}
		if h.binding() {
			return h
		}
		soft = cmp.Or(soft, h)
	}
	return soft
}

// binding reports whether no rule can excuse the hazard.
func (h hazard) binding() bool { return h.what != "" && h.escalation == "" }

// inCommand judges one command by its program and operands.
func (p *Policy) inCommand(argv []string, at cwd) hazard {
	name := program(argv[0])
	switch {
	case name == "rm":
		return p.inRemoval(argv[1:], at)
	case name == "find":
		return p.inFind(argv[1:], at)
	case escalates(name):
		return hazard{
			what: "runs a command as another user (" + name + ")", escalation: name,
			instead: "run the command without " + name + "; only a rule in the user's settings that names the command, such as shell(" + name + " PROGRAM *), allows it",
		}
	case writesDevice(name, argv[1:]):
		return hazard{what: "writes to a raw device", instead: insteadDevice}
	}
	return hazard{}
}

// inRemoval judges the operands of rm.
func (p *Policy) inRemoval(args []string, at cwd) hazard {
	recursive, options := false, true
	var operands []string
	for _, a := range args {
		switch {
		case options && a == "--":
			options = false
		case options && len(a) > 3 && strings.HasPrefix("--recursive", a):
			recursive = true
		case options && len(a) > 1 && a[0] == '-' && a[1] != '-':
			recursive = recursive || strings.ContainsAny(a, "rR")
		case options && strings.HasPrefix(a, "--"):
		default:
			operands = append(operands, a)
		}
	}
	if !recursive {
		return hazard{}
	}
	for _, o := range operands {
		if target, ok := p.operand(o, at.now); ok && p.irremovable(target, at.session) {
			return hazard{what: "removes " + show(target), instead: insteadRemove}
		}
	}
	return hazard{}
}

// narrowing are the tests of find that select few files.
var narrowing = []string{"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-atime", "-ctime", "-size", "-empty", "-user", "-inum", "-samefile", "-maxdepth"}

// inFind judges find with -delete, or with rm, on everything below a directory.
func (p *Policy) inFind(args []string, at cwd) hazard {
	expression := slices.IndexFunc(args, func(a string) bool {
		return len(a) > 1 && a[0] == '-' && a != "-H" && a != "-L" && a != "-P" || a == "!" || a == "("
	})
	if expression < 0 {
		return hazard{}
	}
	removes := slices.ContainsFunc(args[expression:], func(a string) bool { return a == "-delete" || program(a) == "rm" })
	if !removes || slices.ContainsFunc(args[expression:], func(a string) bool { return slices.Contains(narrowing, a) }) {
		return hazard{}
	}
	roots := slices.DeleteFunc(slices.Clone(args[:expression]), func(a string) bool { return strings.HasPrefix(a, "-") })
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for _, root := range roots {
		if target, ok := p.operand(root, at.now); ok && p.irremovable(target, at.session) {
			return hazard{what: "removes everything in " + show(target), instead: insteadRemove}
		}
	}
	return hazard{}
}

// operand returns the path that an operand of a command refers to; a glob for
// everything in a directory refers to the directory. It is false if unknown.
func (p *Policy) operand(word, dir string) (string, bool) {
	word = slashed(word)
	for _, home := range []string{"~", "$HOME"} {
		if rest, ok := strings.CutPrefix(word, home); ok && p.home != "" && (rest == "" || rest[0] == '/') {
			word = p.home + rest
		}
	}
	if rest, ok := strings.CutPrefix(word, "$PWD"); ok && (rest == "" || rest[0] == '/') {
		word = "." + rest
	}
	if word == "" || strings.Contains(word, "$") {
		return "", false
	}
	if !isAbs(word) {
		if dir == "" || word[0] == '~' {
			return "", false
		}
		word = dir + "/" + word
	}
	i := strings.LastIndexByte(word, '/')
	if last := word[i+1:]; strings.Contains(last, "*") && strings.Trim(last, "*.[]!?{},") == "" {
		word = word[:i+1]
	}
	return path.Clean(word), true
}

// irremovable reports whether a directory must not be removed: the root, the
// home and workspace directories, and their parents.
func (p *Policy) irremovable(target, session string) bool {
	target = fold(target)
	if isVolumeRoot(target) || session != "" && under(fold(session), target) || p.home != "" && under(fold(p.home), target) {
		return true
	}
	for _, root := range p.roots {
		if under(root, target) {
			return true
		}
	}
	return false
}

// writesDevice reports whether a program writes to a raw device that is one of
// its operands.
func writesDevice(name string, args []string) bool {
	switch {
	case name == "dd":
		for _, a := range args {
			if to, ok := strings.CutPrefix(a, "of="); ok && isRawDevice(to) {
				return true
			}
		}
		return false
	case name == "cp", name == "mv", name == "install":
		return len(args) > 0 && isRawDevice(args[len(args)-1])
	}
	switch name, _, _ = strings.Cut(name, "."); name {
	case "mkfs", "mke2fs", "mkswap", "wipefs", "shred", "tee", "blkdiscard", "badblocks", "parted", "fdisk", "sfdisk", "sgdisk", "gdisk", "truncate":
	default:
		return false
	}
	for _, a := range args {
		if isRawDevice(a) {
			return true
		}
	}
	return false
}

// isRawDevice reports whether a path is a disk or memory device.
func isRawDevice(p string) bool {
	p = fold(slashed(p))
	if strings.HasPrefix(p, "//./physicaldrive") || strings.HasPrefix(p, "//./harddisk") {
		return true
	}
	name, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}
	switch name {
	case "mem", "kmem", "port":
		return true
	}
	for _, kind := range [...]string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "nbd", "loop", "mapper/", "zd", "mtd", "pmem"} {
		if strings.HasPrefix(name, kind) {
			return true
		}
	}
	return false
}

var (
	homeInBraces = strings.NewReplacer("${HOME}", "$HOME", "${PWD}", "$PWD")
	// A function that pipes itself into itself in the background.
	forkBomb = lazy.Regexp(`([^\s;|&(){}]+)\(\)\{([^\s;|&(){}]+)\|([^\s;|&(){}]+)&\};?([^\s;|&(){}]+)`)
	// A redirection with its target, which may be quoted.
	redirection = lazy.Regexp(`>[|&]?\s*["']?([^\s"';|&<>()]+)`)
)

var bombHazard = hazard{what: "is a fork bomb", instead: "do not run code that starts copies of itself without limit"}

// inText judges a command line whose words are not known: it splits it at
// anything that may separate commands, and treats each part as plain words.
func (p *Policy) inText(text string, at cwd, depth int) hazard {
	if isForkBomb(text) {
		return bombHazard
	}
	if redirectsToDevice(text) {
		return hazard{what: "writes to a raw device", instead: insteadDevice}
	}
	var soft hazard
	for part := range strings.FieldsFuncSeq(homeInBraces.Replace(text), separatesCommands) {
		argv := plainWords(part)
		if len(argv) == 0 {
			continue
		}
		if argv[0] == "cd" || argv[0] == "pushd" {
			at.now = p.changeDir(argv[1:], at.now)
			continue
		}
		h := p.inArgv(argv, at, depth)
		if h.binding() {
			return h
		}
		soft = cmp.Or(soft, h)
	}
	return soft
}

func redirectsToDevice(text string) bool {
	if !strings.Contains(text, ">") {
		return false
	}
	return slices.ContainsFunc(redirection().FindAllStringSubmatch(text, -1), func(m []string) bool { return isRawDevice(m[1]) })
}

func separatesCommands(r rune) bool { return strings.ContainsRune(";|&\n\r()`{}", r) }

// plainWords splits a command at spaces, removes quotes, and drops assignments
// and reserved words before the program.
func plainWords(part string) []string {
	words := strings.Fields(part)
	for i, w := range words {
		words[i] = stripQuotes(w)
	}
	for len(words) > 0 {
		switch w := words[0]; w {
		case "", "!", "if", "then", "else", "elif", "while", "until", "do":
		default:
			name, _, ok := strings.Cut(w, "=")
			if !ok || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }) {
				return words
			}
		}
		words = words[1:]
	}
	return nil
}

// changeDir returns the directory that cd changes to; empty if unknown.
func (p *Policy) changeDir(args []string, dir string) string {
	switch {
	case len(args) == 0:
		return p.home
	case len(args) > 1:
		return ""
	}
	to, ok := p.operand(args[0], dir)
	if !ok {
		return ""
	}
	return to
}

func isForkBomb(text string) bool {
	bare := strings.Join(strings.Fields(text), "")
	if strings.Contains(bare, "%0|%0") {
		return true
	}
	if !strings.Contains(bare, "(){") {
		return false
	}
	for _, m := range forkBomb().FindAllStringSubmatch(bare, -1) {
		if strings.HasSuffix(m[1], m[2]) && m[2] == m[3] && strings.HasPrefix(m[4], m[2]) {
			return true
		}
	}
	return false
}

// namedPlace looks for sensitive and protected paths among the words of a
// command.
func (p *Policy) namedPlace(s *subject) (word string, found place) {
	words := s.Argv
	if len(words) == 0 {
		words = []string{s.Resource}
	}
	if s.Scope == core.ScopeSkillScript {
		words = withoutScript(words)
	}
	readsOnly := keepsFiles(s.certain())
	for _, w := range words {
		for part := range strings.FieldsFuncSeq(stripQuotes(w), notInWord) {
			if strings.Contains(part, "://") && !strings.HasPrefix(part, "file:") {
				continue
			}
			for piece := range strings.FieldsFuncSeq(part, notInPath) {
				at := p.wordPlace(piece)
				if at == guarded && readsOnly {
					continue
				}
				if at > found {
					word, found = piece, at
				}
			}
		}
	}
	return word, found
}

// keepsFiles reports whether a command is one of git that only records files, so
// that naming a protected one does not change it.
func keepsFiles(argv []string) bool {
	return len(argv) > 1 && program(argv[0]) == "git" && slices.Contains([]string{"add", "stage", "commit", "push", "tag"}, argv[1])
}

// withoutScript removes the script itself from a skill's command: it lies in the
// agent's own directory, which is otherwise protected.
func withoutScript(words []string) []string {
	i := slices.IndexFunc(words, func(w string) bool {
		w = slashed(w)
		return isAbs(w) && strings.Contains(w, "/skills/") && strings.Contains(w, "/scripts/")
	})
	if i < 0 {
		return words
	}
	return slices.Concat(words[:i], words[i+1:])
}

func notInPath(r rune) bool { return r == ':' || r == '@' }

// wordPlace classifies a word of a command as a path. Words such as "secret"
// count only if the word looks like one.
func (p *Policy) wordPlace(word string) place {
	word = fold(slashed(word))
	if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		word = word[2:] // -f.env
	}
	if isAbs(word) {
		return p.placeAt(word)
	}
	skip := 0
	if !strings.ContainsAny(word, "/.") {
		skip = len(word)
	}
	return placeOf(word, skip)
}
