package tools

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPlainScript is the longest command line that is looked at.
const maxPlainScript = 10_000

// PlainArgv returns the arguments that a POSIX shell or bash gives to the one
// program that script starts, if that is certain: the script is words of
// harmless characters and single-quoted strings, separated by spaces, and the
// first word is neither an assignment nor something that the shell itself acts
// on. For everything else it reports false, which means nothing but that the
// script needs a closer look.
func PlainArgv(script string) ([]string, bool) {
	if len(script) > maxPlainScript || !utf8.ValidString(script) {
		return nil, false
	}
	var argv []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == ' ':
			if inWord {
				argv = append(argv, word.String())
				word.Reset()
			}
			inWord = false
		case c == '\'':
			n := strings.IndexByte(script[i+1:], '\'')
			if n < 0 {
				return nil, false
			}
			quoted := script[i+1 : i+1+n]
			if strings.ContainsFunc(quoted, unprintable) {
				return nil, false
			}
			word.WriteString(quoted)
			i += n + 1
			inWord = true
		case plainByte(c):
			word.WriteByte(c)
			inWord = true
		default:
			return nil, false
		}
	}
	if inWord {
		argv = append(argv, word.String())
	}
	if len(argv) == 0 || !plainProgram(argv[0]) {
		return nil, false
	}
	return argv, true
}

// plainByte reports whether a character means itself, unquoted and anywhere in
// a word.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_@%+=:,./-", c) >= 0
}

// unprintable reports whether a character may make a line look like another
// one: controls, invisible and direction-changing characters, separators.
func unprintable(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r)
}

// plainProgram reports whether a first word starts a program and does nothing
// else. A word with "=" may be an assignment, and one with "%" a job.
func plainProgram(word string) bool {
	return word != "" && !strings.ContainsAny(word, "=%") && !shellWord(word)
}

// shellWord reports whether a word is a keyword of sh or bash, or one of their
// builtins but for those that do as the program of the same name does, whatever
// their arguments are.
func shellWord(word string) bool {
	switch word {
	case "!", "[", "[[", "]]", "{", "}", ".", ":",
		"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
		"select", "function", "time", "coproc",
		"alias", "bg", "bind", "break", "builtin", "caller", "cd", "chdir", "command", "compgen", "complete",
		"compopt", "continue", "declare", "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc", "fg",
		"getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf",
		"pushd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test",
		"times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait":
		return true
	}
	return false
}
