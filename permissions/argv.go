package permissions

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

// argvPattern is a pattern for the words of a command.
type argvPattern struct {
	words   []string
	more    bool   // further words may follow
	program string // as deny and ask rules compare it
}

// parseArgvPattern parses a pattern: words, quoted where necessary, and an
// optional final * for any further ones. The column of an error counts from 0.
func parseArgvPattern(text string) (p *argvPattern, column int, err error) {
	p = &argvPattern{}
	var word strings.Builder
	inWord, star := false, -1
	flush := func() {
		switch {
		case star >= 0:
			p.more = true
		case inWord:
			p.words = append(p.words, word.String())
		}
		word.Reset()
		inWord, star = false, -1
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == ' ' || c == '\t' {
			flush()
			continue
		}
		if p.more || star >= 0 {
			return nil, i, errStar
		}
		switch c {
		case '*':
			if inWord {
				return nil, i, errStar
			}
			star = i
			continue
		case '\'', '"':
			n, ok := unquote(&word, text[i:])
			if !ok {
				return nil, i, errors.New("unclosed quote")
			}
			i += n
		case '\\':
			if i++; i == len(text) {
				return nil, i - 1, errors.New(`expected a character after \`)
			}
			word.WriteByte(text[i])
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	flush()
	if len(p.words) == 0 && !p.more || len(p.words) > 0 && p.words[0] == "" {
		return nil, 0, errors.New("expected the name of a program")
	}
	if len(p.words) > 0 {
		p.program = program(p.words[0])
	}
	return p, 0, nil
}

var errStar = errors.New("* must be a separate last word, as in go test *: quote it if it is part of a word")

// unquote appends the value of the quoted string at the start of text and
// returns the index of its closing quote.
func unquote(to *strings.Builder, text string) (int, bool) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return i, true
		case c == '\\' && quote == '"' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\'):
			i++
			to.WriteByte(text[i])
		default:
			to.WriteByte(c)
		}
	}
	return 0, false
}

// quoteArgv returns the pattern that matches exactly the words.
func quoteArgv(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		plain := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			return unicode.IsSpace(r) || strings.ContainsRune(`*'"\()`, r)
		})
		if quoted[i] = a; !plain {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// matches reports whether the words are those of the pattern. Unknown words match
// only a final *, and some arguments match only if the pattern has them.
func (p *argvPattern) matches(s *subject) bool {
	return p.begins(s) && (!p.more || uncovered(p.words, s) == "")
}

// begins reports whether a command begins with the words of the pattern.
func (p *argvPattern) begins(s *subject) bool {
	if len(s.Argv) == 0 || s.sure < len(p.words) || !p.more && len(s.Argv) > len(p.words) {
		return false
	}
	return slices.Equal(p.words, s.Argv[:len(p.words)])
}

// mayMatch reports whether a command could match the pattern or run one that
// does. Known words decide, the program compared by base name. For unknown words,
// and for what the program runs in turn, the program's name as a word is enough.
func (p *argvPattern) mayMatch(s *subject) bool {
	if len(p.words) == 0 || slices.Contains(s.programs, p.program) {
		return true
	}
	if s.program != p.program || s.sure == 0 {
		return false
	}
	for i, word := range p.words[1:] {
		switch {
		case i+1 >= s.sure:
			return s.sure < len(s.Argv)
		case s.Argv[i+1] != word:
			return false
		}
	}
	return p.more || s.sure < len(s.Argv) || len(s.Argv) == len(p.words)
}

// readPrograms sets the programs that deny and ask rules compare with.
func (s *subject) readPrograms() {
	if len(s.Argv) == 0 {
		s.programs = appendPrograms(nil, s.Resource)
		return
	}
	if s.sure > 0 {
		s.program = program(s.Argv[0])
	}
	for _, word := range s.Argv[runsFrom(s.Argv):] {
		s.programs = appendPrograms(s.programs, word)
	}
}

// appendPrograms appends what could be the name of a program in a text, also with
// quotes and escapes removed.
func appendPrograms(to []string, text string) []string {
	for w := range strings.FieldsFuncSeq(text, notInWord) {
		to = append(to, program(w))
	}
	if bare := stripQuotes(text); len(bare) != len(text) {
		for w := range strings.FieldsFuncSeq(bare, notInWord) {
			to = append(to, program(w))
		}
	}
	return to
}

// program returns the name by which programs are compared.
func program(word string) string {
	if i := strings.LastIndexAny(word, `/\`); i >= 0 {
		word = word[i+1:]
	}
	return strings.TrimSuffix(fold(word), ".exe")
}

func notInWord(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`;|&()<>{}$=,!#", r)
}

var quoteStripper = strings.NewReplacer("'", "", `"`, "", "\\\n", "", `\`, "")

func stripQuotes(s string) string {
	if !strings.ContainsAny(s, `'"\`) {
		return s
	}
	return quoteStripper.Replace(s)
}

// runsFrom returns the index of the first word that a command might run as a
// program or script; len(argv) if its program runs no others.
func runsFrom(argv []string) int {
	switch name := program(argv[0]); strings.TrimRight(name, "0123456789.-") {
	case "find", "fd", "fdfind":
		i := slices.IndexFunc(argv, func(a string) bool {
			return a == "-x" || a == "-X" || strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") || strings.HasPrefix(a, "--exec")
		})
		if i < 0 {
			return len(argv)
		}
		return i
	case "env", "timeout", "nohup", "nice", "ionice", "chrt", "taskset", "setsid", "stdbuf", "time", "watch", "xargs",
		"parallel", "command", "builtin", "exec", "eval", "trap", "busybox", "toybox", "chroot", "unshare",
		"nsenter", "flock", "script", "strace", "ltrace", "gdb", "expect", "systemd-run", "start-stop-daemon",
		"python", "perl", "ruby", "node", "php", "lua", "awk", "gawk", "mawk", "npx", "bunx", "uvx":
		return 1
	default:
		if isShell(name) || escalates(name) {
			return 1
		}
	}
	return len(argv)
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh":
		return true
	}
	return false
}

// escalates reports whether a program, as returned by program, runs others as
// another user.
func escalates(name string) bool {
	switch name {
	case "sudo", "sudoedit", "su", "doas", "pkexec", "run0", "runuser", "gsudo", "runas", "sudo-rs", "calife", "dzdo":
		return true
	}
	return false
}
