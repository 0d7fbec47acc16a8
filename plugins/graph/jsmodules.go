package graph

import (
	"encoding/json"
	"path"
	"strings"
)

// imports reads an import declaration or a dynamic import.
func (s *jsScanner) imports(i int) int {
	line := s.t[i].line
	if s.op(i+1, "(") {
		if spec, ok := s.str(i + 2); ok {
			s.o.Imports = append(s.o.Imports, imported{Module: spec, Line: line})
			return i + 3
		}
		s.o.Calls = append(s.o.Calls, call{s.scope(), "import", line, false})
		return i + 2
	}
	if spec, ok := s.str(i + 1); ok {
		s.o.Imports = append(s.o.Imports, imported{Module: spec, Line: line})
		return i + 2
	}
	end := i + 1
	for end < len(s.t) && end < i+2000 && s.name(end) != "from" || s.name(end) == "from" && !s.isStr(end+1) {
		if s.op(end, ";") || s.op(end, "(") || s.op(end, "=") {
			return i + 1
		}
		end++
	}
	spec, ok := s.str(end + 1)
	if !ok {
		return i + 1
	}
	typeOnly := s.name(i+1) == "type" && !s.op(i+2, ",") && end != i+2
	add := func(name, as string, only bool) {
		s.o.Imports = append(s.o.Imports, imported{Module: spec, Name: name, As: as, Line: line, Type: only})
	}
	for j := i + 1; j < end; j++ {
		n := s.name(j)
		switch {
		case s.op(j, "*") && s.name(j+1) == "as":
			add("", s.name(j+2), typeOnly)
			j += 2
		case s.op(j, "{"):
			j = s.named(j, add, typeOnly) - 1
		case n != "" && !(n == "type" && typeOnly):
			add("default", n, typeOnly)
		}
	}
	return end + 2
}

func (s *jsScanner) isStr(i int) bool { _, ok := s.str(i); return ok }

// named reads { a, b as c, type D }.
func (s *jsScanner) named(open int, add func(name, as string, only bool), typeOnly bool) int {
	end := s.close(open)
	for j := open + 1; j < end-1; j++ {
		n, only := s.name(j), typeOnly
		if n == "type" && s.name(j+1) != "" && s.name(j+1) != "as" {
			j++
			n, only = s.name(j), true
		}
		if n == "" {
			continue
		}
		as := n
		if s.name(j+1) == "as" {
			as = s.name(j + 2)
			j += 2
		}
		add(n, as, only)
	}
	return end
}

// export reads what follows export; declarations are read as without it.
func (s *jsScanner) export(i int) int {
	j := i + 1
	if s.name(j) == "type" && (s.op(j+1, "{") || s.op(j+1, "*")) {
		j++
	}
	line := s.t[i].line
	switch {
	case s.op(j, "*"):
		as := ""
		if s.name(j+1) == "as" {
			as = s.name(j + 2)
			j += 2
		}
		if spec, ok := s.str(j + 2); ok && s.name(j+1) == "from" {
			name := "*"
			if as != "" {
				name = ""
			}
			s.o.Imports = append(s.o.Imports, imported{Module: spec, Name: name, As: as, Line: line, Again: true})
			return j + 3
		}
	case s.op(j, "{"):
		end := s.close(j)
		spec, ok := s.str(end + 1)
		ok = ok && s.name(end) == "from"
		s.named(j, func(name, as string, only bool) {
			if ok {
				s.o.Imports = append(s.o.Imports, imported{Module: spec, Name: name, As: as, Line: line, Type: only, Again: true})
			} else if name != as {
				s.o.Imports = append(s.o.Imports, imported{Module: ownModule, Name: name, As: as, Line: line, Again: true})
			}
		}, false)
		if ok {
			return end + 2
		}
		return end
	case s.name(j) == "default":
		if n := s.name(j + 1); n != "" && !jsKeywords()[n] && (s.op(j+2, ";") || j+2 >= len(s.t) || s.t[j+2].fresh) {
			s.o.Imports = append(s.o.Imports, imported{Module: ownModule, Name: n, As: "default", Line: line, Again: true})
		} else if n := s.name(j + 2); (s.name(j+1) == "function" || s.name(j+1) == "class") && n != "" && n != "extends" {
			s.o.Imports = append(s.o.Imports, imported{Module: ownModule, Name: n, As: "default", Line: line, Again: true})
		} else if next := s.functionValue("default", Function, j, j+1); next > 0 {
			return next
		}
		return j + 1
	}
	return i + 1
}

