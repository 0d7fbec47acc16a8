package plugins

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// launchSpec returns how to start a plugin's process.
func (h *Host) launchSpec(p *Plugin, l *loaded) launchSpec {
	m := l.spec.Manifest
	return launchSpec{
		supervisor: h.supervisor, timeout: h.startTimeout, log: p.log, version: h.version,
		command: proc.Spec{
			Path: l.argv[0], Args: l.argv[1:], Dir: l.dir,
			Env:     proc.FilterEnvNames(h.environ, m.Env, m.Secrets...),
			Sandbox: h.profile(m, l.dir),
		},
	}
}

// profile returns the sandbox of a plugin: what its manifest grants, plus the
// programs and libraries of the system. Users' files are hidden. Nil means no
// sandbox.
func (h *Host) profile(m Manifest, dir string) *sandbox.Profile {
	if h.sandbox == sandbox.ModeOff {
		return nil
	}
	// The plugin's folder must be visible, and so must programs in PATH below the
	// home directory, such as those of version managers.
	read := slices.Concat(h.expand(m.Read), []string{resolved(dir)}, h.programs())
	write := h.expand(m.Write)
	p := &sandbox.Profile{
		Mode: h.sandbox, Readable: read, Writable: write,
		Masked: hide(h.private(), slices.Concat(read, write)),
	}
	p.Network.Serve = true // the socket on which it is called
	if slices.Contains(m.Network, "*") {
		p.Network.Full = true
	} else {
		p.Network.Hosts = m.Network
	}
	return p
}

// expand replaces the variables in a manifest's paths.
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

// private returns the directories with users' files.
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

// programs returns the directories of PATH below the home directory; for ~/x/bin
// it returns ~/x.
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

// hide returns what to mask so that only the open paths are visible below the
// roots: a root that contains no open path is masked as a whole, in the others
// every entry that neither is nor contains one.
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
				return // dir is open
			}
		}
		if !slices.ContainsFunc(open, func(o string) bool { return below(o, dir) }) {
			add(dir)
			return
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // then nothing below it is accessible
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

// below reports whether path is dir or is in it.
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
