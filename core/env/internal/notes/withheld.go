package notes

import (
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/lazy"
)

// Withheld tells the model which variables a command did not get, if it seems to
// need them. Otherwise it would try to find out why a database is unreachable, or ask
// for a password.
type Withheld struct {
	names []string // of the withheld variables
	line  string   // the command line
	tail  *Tail
}

// WatchWithheld keeps the end of a command's output for the note, given the names of
// the variables that it does not get. It returns nil if there is nothing to tell, or
// nobody to tell it to.
func WatchWithheld(withheld []string, cmd *core.Command) *Withheld {
	if len(withheld) == 0 || cmd.Minimal {
		return nil
	}
	w := &Withheld{line: cmd.Script + strings.Join(cmd.Argv, " ")}
	if w.tail = Watch(&cmd.Stdout, &cmd.Stderr); w.tail == nil {
		return nil
	}
	for _, name := range withheld {
		if !slices.ContainsFunc(cmd.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			w.names = append(w.names, name)
		}
	}
	return w
}

// maxNames limits the variables that a note names.
const maxNames = 8

// refusedAccess is the output of programs that lack a credential or an address.
var refusedAccess = lazy.Regexp(`(?i)connection refused|could not connect|unable to connect|can't connect|cannot connect|failed to connect|` +
	`connect: |econnrefused|enotfound|could not resolve|no such host|authentication|authenticate|unauthori[sz]ed|access denied|permission denied \(|` +
	`forbidden|credential|\b40[137]\b|\bdsn\b|webhook|database url|proxy|environment variable|env var|not set|is required|undefined`)

// Explain appends the note: variables that the command line or the output of a
// failed command names; if the command failed for want of access, those that
// hold addresses.
func (w *Withheld) Explain(exit core.Exit) {
	if w == nil {
		return
	}
	failed := exit.Code != 0
	output := string(w.tail.Kept)
	named := slices.DeleteFunc(slices.Clone(w.names), func(name string) bool {
		return !expands(w.line, name) && !(failed && mentions(w.line+"\n"+output, name))
	})
	if len(named) == 0 && failed && refusedAccess().MatchString(output) {
		named = slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return !namesAddress(name) })
	}
	if len(named) == 0 {
		return
	}
	if len(named) > maxNames {
		named = append(named[:maxNames], "…")
	}
	text := "[environment: commands do not get " + strings.Join(named, ", ") + ", which may contain a secret. " +
		"If the command needs it, ask the user to add the name to the setting tools.passEnv.]\n"
	w.tail.Note(text)
}

// expands reports whether a script expands a variable.
func expands(script, name string) bool {
	for _, form := range []string{"$" + name, "${" + name, "%" + name + "%", "$env:" + name} {
		for rest := script; ; {
			_, after, found := strings.Cut(rest, form)
			if !found {
				break
			}
			if after == "" || !isNameByte(after[0]) {
				return true
			}
			rest = after
		}
	}
	return false
}

// mentions reports whether a text contains a name as a word.
func mentions(text, name string) bool {
	for rest := text; ; {
		before, after, found := strings.Cut(rest, name)
		if !found {
			return false
		}
		if (before == "" || !isNameByte(before[len(before)-1])) && (after == "" || !isNameByte(after[0])) {
			return true
		}
		rest = after
	}
}

func isNameByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// namesAddress reports whether a name is that of an address, which programs use
// without naming it.
func namesAddress(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"URL", "URI", "PROXY", "DSN", "WEBHOOK", "HOST", "ENDPOINT", "CONNECTION", "REGISTRY", "INDEX", "AUTH_CONFIG"},
		func(part string) bool { return strings.Contains(name, part) })
}
