package plugins

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	return sandbox.Resolve(dir)
}

// profile returns the sandbox of a plugin. It sees the programs and libraries of
// the system, its own folder, its data directory, and what its manifest grants;
// everything else is hidden. Nil means no sandbox.
func (h *Host) profile(m Manifest, l *loaded, data string) *sandbox.Profile {
	if h.sandbox == sandbox.ModeOff {
		return nil
	}
	read := slices.Concat(h.expand(m.Read), []string{sandbox.Resolve(l.dir)})
	if h.worktrees != "" && slices.Contains(m.Read, "$WORKSPACE") {
		read = append(read, sandbox.Resolve(h.worktrees))
	}
	write := h.expand(m.Write)
	if data != "" {
		write = append(write, data)
	}
	open := slices.Concat(read, write)
	visible := slices.Concat(open, interpreter(l.argv, l.dir, h.home), sandbox.SystemPaths())
	if m.Exec {
		visible = append(visible, sandbox.ProgramPaths(sandbox.PathDirs(h.environ), h.home)...)
	}
	masked := sandbox.HideExcept(sandbox.UserRoots(h.home, h.workspace, h.agentHome), visible)
	p := &sandbox.Profile{Mode: h.sandbox, Readable: read, Writable: write, Masked: append(masked, h.maskedPaths(open)...), Limits: m.Limits.or(h.limits).forSandbox()}
	h.protect(l.spec.Name, p, h.expand(m.Read), h.expand(m.Write))
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
			path = sandbox.Resolve(path)
			if !slices.ContainsFunc(open, func(o string) bool { return sandbox.Below(path, o) }) {
				list = append(list, path)
			}
		}
	}
	return list
}

// interpreter returns the installation of a program that is not in the plugin's
// folder, such as that of Python, also if a script there names it in its #! line.
func interpreter(argv []string, dir, home string) []string {
	program := argv[0]
	if filepath.IsAbs(program) && sandbox.Below(sandbox.Resolve(dir), sandbox.Resolve(program)) {
		if program = shebang(program); program == "" {
			return nil
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	open := sandbox.ProgramPaths([]string{filepath.Dir(path), filepath.Dir(sandbox.Resolve(path))}, home)
	return slices.DeleteFunc(slices.Compact(open), func(p string) bool {
		return slices.ContainsFunc(sandbox.SystemPaths(), func(s string) bool { return sandbox.Below(s, p) })
	})
}

// shebang returns the program that a script's #! line names, or "".
func shebang(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // a short file has no line break
	words, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	for _, w := range strings.Fields(words) {
		if filepath.Base(w) != "env" && !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w
		}
	}
	return ""
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
			out = append(out, sandbox.Resolve(p))
		}
	}
	return out
}
