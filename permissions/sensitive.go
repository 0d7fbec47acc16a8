package permissions

import "github.com/seed-009c0928/agent/core/sensitive"

// place is what makes a path special.
type place uint8

const (
	ordinary place = iota
	guarded        // writing and deleting it need approval
	secret         // any access needs approval
)

// placeOf classifies a path. In its first skip bytes, the path of the workspace
// or home, words such as "secret" in directory names do not count.
func placeOf(path string, skip int) place {
	e, ok := sensitive.Match(path, skip)
	return placeOfEntry(e, ok)
}

func placeOfEntry(e sensitive.Entry, ok bool) place {
	switch {
	case !ok:
		return ordinary
	case e.Class == sensitive.Secret:
		return secret
	}
	return guarded
}
