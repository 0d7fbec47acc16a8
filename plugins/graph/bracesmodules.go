package graph

import (
	"path"
	"slices"
	"strings"
)

// javaClass returns the class that an import of Java names.
func (r *resolver) javaClass(im imported) target {
	if t := only(r.globals[im.Module+"."+im.Name]); t.file != nil {
		return t
	}
	dot := strings.LastIndexByte(im.Module, '.')
	if dot < 0 {
		return target{}
	}
	if class := only(r.globals[im.Module]); class.file != nil { // a nested class or a static member
		return r.member(class, im.Name, 1)
	}
	return target{}
}

// rustPath resolves module::name from a file, by the layout of crates: src/lib.rs,
// src/a.rs, src/a/mod.rs and modules within files.
func (r *resolver) rustPath(f *fileFacts, module, name string, hops int) target {
	if hops > maxHops {
		return target{}
	}
	root, own := crate(f.path)
	head, rest, _ := strings.Cut(join(module, name), ".")
	var dir []string
	switch head {
	case "crate":
	case "self":
		dir = own
	case "super":
		dir = own[:max(len(own)-1, 0)]
		for {
			next, more, _ := strings.Cut(rest, ".")
			if next != "super" || len(dir) == 0 {
				break
			}
			dir, rest = dir[:len(dir)-1], more
		}
	default:
		if other := r.crateNamed(head); other != "" {
			root = other
		} else if t := r.rustModule(root, append(slices.Clone(own), head)); t.file != nil {
			return r.rustDown(t, root, append(slices.Clone(own), head), rest, hops)
		} else {
			return target{}
		}
	}
	return r.rustDown(r.rustModule(root, dir), root, dir, rest, hops)
}

// rustDown follows the rest of a path from a module.
func (r *resolver) rustDown(t target, root string, dir []string, rest string, hops int) target {
	for rest != "" && t.file != nil {
		var head string
		head, rest, _ = strings.Cut(rest, ".")
		next := append(slices.Clone(dir), head)
		if m := r.rustModule(root, next); m.file != nil && t.def < 0 {
			t, dir = m, next
			continue
		}
		t = r.member(t, head, hops+1)
		dir = next
	}
	return t
}

// crate returns the source directory of the crate of a file, and the file's module.
func crate(name string) (root string, module []string) {
	i := strings.LastIndex("/"+name, "/src/")
	if i < 0 {
		return path.Dir(name), nil
	}
	root = strings.TrimSuffix(name[:i+3], "/")
	rel := strings.TrimSuffix(strings.TrimPrefix(name, root+"/"), ".rs")
	module = strings.Split(rel, "/")
	if last := module[len(module)-1]; last == "mod" || last == "lib" || last == "main" {
		module = module[:len(module)-1]
	}
	return root, module
}

// rustModule returns the file of a module.
func (r *resolver) rustModule(root string, module []string) target {
	base := path.Join(append([]string{root}, module...)...)
	candidates := []string{base + ".rs", base + "/mod.rs"}
	if len(module) == 0 {
		candidates = []string{root + "/lib.rs", root + "/main.rs"}
	}
	for _, name := range candidates {
		if f := r.files[name]; f != nil {
			return target{f, -1}
		}
	}
	return target{}
}

// crateNamed returns the source directory of another crate of the workspace.
func (r *resolver) crateNamed(name string) string {
	for file, data := range r.config {
		if path.Base(file) != "Cargo.toml" {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "name"); ok {
				rest = strings.Trim(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), "=")), `"`)
				if strings.ReplaceAll(rest, "-", "_") == name {
					return path.Join(path.Dir(file), "src")
				}
				break
			}
		}
	}
	return ""
}