// jsImport resolves the module of an import: relative, by tsconfig's paths, or a
// package of the workspace.
func (r *resolver) jsImport(f *fileFacts, spec string) string {
	switch {
	case spec == ownModule:
		return f.path
	case strings.HasPrefix(spec, "./") || strings.HasPrefix(spec, "../") || spec == ".." || spec == ".":
		return r.jsFile(path.Join(path.Dir(f.path), spec))
	}
	if p := r.jsAlias(f, spec); p != "" {
		return p
	}
	return r.jsPackage(spec)
}

// jsFile returns the file that a path without an extension stands for.
func (r *resolver) jsFile(base string) string {
	if r.files[base] != nil {
		return base
	}
	stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, ".js"), ".mjs"), ".jsx")
	for _, b := range []string{base, stem, path.Join(base, "index")} {
		for _, ext := range []string{".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".d.ts"} {
			if r.files[b+ext] != nil {
				return b + ext
			}
		}
	}
	return ""
}

// jsAlias resolves a module by the paths of the nearest tsconfig.json.
func (r *resolver) jsAlias(f *fileFacts, spec string) string {
	for dir := path.Dir(f.path); ; dir = path.Dir(dir) {
		data := r.config[path.Join(dir, "tsconfig.json")]
		if data == nil {
			data = r.config[path.Join(dir, "jsconfig.json")]
		}
		var config struct {
			CompilerOptions struct {
				BaseURL string              `json:"baseUrl"`
				Paths   map[string][]string `json:"paths"`
			} `json:"compilerOptions"`
		}
		if data != nil && json.Unmarshal(data, &config) == nil {
			base := path.Join(dir, config.CompilerOptions.BaseURL)
			for pattern, to := range config.CompilerOptions.Paths {
				prefix, suffix, wild := strings.Cut(pattern, "*")
				if len(to) == 0 || !wild && spec != pattern || !strings.HasPrefix(spec, prefix) || !strings.HasSuffix(spec, suffix) {
					continue
				}
				middle := strings.TrimSuffix(strings.TrimPrefix(spec, prefix), suffix)
				if p := r.jsFile(path.Join(base, strings.Replace(to[0], "*", middle, 1))); p != "" {
					return p
				}
			}
			if config.CompilerOptions.BaseURL != "" {
				return r.jsFile(path.Join(base, spec))
			}
		}
		if dir == "." {
			return ""
		}
	}
}

// jsPackage resolves a package of the same workspace by the name in its
// package.json.
func (r *resolver) jsPackage(spec string) string {
	if r.packages == nil {
		r.packages = map[string]string{}
		for name, data := range r.config {
			var p struct{ Name string }
			if path.Base(name) == "package.json" && json.Unmarshal(data, &p) == nil && p.Name != "" {
				r.packages[p.Name] = path.Dir(name)
			}
		}
	}
	for name := spec; name != "." && name != "/"; name = path.Dir(name) {
		dir, ok := r.packages[name]
		if !ok {
			continue
		}
		if rest := strings.TrimPrefix(spec, name); rest != "" {
			return r.jsFile(path.Join(dir, rest))
		}
		var p struct{ Main, Module, Source string }
		_ = json.Unmarshal(r.config[path.Join(dir, "package.json")], &p)
		for _, entry := range []string{p.Source, "src/index", "src/main", "index", p.Module, p.Main} {
			if found := r.jsFile(path.Join(dir, entry)); entry != "" && found != "" {
				return found
			}
		}
	}
	return ""
}
