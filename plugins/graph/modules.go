package graph

import (
	"path"
	"strings"
)

// addModule adds the names by which other files import a file.
func (r *resolver) addModule(f *fileFacts) {
	add := func(name string) {
		if old, taken := r.modules[name]; taken && old != f.path {
			r.modules[name] = ""
			return
		}
		r.modules[name] = f.path
	}
	if r.language != "python" {
		add(f.path)
		return
	}
	add(f.outline.Module)
	root := path.Dir(f.path)
	for root != "." && r.files[path.Join(root, "__init__.py")] != nil {
		root = path.Dir(root)
	}
	if short := pyModule(strings.TrimPrefix(f.path, root+"/")); root != "." && short != f.outline.Module {
		add(short)
	}
}

// module returns the path of the file that an import names, or "".
func (r *resolver) module(f *fileFacts, im imported) string {
	switch r.language {
	case "python":
		return r.pyImport(f, im)
	case "javascript":
		return r.jsImport(f, im.Module)
	case "c":
		return r.include(f, im.Module)
	default:
		if r.language == "rust" && im.Name == "*" {
			im.Name = ""
		}
		if t := r.imported(f, im, 0); t.file != nil {
			return t.file.path
		}
		return ""
	}
}

// pyImport resolves the name of a Python module, relative if it begins with dots.
func (r *resolver) pyImport(f *fileFacts, im imported) string {
	name := strings.TrimLeft(im.Module, ".")
	if dots := len(im.Module) - len(name); dots > 0 {
		dir := path.Dir(f.path)
		for range dots - 1 {
			dir = path.Dir(dir)
		}
		base := path.Join(dir, strings.ReplaceAll(name, ".", "/"))
		for _, candidate := range []string{base + ".py", base + "/__init__.py", base + ".pyi"} {
			if r.files[candidate] != nil {
				return candidate
			}
		}
		return ""
	}
	return r.modules[name]
}

// include finds the file of an #include: beside the file, or the only one whose
// path ends so.
func (r *resolver) include(f *fileFacts, name string) string {
	if beside := path.Join(path.Dir(f.path), name); r.files[beside] != nil {
		return beside
	}
	if r.headers == nil {
		r.headers = map[string][]string{}
		for p := range r.files {
			r.headers[path.Base(p)] = append(r.headers[path.Base(p)], p)
		}
	}
	found := ""
	for _, p := range r.headers[path.Base(name)] {
		if p == name || strings.HasSuffix(p, "/"+name) {
			if found != "" {
				return ""
			}
			found = p
		}
	}
	return found
}
