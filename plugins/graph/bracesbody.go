package graph

// calls remembers the calls and local variables in the body of a function.
func (s *braceScanner) calls(i, end, scope int) {
	for i < end {
		n := s.name(i)
		if n == "" {
			i++
			continue
		}
		if s.language == "rust" && (n == "let" || n == "for" || n == "fn") {
			i = s.rustLocal(i, end, scope)
			continue
		}
		if s.keyword(n) && !(s.language == "rust" && (n == "Self" || n == "self" || n == "crate" || n == "super")) && n != "this" && n != "super" && !s.op(i-1, ".") && !s.op(i-1, "->") {
			i++
			continue
		}
		name, j := n, i
		if s.language == "c" && s.op(i-1, "~") {
			name = "~" + name
		}
		if s.op(i-1, ".") || s.op(i-1, "->") {
			name = "." + name
		}
		for (s.op(j+1, ".") || s.op(j+1, "->") || s.op(j+1, "::")) && (s.name(j+2) != "" || s.op(j+2, "<")) {
			if s.op(j+2, "<") { // turbofish
				k := s.generic(j + 2)
				if k == j+2 {
					break
				}
				j = k - 1
				continue
			}
			name += "." + s.name(j+2)
			j += 2
		}
		s.use1(i, j, end, scope, name)
		i = j + 1
	}
}

// use1 remembers one dotted name in a body: a call, a declaration or a value.
func (s *braceScanner) use1(i, j, end, scope int, name string) {
	open := j + 1
	if s.op(open, "<") {
		if k := s.generic(open); s.op(k, "(") {
			open = k
		}
	}
	if s.op(open, "!") && s.language == "rust" { // a macro: its arguments are read like any code
		return
	}
	switch {
	case s.op(open, "("):
		if s.language == "c" && s.name(i-1) != "" && !s.keyword(s.name(i-1)) && s.name(i-1) != "return" && s.name(i-1) != "else" { // Type name(args);
			typ := s.typeBefore(i, max(0, i-8))
			s.o.Vars = append(s.o.Vars, variable{scope, name, typ})
			if typ != "" {
				s.o.Calls = append(s.o.Calls, call{scope, typ, s.t[i].line, false})
			}
			return
		}
		s.o.Calls = append(s.o.Calls, call{scope, name, s.t[j].line, false})
	case s.language != "rust" && i == j && (s.op(j+1, "=") && !s.op(j+2, "=") || s.op(j+1, ";") || s.op(j+1, ":") || s.op(j+1, ",") || s.op(j+1, "[") && s.op(j+2, "]")) && s.declared(i):
		typ := s.typeBefore(i, max(0, i-12))
		if typ == "" && s.name(j+2) == "new" {
			typ = s.dottedName(j + 3)
		}
		s.o.Vars = append(s.o.Vars, variable{scope, name, typ})
	case name[0] != '.':
		s.o.Calls = append(s.o.Calls, call{scope, name, s.t[j].line, true})
	}
}

// declared reports whether a type stands before a name.
func (s *braceScanner) declared(i int) bool {
	j := i - 1
	for s.op(j, "*") || s.op(j, "&") || s.op(j, "]") || s.op(j, "[") {
		j--
	}
	if s.op(j, ">") {
		return true
	}
	n := s.name(j)
	switch n {
	case "", "return", "new", "else", "case", "goto", "throw", "in", "delete", "import", "package":
		return false
	}
	return true
}

// rustLocal reads a let, the variable of a for, or an inner function.
func (s *braceScanner) rustLocal(i, end, scope int) int {
	word := s.name(i)
	if word == "fn" && s.name(i+1) != "" {
		if open := s.bodyOpen(i, end); open > 0 {
			prefix := ""
			if scope >= 0 {
				prefix = s.o.Defs[scope].Name + "."
			}
			s.function(i, open, s.close(open), scope, prefix)
			if n := len(s.o.Defs) - 1; scope >= 0 && n > scope {
				s.o.Vars = append(s.o.Vars, variable{scope, s.name(i + 1), "def " + prefix + s.name(i+1)})
			}
			return s.close(open)
		}
		return i + 1
	}
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

func (s *braceScanner) bodyOpen(i, end int) int {
	for ; i < end; i++ {
		switch {
		case s.op(i, "{"):
			return i
		case s.op(i, ";"):
			return -1
		case s.op(i, "("):
			i = s.close(i) - 1
		}
	}
	return -1
}

// rustValue returns the type of Type::new(…), Type { … } or f(…).
func (s *braceScanner) rustValue(i, end int) string {
	for s.op(i, "&") || s.name(i) == "mut" {
		i++
	}
	name, j := s.dottedName(i), i
	for s.op(j+1, "::") && s.name(j+2) != "" {
		j += 2
	}
	if name == "" || s.keyword(headOf(name)) && headOf(name) != "Self" && headOf(name) != "crate" {
		return ""
	}
	if s.op(j+1, "{") {
		return name
	}
	if s.op(j+1, "(") && (s.op(s.close(j+1), ";") || s.op(s.close(j+1), "?")) {
		return name + "()"
	}
	return ""
}
