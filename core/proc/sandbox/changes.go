package sandbox

import "io/fs"

// ChangeKind is what happened to a path in a directory that was tried.
type ChangeKind string

// The kinds. A path of another type is deleted and created.
const (
	Created  ChangeKind = "create"
	Modified ChangeKind = "modify" // its content
	Deleted  ChangeKind = "delete"
	Moded    ChangeKind = "mode" // only its permissions
)

// Change is a change that was tried.
type Change struct {
	Path  string // relative to the directory
	Kind  ChangeKind
	Mode  fs.FileMode // afterwards; of a deleted path, before
	Links bool        // the changed file has other names, which keep their content
}
