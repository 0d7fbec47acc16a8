package plugins

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
)

// launchSpec returns how to start a plugin's process.
func (h *Host) launchSpec(p *Plugin, l *loaded) launchSpec {
	m := l.spec.Manifest
	data := h.dataDir(l.spec.Name)
	env := proc.FilterEnvNames(h.environ, m.Env, m.Secrets...)
	if data != "" {
		env = append(env, "PLUGIN_DATA_DIR="+data)
	}
	return launchSpec{
		supervisor: h.supervisor, timeout: h.startTimeout, log: p.log, version: h.version,
		command: proc.Spec{Path: l.argv[0], Args: l.argv[1:], Dir: l.dir, Env: env, Sandbox: h.profile(m, l, data)},
	}
}

// dataDir creates and returns the directory in which a plugin keeps files; empty if
// there is none.
func (h *Host) dataDir(name string) string {
	if h.agentHome == "" {
		return ""
	}
	dir := filepath.Join(h.agentHome, "plugin-data", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.logger.Warn("a plugin has no data directory", "plugin", name, "cause", err)
		return ""
	}
	return resolved(dir)
}

// profile returns the sandbox of a plugin. It sees the programs and libraries of
// the system, its own folder, its data directory, and what its manifest grants;
// everything else is hidden. Nil means no sandbox.
func (h *Host) profile(m Manifest, l *loaded, data string) *sandbox.Profile {
	if h.sandbox == sandbox.ModeOff {
		return nil
	}
	read := slices.Concat(h.expand(m.Read), []string{resolved(l.dir)})
	write := h.expand(m.Write)
	if data != "" {
		write = append(write, data)
	}
	open := slices.Concat(read, write)
	masked := hide(h.roots(), slices.Concat(open, h.programs(), interpreter(l), system[:]))
	p := &sandbox.Profile{Mode: h.sandbox, Readable: read, Writable: write, Masked: append(masked, h.maskedPaths(open)...)}
	p.Network.Serve = true // the socket on which it is called
	if slices.Contains(m.Network, "*") {
		p.Network.Full = true
	} else {
		p.Network.Hosts = m.Network
	}
	return p
}

// maskedPaths returns the paths of Options.Masked, except those that the manifest
// names: a directory that contains one does not.
func (h *Host) maskedPaths(open []string) []string {
	var list []string
	for _, pattern := range h.masked {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			paths = []string{pattern}
		}
		for _, path := range paths {
			path = resolved(path)
			if !slices.ContainsFunc(open, func(o string) bool { return below(o, path) }) {
				list = append(list, path)
			}
		}
	}
	return list
}

// system are the programs and libraries of the system, and the configuration that
// they need to run.
var system = [...]string{
	"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/opt/homebrew", "/System", "/Library",
	"/Applications", "/private/var/db", "/proc", "/sys", "/dev",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
	"/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/localtime", "/etc/timezone",
	"/etc/locale.alias", "/etc/locale.conf", "/etc/default/locale", "/etc/mime.types", "/etc/os-release", "/etc/debian_version",
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/ca-certificates.conf",
	"/etc/crypto-policies", "/etc/python3", "/etc/java", "/etc/fonts",
}

// roots returns the directories in which everything is hidden that is not open.
func (h *Host) roots() []string {
	if runtime.GOOS == "linux" {
		return []string{"/"}
	}
	return h.private()
}

// interpreter returns the installation of a plugin's program that is not in its
// folder, such as that of Python: its directory, or the one above bin.
func interpreter(l *loaded) []string {
	program := l.argv[0]
	if path, err := exec.LookPath(program); err == nil {
		program = path
	}
	program = resolved(program)
	dir := filepath.Dir(program)
	if !filepath.IsAbs(program) || below(dir, resolved(l.dir)) {
		return nil
	}
	if up := filepath.Dir(dir); filepath.Base(dir) == "bin" && strings.Count(up, "/") > 1 {
		dir = up
	}
	return []string{dir}
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

// programs returns the directories of PATH, and for ~/x/bin and /opt/x/bin also
// ~/x and /opt/x, where version managers have libraries.
func (h *Host) programs() []string {
	var list []string
	home := resolved(h.home)
	for _, entry := range h.environ {
		path, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if dir = resolved(dir); !filepath.IsAbs(dir) || dir == home || below(resolved(h.workspace), dir) {
				continue
			}
			if up := filepath.Dir(dir); filepath.Base(dir) == "bin" && up != home && (below(up, home) || filepath.Dir(up) == "/opt") {
				dir = up
			}
			list = append(list, dir)
		}
	}
	return list
}

// shared are directories in which each entry is hidden, and not the whole: the
// sandbox replaces them, or the plugin's own files are created in them later.
var shared = [...]string{"/tmp", "/var/tmp", "/run"}

// hide returns what to mask so that only the open paths are visible below the
// roots: a root that contains no open path is masked as a whole, in the others
// every entry that neither is nor contains one. Below / the targets of symbolic
// links are judged themselves.
func hide(roots, open []string) []string {
	var masked []string
	links := !slices.Contains(roots, "/")
	contains := func(dir string) bool {
		return slices.ContainsFunc(open, func(o string) bool { return below(o, dir) }) ||
			slices.ContainsFunc(shared[:], func(s string) bool { return below(s, dir) })
	}
	var visit func(dir string)
	visit = func(dir string) {
		if slices.ContainsFunc(open, func(o string) bool { return below(dir, o) }) {
			return // dir is open
		}
		if !contains(dir) {
			masked = append(masked, dir)
			return
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // then nothing below it is accessible
		}
		for _, e := range entries {
			if links || e.Type()&fs.ModeSymlink == 0 {
				visit(filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, r := range roots {
		if _, err := os.Lstat(r); err == nil {
			visit(r)
		}
	}
	slices.Sort(masked)
	return slices.Compact(masked)
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
