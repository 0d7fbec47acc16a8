package tools

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

// failure turns the error of an access to path into a failure for the model;
// what names the operation: "read", "write", "search" …
func failure(what, path string, err error) core.Result {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return core.Failf(core.CodeTimeout, "Cannot %s %q: the call timed out. Ask for less at once.", what, path)
	case errors.Is(err, context.Canceled):
		return core.Failf(core.CodeCancelled, "Cannot %s %q: the call was cancelled.", what, path)
	case errors.Is(err, fs.ErrPermission):
		return core.Failf(core.CodePermission, "Cannot %s %q: permission denied (%v). Choose another path, or ask the user for access.", what, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return core.Failf(core.CodeNotFound, "Cannot %s %q: it does not exist. Find the right path with glob or list_dir.", what, path)
	case errors.Is(err, core.ErrTooLarge):
		return core.Failf(core.CodeIO, "Cannot %s %q: the file is too large. Use shell instead.", what, path)
	case diskFull(err):
		return core.Failf(core.CodeIO, "Cannot %s %q: the disk is full (%v). Nothing was changed. Free some space, or tell the user.", what, path, err)
	}
	return core.Failf(core.CodeIO, "Cannot %s %q: %v.", what, path, err)
}

// diskFull checks the text, which is all that remains of an error from another
// host.
func diskFull(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "no space left") || strings.Contains(text, "not enough space")
}

// invalid returns a failure for arguments that pass the schema but are wrong.
func invalid(format string, args ...any) (core.Result, error) {
	return core.Failf(core.CodeValidation, format, args...), nil
}

// special describes a file that is neither regular nor a directory.
func special(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// fileAccess returns the access of a tool to one path. Reading a stored output
// by its handle needs none.
func fileAccess(scope core.Scope, path string, recursive bool) []core.Access {
	if scope == core.ScopeRead && strings.HasPrefix(path, core.HandlePrefix) {
		return nil
	}
	return []core.Access{{Scope: scope, Resource: path, Recursive: recursive}}
}
