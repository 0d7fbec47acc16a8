package graph

// calls remembers the calls and local variables in the body of a function.
func (s *braceScanner) calls(i, end, scope int) {
	for i < end {
		n := s.name(i)
		if n == "" {
			i++
			continue
		}
		if s.keyword(n) && n != "this" && n != "super" && !s.op(i-1, ".") && !s.op(i-1, "->") {
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
	case i == j && (s.op(j+1, "=") && !s.op(j+2, "=") || s.op(j+1, ";") || s.op(j+1, ":") || s.op(j+1, ",") || s.op(j+1, "[") && s.op(j+2, "]")) && s.declared(i):
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
