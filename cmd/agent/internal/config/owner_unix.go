//go:build unix

package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// writableByOthers says how users other than this one and root could change a
// file, and what to do about it; empty if they cannot.
func writableByOthers(path string, info fs.FileInfo) string {
	if why := othersMayWrite(path, info); why != "" {
		return why
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&fs.ModeSticky != 0 { // then only the owner of a file can replace it
		return ""
	}
	return othersMayWrite(dir, info)
}

func othersMayWrite(path string, info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	mode := info.Mode().Perm()
	// By convention, a group with the owner's ID has no other members.
	group := mode&0o020 != 0 && stat.Gid != stat.Uid && stat.Gid != 0
	switch {
	case stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return fmt.Sprintf("%s is owned by the user with ID %d, who can change it; run: chown %d %s", path, stat.Uid, os.Geteuid(), path)
	case mode&0o002 != 0 || group:
		return fmt.Sprintf("%s is writable by others (mode %03o); run: chmod go-w %s", path, mode, path)
	}
	return ""
}
