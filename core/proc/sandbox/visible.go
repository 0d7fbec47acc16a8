package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// SystemPaths returns the programs and libraries of the system, and the
// configuration that they need to run.
func SystemPaths() []string {
	return []string{
		"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/opt/homebrew", "/System", "/Library",
		"/Applications", "/private/var/db", "/proc", "/sys", "/dev",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
		"/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols", "/etc/localtime", "/etc/timezone",
		"/etc/locale.alias", "/etc/locale.conf", "/etc/default/locale", "/etc/mime.types", "/etc/os-release", "/etc/debian_version",
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates", "/etc/ca-certificates.conf",
		"/etc/crypto-policies", "/etc/python3", "/etc/java", "/etc/fonts",
	}
}

// shared are directories in which each entry is hidden, and not the whole: the
// sandbox replaces them, or the process's own files are created in them later.
var shared = [...]string{"/tmp", "/var/tmp", "/run"}

// UserRoots returns the directories in which everything is to be hidden that a process
// needs not see: all of the file system on Linux, elsewhere those of users.
func UserRoots(own ...string) []string {
	if runtime.GOOS == "linux" {
		return []string{"/"}
	}
	var list []string
	for _, dir := range append(own, "/home", "/root", "/Users", "/mnt", "/media", "/srv", "/var/mail", "/var/spool") {
		if dir = Resolve(dir); dir != "" && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// HideExcept returns the paths to mask so that below the roots only the open paths
// are visible: a root that contains no open path, and in the others every entry that
// neither is nor contains one. Below / the targets of symbolic links are judged
// themselves. All paths are absolute, without symbolic links.
func HideExcept(roots, open []string) (masked []string) {
	links := !slices.Contains(roots, "/")
	contains := func(dir string) bool {
		in := func(o string) bool { return Below(dir, o) }
		return slices.ContainsFunc(open, in) || slices.ContainsFunc(shared[:], in)
	}
	var visit func(dir string)
	visit = func(dir string) {
		if slices.ContainsFunc(open, func(o string) bool { return Below(o, dir) }) {
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

// ProgramPaths returns what the programs in directories such as those of PATH need:
// the directories, and for ~/x/bin and /opt/x/bin also ~/x and /opt/x, where version
// managers have libraries.
func ProgramPaths(dirs []string, home string) []string {
	var list []string
	home = Resolve(home)
	for _, dir := range ResolveAll(dirs) {
		if !filepath.IsAbs(dir) || home != "" && Below(dir, home) {
			continue
		}
		list = append(list, dir)
		up := filepath.Dir(dir)
		if name := filepath.Base(dir); name != "bin" && name != "shims" {
			continue
		}
		switch own := home != "" && up != home && Below(home, up); {
		case own && up == filepath.Join(home, ".local"): // of everything
			for _, tool := range []string{"lib", "share/uv", "share/pipx", "pipx", "share/mise", "share/fnm", "share/pnpm"} {
				list = append(list, filepath.Join(up, tool))
			}
		case own && up == filepath.Join(home, "go"): // with the sources of modules
		case own && up == filepath.Join(home, ".cargo"):
			list = append(list, up, filepath.Join(home, ".rustup"))
		case own && !isRepository(up), own && strings.Contains(up[len(home):], "/."), filepath.Dir(up) == "/opt":
			list = append(list, up)
		}
	}
	return list
}

// isRepository reports whether a directory is one of sources, with programs of its own.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// Resolve resolves the symbolic links of a path that exists.
func Resolve(path string) string {
	if path == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// ResolveAll is [Resolve] for many paths; it looks at each directory above them
// once.
func ResolveAll(paths []string) []string {
	known := map[string]string{} // "" for what is not there
	var resolve func(path string) string
	resolve = func(path string) string {
		real, ok := known[path]
		if ok {
			return real
		}
		switch dir := filepath.Dir(path); {
		case dir == path:
			real = path
		case resolve(dir) != "":
			real = filepath.Join(resolve(dir), filepath.Base(path))
			if info, err := os.Lstat(real); err != nil {
				real = ""
			} else if info.Mode()&fs.ModeSymlink != 0 {
				real, _ = filepath.EvalSymlinks(real) // "" if it leads nowhere
			}
		}
		known[path] = real
		return real
	}
	all := slices.Clone(paths)
	for i, path := range all {
		switch {
		case path == "":
		case runtime.GOOS == "windows": // where names have a canonical form, too
			all[i] = Resolve(path)
		default:
			path = filepath.Clean(path)
			all[i] = cmp.Or(resolve(path), path)
		}
	}
	return all
}

// PathDirs returns the directories of the PATH in an environment.
func PathDirs(environ []string) (dirs []string) {
	for _, entry := range environ {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			dirs = filepath.SplitList(path)
		}
	}
	return dirs
}
