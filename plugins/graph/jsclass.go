package graph

func (s *jsScanner) classDef(i int) int {
	name := s.name(i + 1)
	kind := Class
	if s.t[i].text == "interface" {
		kind = Interface
	}
	if name == "extends" || name == "implements" || jsKeywords()[name] {
		name = ""
	}
	if name == "" && !(s.t[i].text == "class" && (s.op(i+1, "{") || s.name(i+1) == "extends")) {
		return i
	}
	body := i + 1
	var bases []string
	for body < len(s.t) && body < i+200 && !s.op(body, "{") {
		if s.op(body, ";") || s.op(body, ")") || s.op(body, "=") || s.op(body, ":") {
			return i
		}
		if (s.name(body) == "extends" || s.name(body) == "implements" || s.op(body, ",") && len(bases) > 0) && s.name(body+1) != "" {
			base := s.name(body + 1)
			for body += 2; s.op(body, ".") && s.name(body+1) != ""; body += 2 {
				base += "." + s.name(body+1)
			}
			bases = append(bases, base)
			continue
		}
		if s.op(body, "<") {
			body = max(s.generic(body), body+1)
			continue
		}
		body++
	}
	if !s.op(body, "{") {
		return i
	}
	if name == "" {
		name = s.assigned(i)
	}
	at := s.define(name, kind, i, -1, body)
	s.o.Defs[at].Bases = bases
	return body
}

// assigned returns the name that an expression is assigned to: NAME = class {}.
func (s *jsScanner) assigned(i int) string {
	if s.op(i-1, "=") && s.name(i-2) != "" {
		return s.name(i - 2)
	}
	return "default"
}

// memberDef reads a method or field in the body of a class.
func (s *jsScanner) memberDef(i int) int {
	first := s.op(i-1, "{") || s.op(i-1, "}") || s.op(i-1, ";") || s.op(i-1, "*") || s.op(i-1, ")") || s.t[i].fresh || jsModifiers()[s.name(i-1)]
	if !first || jsModifiers()[s.t[i].text] && !s.op(i+1, "(") && !s.op(i+1, "=") && !s.op(i+1, ":") {
		return i
	}
	if s.match[i-1] >= 0 && s.op(i-1, ")") && !s.t[i].fresh {
		return i
	}
	name := s.t[i].text
	j := i + 1
	if s.op(j, "?") || s.op(j, "!") {
		j++
	}
	open := s.generic(j)
	if s.op(open, "(") {
		body := s.afterType(s.close(open))
		if s.op(body, "{") || s.op(body, ";") || body < len(s.t) && s.t[body].fresh {
			at := s.define(name, Method, i, open, body)
			if !s.op(body, "{") {
				s.ends = s.ends[:len(s.ends)-1]
			}
			if typ := s.typeName(s.close(open) + 1); s.op(s.close(open), ":") {
				s.o.Defs[at].Result = typ
			}
			return open + 1
		}
		return i
	}
	if s.op(j, ":") || s.op(j, "=") {
		typ := ""
		if s.op(j, ":") {
			typ = s.typeName(j + 1)
			for j < len(s.t) && !s.op(j, "=") && !s.op(j, ";") && !s.op(j, "}") {
				j = s.skipType(j)
			}
		}
		if s.op(j, "=") {
			if next := s.functionValue(name, Method, i, j+1); next > 0 {
				return next
			}
			if typ == "" && s.name(j+1) == "new" {
				typ = s.typeNew(j + 2)
			}
		}
		s.o.Vars = append(s.o.Vars, variable{s.scope(), name, typ})
	}
	return i
}

func (s *jsScanner) skipType(j int) int {
	if s.op(j, "(") || s.op(j, "[") || s.op(j, "{") {
		return s.close(j)
	}
	return j + 1
}

// typeNew returns the class in "new Class(".
func (s *jsScanner) typeNew(i int) string {
	name := ""
	for s.name(i) != "" || s.op(i, ".") {
		name += s.t[i].text
		i++
	}
	if i = s.generic(i); s.op(i, "(") {
		return name
	}
	return ""
}
