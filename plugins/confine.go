package plugins

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// launchSpec is what starts a plugin's process.
func (h *Host) launchSpec(p *Plugin, l *loaded) launchSpec {
	m := l.spec.Manifest
	return launchSpec{
		supervisor: h.supervisor, timeout: h.startTimeout, log: p.log, version: h.version,
		command: proc.Spec{
			Path: l.argv[0], Args: l.argv[1:], Dir: l.dir,
			Env:     proc.FilterEnv(h.environ, proc.InheritCore, slices.Concat(m.Env, m.Secrets)...),
			Sandbox: h.profile(m, l.dir),
		},
	}
}

// profile is the sandbox of a plugin: what its manifest says, and for the rest
// the programs and libraries of the system. People's own files are hidden; nil
// is no sandbox.
func (h *Host) profile(m Manifest, dir string) *sandbox.Profile {
	if h.sandbox == sandbox.ModeOff {
		return nil
	}
	// What runs the plugin must be seen: its folder, and the programs in PATH
	// that lie in the home directory, such as those of version managers.
	read := slices.Concat(h.expand(m.Read), []string{resolved(dir)}, h.programs())
	write := h.expand(m.Write)
	p := &sandbox.Profile{
		Mode: h.sandbox, Readable: read, Writable: write,
		Masked: hide(h.private(), slices.Concat(read, write)),
	}
	p.Network.Serve = true // its own socket, by which it is called
	if slices.Contains(m.Network, "*") {
		p.Network.Full = true
	} else {
		p.Network.Hosts = m.Network
	}
	return p
}

// expand replaces the variables at the beginning of a manifest's paths.
func (h *Host) expand(paths []string) []string {
	var out []string
	for _, p := range paths {
		for name, dir := range map[string]string{"$WORKSPACE": h.workspace, "$HOME": h.home} {
			if rest, ok := strings.CutPrefix(p, name); ok {
				if p = ""; dir != "" {
					p = filepath.Join(dir, filepath.FromSlash(rest))
				}
				break
			}
		}
		if p != "" {
			out = append(out, resolved(p))
		}
	}
	return out
}

// private are the directories in which people's own files are.
func (h *Host) private() []string {
	var list []string
	for _, dir := range []string{h.home, h.workspace, h.agentHome, "/home", "/root", "/Users", "/mnt", "/media", "/srv", "/var/mail", "/var/spool"} {
		if dir == "" {
			continue
		}
		if dir = resolved(dir); !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// programs are the directories of PATH below the home directory, with what
// belongs to them: of ~/x/bin all of ~/x.
func (h *Host) programs() []string {
	var list []string
	home := resolved(h.home)
	for _, entry := range h.environ {
		path, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if filepath.Base(dir) == "bin" && filepath.Dir(dir) != home {
				dir = filepath.Dir(dir)
			}
			if dir = resolved(dir); filepath.IsAbs(dir) && dir != home && below(dir, home) {
				list = append(list, dir)
			}
		}
	}
	return list
}

// hide returns what to mask so that of the roots only what is open is seen:
// a root that leads to nothing open as a whole, of the others all entries that
// lead nowhere open.
func hide(roots, open []string) []string {
	var masked []string
	add := func(dir string) {
		if !slices.Contains(masked, dir) {
			masked = append(masked, dir)
		}
	}
	var visit func(dir string)
	visit = func(dir string) {
		for _, o := range open {
			if below(dir, o) {
				return // it is open itself
			}
		}
		if !slices.ContainsFunc(open, func(o string) bool { return below(o, dir) }) {
			add(dir)
			return
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // then nothing below it can be reached, either
		}
		for _, e := range entries {
			visit(filepath.Join(dir, e.Name()))
		}
	}
	for _, r := range roots {
		if _, err := os.Lstat(r); err == nil {
			visit(r)
		}
	}
	return masked
}

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolved resolves the symbolic links of a path that exists.
func resolved(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
