package graph

import "strings"

// body remembers the calls, local names and items in the body of a function.
func (s *rustScanner) body(i, end, scope int) {
	for i < end {
		n := s.name(i)
		switch {
		case n == "" && s.op(i, "#") && s.op(i+1, "["):
			i = s.close(i + 1)
		case n == "":
			i++
		case s.itemAt(i):
			i = s.inner(i, end, scope)
		case n == "let" || n == "for":
			i = s.rustLocal(i, end, scope)
		case s.keyword(n) && n != "Self" && n != "self" && n != "crate" && n != "super" && !s.op(i-1, "."):
			i++
		default:
			i = s.path(i, scope)
		}
	}
}

// itemAt reports whether an item begins at a word in a body.
func (s *rustScanner) itemAt(i int) bool {
	if !s.op(i-1, "{") && !s.op(i-1, "}") && !s.op(i-1, ";") && !s.op(i-1, "]") {
		return false
	}
	switch s.name(s.modifiers(i)) {
	case "use", "fn", "struct", "enum", "union", "trait", "impl", "mod", "static", "type":
		return s.name(s.modifiers(i)+1) != "" || s.op(i+1, "<") || s.op(i+1, "::")
	case "const":
		return s.name(i+1) != "" && s.op(i+2, ":")
	case "macro_rules":
		return s.op(i+1, "!")
	}
	return false
}

// inner reads an item in a body. Its name is known in the function around it.
func (s *rustScanner) inner(i, end, scope int) int {
	prefix := ""
	if scope >= 0 {
		prefix = s.o.Defs[scope].Name + "."
	}
	n := len(s.o.Defs)
	next := max(s.item(i, end, scope, prefix), i+1)
	for _, d := range s.o.Defs[n:] {
		if name, ok := strings.CutPrefix(d.Name, prefix); ok && scope >= 0 && !strings.Contains(name, ".") {
			s.o.Vars = append(s.o.Vars, variable{scope, name, "def " + d.Name})
		}
	}
	return next
}

// path reads a dotted name in a body and returns what follows it.
func (s *rustScanner) path(i, scope int) int {
	name := s.name(i)
	switch {
	case s.op(i-1, ".") && s.op(i-2, "."): // a range
	case s.op(i-1, "."):
		name = s.before(i-1) + "." + name
	case s.op(i-1, "::"):
		name = "." + name
	}
	name, j := s.longer(i, name)
	if open := j + 1; s.op(open, "!") && !s.op(open+1, "=") { // a macro: its arguments are read like any code
		return open + 1
	} else if s.op(open, "(") {
		s.o.Calls = append(s.o.Calls, call{scope, name, s.t[j].line, false})
	} else if name[0] != '.' && !strings.Contains(name, "()") && !s.op(open, ":") {
		s.o.Calls = append(s.o.Calls, call{scope, name, s.t[j].line, true})
	}
	return j + 1
}

// longer reads the rest of a dotted name and returns its last token, or that of its
// arguments of types.
func (s *rustScanner) longer(i int, name string) (string, int) {
	j := i
	for {
		dot := s.op(j+1, ".") || s.op(j+1, "::")
		switch {
		case dot && s.name(j+2) != "":
			name += "." + s.name(j+2)
			j += 2
		case s.op(j+1, "::") && s.op(j+2, "<") && s.generic(j+2) > j+2: // turbofish
			j = s.generic(j+2) - 1
		default:
			return name, j
		}
	}
}

// before returns what a method is called on that begins with calls: "Type.new()" before
// the dot of Type::new(…).run(); "" if it is no chain of names.
func (s *rustScanner) before(dot int) string {
	i := dot - 1
	if s.op(i, "?") || !s.op(i, ")") || s.match[i] < 0 {
		return ""
	}
	i = s.match[i] - 1
	if s.op(i, ">") { // turbofish
		for i > 0 && !s.op(i, "<") {
			i--
		}
		i -= 2
	}
	last := s.name(i)
	if last == "" || s.keyword(last) {
		return ""
	}
	name := last + "()"
	for s.op(i-1, "::") || s.op(i-1, ".") {
		if s.op(i-2, ")") {
			head := s.before(i - 1)
			if head == "" || !s.op(i-1, ".") {
				return ""
			}
			return head + "." + name
		}
		if s.name(i-2) == "" {
			return ""
		}
		name, i = s.name(i-2)+"."+name, i-2
	}
	return name
}

// rustLocal reads a let, or the variable of a for.
func (s *rustScanner) rustLocal(i, end, scope int) int {
	word := s.name(i)
	j := i + 1
	if s.name(j) == "mut" {
		j++
	}
	name := s.name(j)
	if name == "" || s.keyword(name) || s.op(j+1, "(") || s.op(j+1, "::") || s.op(j+1, "{") { // a pattern
		for ; j < end && !s.op(j, "=") && s.name(j) != "in" && !s.op(j, ";"); j++ {
			if n := s.name(j); n != "" && !s.keyword(n) && n[0] >= 'a' && n[0] <= 'z' && !s.op(j+1, "(") && !s.op(j+1, "::") {
				s.o.Vars = append(s.o.Vars, variable{scope, n, ""})
			}
		}
		return j
	}
	typ := ""
	k := j + 1
	if s.op(k, ":") {
		typ = s.plainType(k + 1)
		for k < end && !s.op(k, "=") && !s.op(k, ";") {
			k++
		}
	}
	if s.op(k, "=") && typ == "" && word == "let" {
		typ = s.rustValue(k+1, end)
	}
	s.o.Vars = append(s.o.Vars, variable{scope, name, typ})
	return j + 1
}

// rustValue returns the type of Type { … }, or the calls that a value is made by:
// Type::new(…), f(…), a.b(…).c(…).
func (s *rustScanner) rustValue(i, end int) string {
	for s.op(i, "&") || s.name(i) == "mut" {
		i++
	}
	name, j := s.longer(i, s.name(i))
	if head := headOf(name); head == "" || s.keyword(head) && head != "Self" && head != "self" && head != "crate" && head != "super" {
		return ""
	}
	if s.op(j+1, "{") && !strings.HasPrefix(name, "self.") {
		return name
	}
	for j < end && s.op(j+1, "(") {
		name += "()"
		if j = s.close(j+1) - 1; s.op(j+1, ";") {
			return name
		}
		if !s.op(j+1, ".") || s.name(j+2) == "" {
			return ""
		}
		name, j = s.longer(j+2, name+"."+s.name(j+2))
	}
	return ""
}
