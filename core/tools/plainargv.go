package tools

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPlainScript is the longest command line that is parsed.
const maxPlainScript = 10_000

// plainArgv returns the arguments that a POSIX shell or bash passes to the only
// program that script starts, if that is certain: the script consists of words
// of plain characters and single-quoted strings, separated by spaces, and the
// first word is neither an assignment nor a keyword or builtin of the shell. For
// everything else it reports false: the script needs real parsing.
func plainArgv(script string) ([]string, bool) {
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

// plainByte reports whether a character is literal, unquoted and anywhere in a
// word.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_@%+=:,./-", c) >= 0
}

// unprintable reports whether a character may disguise a line: control,
// invisible and direction-changing characters, separators.
func unprintable(r rune) bool {
	return r != ' ' && !unicode.IsPrint(r)
}

// plainProgram reports whether a first word only starts a program. A word with
// "=" may be an assignment, and one with "%" a job.
func plainProgram(word string) bool {
	return word != "" && !strings.ContainsAny(word, "=%") && !shellWord(word)
}

// shellWord reports whether a word is a keyword or builtin of sh or bash. It
// leaves out builtins that always behave like the program of the same name.
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
