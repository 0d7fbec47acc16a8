package snapshot

import "github.com/aymanbagabas/go-udiff"

// merge applies the changes from base to one and from base to other to base. It is
// not ok if they touch the same lines, unless they are the same.
func merge(base, one, other string) (merged string, ok bool) {
	edits, ok := udiff.Merge(udiff.Lines(base, one), udiff.Lines(base, other))
	if !ok {
		return "", false
	}
	merged, err := udiff.Apply(base, edits)
	return merged, err == nil
}
