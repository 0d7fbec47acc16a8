package shell

import (
	"iter"
	"strings"
)

// Options is what the words of a script depend on.
type Options struct {
	// Dialect is the shell that will run the script, "bash" or "sh"; empty is
	// bash. With sh, what not every POSIX shell understands alike is unclear.
	Dialect string
	// Dir is the absolute path of the directory the script starts in. Without
	// it every relative path is unclear.
	Dir string
	// Home is what ~ and $HOME stand for; without it they are unclear.
	Home string
}

// Effect is what a command may do to the world. The zero value knows nothing.
type Effect uint8

// The effects, from worst to best: the lowest one counts.
const (
	// Unknown: it may run or change what this package cannot tell. Its
	// accesses are those that were recognised, perhaps none.
	Unknown Effect = iota
	// Writes: it changes files, but only those that its accesses name.
	Writes
	// ReadOnly: it changes nothing, runs no other program than those among the
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
	List    Kind = iota // learns names, sizes and the like, never a content
	Read                // reads the content
	Write               // creates or changes it
	Delete              // removes it
	Network             // connects to the host in Path; empty if it is not known
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"list", "read", "write", "delete", "network"}[min(k, Network)]
}

// Access is one thing that a command touches.
type Access struct {
	Kind Kind
	// Path is absolute. It is not cleaned: behind a symbolic link, .. leads to
	// the parent of what the link points to, so whoever resolves links must see
	// the path as it is.
	Path string
	// Glob says that Path is a pattern for at least what the script's word can
	// match: * and ? match neither a slash nor a dot that a name begins with,
	// and \ takes the next character literally.
	Glob bool
	// Recursive says that everything below Path is touched as well.
	Recursive bool
	// SkipsHidden says that a recursive access leaves out the names below Path
	// that begin with a dot, as rg, fd and tree do.
	SkipsHidden bool
	// Text is the word as the script has it, and Offset where that begins, in
	// bytes. Inside the script of bash -c, Offset is that of the outer command.
	Text   string
	Offset int
}

// Command is a simple command that the script may run.
type Command struct {
	// Argv is the program and its arguments. A word that is only known at run
	// time stands as the script has it.
	Argv []string
	// Vague holds the indexes of such words in ascending order. Each may become
	// any number of words, so the positions behind the first are not certain.
	Vague []int
	// Text is the command as the script has it, and Offset where it begins, in
	// bytes. For the inner command of env, xargs and the like it is the part
	// that they run.
	Text   string
	Offset int
	// Effect is what this command does by itself. A wrapper such as timeout is
	// ReadOnly by itself; what it runs is a command of its own.
	Effect Effect
	// Why says in one line what keeps the command from being ReadOnly.
	Why string
	// Accesses is what the command touches through its arguments.
	Accesses []Access
}

// Exact reports whether Argv is just what the program would get.
func (c *Command) Exact() bool { return len(c.Vague) == 0 }

// Finding is a part of a script that cannot be judged, so a person must.
type Finding struct {
	Text   string // the offending part
	Offset int    // where it begins, in bytes
	Why    string // one line for the person
}

// Analysis is what a script would do.
type Analysis struct {
	// Commands are all simple commands in the order of the script. A loop over
	// words that are known has its commands once for each word.
	Commands []Command
	// Redirects are the files that the shell itself opens or, by cd, enters.
	Redirects []Access
	// Unclear is empty if the script was understood in full.
	Unclear []Finding
	// Env holds NAME=VALUE settings which the shell must be started with for
	// the effects to hold; they take the place of variables of the same names.
	Env []string
	// Repositories are the directories in which git runs, absolute. The effects
	// hold only if [CheckRepository] has nothing against any of them.
	Repositories []string
}

// Effect returns what the script as a whole may do, the accesses aside.
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

// Offence returns the first part of the script that keeps it from being
// ReadOnly; false if nothing does.
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

// Accesses yields all that the script touches: the redirects and what the
// commands open.
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

// Analyze tells what a script would do. It never fails and touches nothing:
// what it cannot understand is in Unclear. It may be called concurrently.
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

// excerpt is a part of a script for a person: one line, not too long.
func excerpt(text string) string {
	const most = 80
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
