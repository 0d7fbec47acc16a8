package shell

import (
	"iter"
	"strings"
)

// Options describe the environment of a script.
type Options struct {
	// Dialect is the shell that will run the script, "bash" or "sh"; empty is
	// bash. With sh, what POSIX shells parse differently is unclear.
	Dialect string
	// Dir is the absolute path of the directory the script starts in. Without
	// it every relative path is unclear.
	Dir string
	// Home is the value of ~ and $HOME; without it they are unclear.
	Home string
}

// Effect is what a command may change. The zero value is Unknown.
type Effect uint8

// The effects, from worst to best: a script has the worst of its commands.
const (
	// Unknown: it may run or change anything. Its accesses are those that were
	// recognized, if any.
	Unknown Effect = iota
	// Writes: it changes files, but only those that its accesses name.
	Writes
	// ReadOnly: it changes nothing, runs no program that is not among the
	// commands, and opens only what its accesses name.
	ReadOnly
)

// String returns "unknown", "writes" or "read-only".
func (e Effect) String() string {
	switch e {
	case Writes:
		return "writes"
	case ReadOnly:
		return "read-only"
	}
	return "unknown"
}

// Kind is what a command does with a path.
type Kind uint8

// The kinds of access.
const (
	List    Kind = iota // reads metadata such as names and sizes, not content
	Read                // reads the content
	Write               // creates or changes it
	Delete              // removes it
	Network             // connects to the host in Path; empty if unknown
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"list", "read", "write", "delete", "network"}[min(k, Network)]
}

// Loss is which files an access removes or empties.
type Loss uint8

// The losses.
const (
	LosesNone      Loss = iota
	LosesAll            // all that it names
	LosesSome           // some of them
	LosesUntracked      // those that git does not know
	LosesModified       // those that git knows, but with other content
)

// Access is one access of a command to a file or host.
type Access struct {
	Kind Kind
	// Path is absolute. It is not cleaned: after a symbolic link, .. is the
	// parent of the link's target, so links must be resolved first.
	Path string
	// Glob says that Path is a pattern that matches at least what the script's
	// word can match: * and ? match neither a slash nor a leading dot, and \
	// escapes the next character.
	Glob bool
	// Recursive includes everything below Path.
	Recursive bool
	// SkipsHidden excludes names below Path that begin with a dot, as rg, fd and
	// tree do.
	SkipsHidden bool
	// Name limits a recursive access to files with names that match this pattern, if
	// there is one, and Without excludes names.
	Name    string
	Without []string
	// Loss is what becomes of the content of the files.
	Loss Loss
	// From limits the loss to files below Path with the names of those in this
	// directory or, if Unpacked, archive or patch. Unpacked without From is one that
	// the command gets through its input. Strip says that the names may lack their
	// first elements. If the names cannot be found out, the loss is not limited.
	From     string
	Unpacked bool
	Strip    bool
	// Text is the word in the script, and Offset its position in bytes. Within
	// the script of bash -c, Offset is that of the outer command.
	Text   string
	Offset int
}

// Command is a simple command that the script may run.
type Command struct {
	// Argv is the program and its arguments. A word only known at run time is
	// the source text.
	Argv []string
	// Vague holds the indexes of such words in ascending order. Each may expand
	// to any number of words, so positions after the first are uncertain.
	Vague []int
	// Text is the command in the script, and Offset its position in bytes. For
	// the inner command of env, xargs and the like it is the part that they run.
	Text   string
	Offset int
	// Effect is that of this command alone. A wrapper such as timeout is
	// ReadOnly; what it runs is a separate command.
	Effect Effect
	// Why says in one line why the command is not ReadOnly.
	Why string
	// Accesses is what the command accesses through its arguments.
	Accesses []Access
}

// Exact reports whether Argv is exactly what the program would receive.
func (c *Command) Exact() bool { return len(c.Vague) == 0 }

// Finding is a part of a script that cannot be analyzed or is not read-only.
type Finding struct {
	Text   string // the part of the script
	Offset int    // in bytes
	Why    string // a predicate, such as "writes to a file"
}

// Analysis is what a script would do.
type Analysis struct {
	// Commands are all simple commands in the order of the script. The commands
	// of a loop over known words appear once per word.
	Commands []Command
	// Redirects are the files that the shell itself opens.
	Redirects []Access
	// Unclear is empty if the whole script was analyzed.
	Unclear []Finding
	// Env holds NAME=VALUE settings that the shell must be started with for the
	// effects to be right; they replace variables of the same names.
	Env []string
	// Repositories are the directories in which git runs, absolute. The effects
	// are right only if [CheckRepository] returns nil for all of them.
	Repositories []string
}

// Effect returns the effect of the script as a whole.
func (a *Analysis) Effect() Effect {
	if len(a.Unclear) > 0 {
		return Unknown
	}
	effect := ReadOnly
	for i := range a.Commands {
		effect = min(effect, a.Commands[i].Effect)
	}
	for i := range a.Redirects {
		if a.Redirects[i].Kind >= Write {
			effect = min(effect, Writes)
		}
	}
	return effect
}

// Offence returns the first part of the script that is not ReadOnly; false if
// there is none.
func (a *Analysis) Offence() (Finding, bool) {
	if len(a.Unclear) > 0 {
		return a.Unclear[0], true
	}
	for i := range a.Commands {
		if c := &a.Commands[i]; c.Effect != ReadOnly {
			return Finding{Text: c.Text, Offset: c.Offset, Why: c.Why}, true
		}
	}
	for i := range a.Redirects {
		if r := &a.Redirects[i]; r.Kind >= Write {
			return Finding{Text: r.Text, Offset: r.Offset, Why: "writes to a file"}, true
		}
	}
	return Finding{}, false
}

// Accesses yields all accesses of the script: redirects, then commands.
func (a *Analysis) Accesses() iter.Seq[*Access] {
	return func(yield func(*Access) bool) {
		for i := range a.Redirects {
			if !yield(&a.Redirects[i]) {
				return
			}
		}
		for i := range a.Commands {
			for j := range a.Commands[i].Accesses {
				if !yield(&a.Commands[i].Accesses[j]) {
					return
				}
			}
		}
	}
}

// Analyze returns what a script would do. It has no effects and never fails: what
// it cannot analyze is in Unclear. It is safe for concurrent use.
func Analyze(script string, o Options) Analysis {
	if f, bad := screen(script); bad {
		return Analysis{Unclear: []Finding{f}}
	}
	file, f, ok := parse(script, o.Dialect)
	if !ok {
		return Analysis{Unclear: []Finding{f}}
	}
	w := newWalker(script, o)
	w.file(file)
	return w.out
}

// excerpt makes a part of a script one short line.
func excerpt(text string) string {
	const most = 80
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
