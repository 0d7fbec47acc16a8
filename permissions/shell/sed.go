package shell

import "strings"

var sedOptions = program{
	options: "n e= E r s z u l= quiet silent expression= regexp-extended separate null-data unbuffered line-length= posix debug sandbox" + help,
	refused: map[string]string{"f": "runs a script from a file", "file": "runs a script from a file", "i": "changes files in place", "in-place": "changes files in place"},
}

// sed judges sed by its script.
func sed(in *invocation) {
	in.parse(&sedOptions)
	var scripts []*word
	for _, o := range in.options {
		if o.name == "e" || o.name == "expression" {
			scripts = append(scripts, o.value)
		}
	}
	rest := in.operands
	if len(scripts) == 0 && len(rest) > 0 {
		scripts, rest = []*word{&rest[0]}, rest[1:]
	}
	var script strings.Builder
	for _, s := range scripts {
		if !s.exact() {
			in.unknown("sed runs a script only known at run time")
			return
		}
		script.WriteString(s.text + "\n")
	}
	if why := judgeSed(script.String()); why != "" {
		in.unknown("sed " + why)
	}
	for i := range rest {
		in.touch(Read, &rest[i], false)
	}
}

// sedScanner reads a sed script. It knows only the commands that print and edit
// the stream.
type sedScanner struct {
	text string
	at   int
}

// judgeSed says what is not harmless in a script; empty if nothing.
func judgeSed(text string) string {
	s := &sedScanner{text: text}
	for {
		s.skip(" \t\n;}")
		if s.at >= len(s.text) {
			return ""
		}
		if why := s.command(); why != "" {
			return why
		}
	}
}

const sedOdd = "has an unsupported script"

func (s *sedScanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *sedScanner) skip(set string) {
	for s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

// command reads addresses and one command.
func (s *sedScanner) command() string {
	if !s.address() {
		return sedOdd
	}
	s.skip(" \t")
	if s.peek() == ',' {
		s.at++
		s.skip(" \t")
		if !s.address() {
			return sedOdd
		}
	}
	s.skip(" \t!")
	c := s.peek()
	s.at++
	switch c {
	case '{':
		return ""
	case 'p', 'd', '=', 'n', 'N', 'h', 'H', 'g', 'G', 'x', 'D', 'P', 'z', 'F':
		return s.end()
	case 'q', 'Q', 'l', 'L':
		s.skip(" \t0123456789")
		return s.end()
	case 's':
		return s.substitution()
	case 'y':
		if !s.delimited(2) {
			return sedOdd
		}
		return s.end()
	case 'w', 'W':
		return "w " + writesFile
	case 'e':
		return "e runs a command"
	case 'r', 'R':
		return "r reads a file named in its script"
	}
	return sedOdd
}

// end checks that only a separator follows.
func (s *sedScanner) end() string {
	s.skip(" \t")
	switch s.peek() {
	case ';', '\n', '}':
		return ""
	}
	return sedOdd
}

// address reads an optional address.
func (s *sedScanner) address() bool {
	switch c := s.peek(); {
	case c >= '0' && c <= '9', c == '+', c == '~':
		s.skip("0123456789~+")
	case c == '$':
		s.at++
	case c == '/' || c == '\\':
		if c == '\\' {
			s.at++
		}
		if !s.delimited(1) {
			return false
		}
		s.skip("IM")
	}
	return true
}

// substitution reads what follows s.
func (s *sedScanner) substitution() string {
	if !s.delimited(2) {
		return sedOdd
	}
	for {
		switch c := s.peek(); {
		case c == 'w':
			return "s///w " + writesFile
		case c == 'e':
			return "s///e runs a command"
		case c != 0 && strings.IndexByte("gpiIMm0123456789", c) >= 0:
			s.at++
		default:
			return s.end()
		}
	}
}

// delimited reads n strings between delimiters. It fails on a delimiter within
// brackets, on which the versions of sed differ.
func (s *sedScanner) delimited(n int) bool {
	delimiter := s.peek()
	s.at++
	if delimiter == 0 || delimiter == '\n' || delimiter == '\\' || delimiter >= 0x80 {
		return false
	}
	for ; n > 0; n-- {
		open := false
		for ; s.peek() != delimiter; s.at++ {
			switch s.peek() {
			case 0, '\n':
				return false
			case '[':
				open = true
			case ']':
				open = false
			case '\\':
				if s.at++; s.peek() == 0 || s.peek() == '\n' {
					return false
				}
			}
		}
		if open {
			return false
		}
		s.at++
	}
	return true
}
