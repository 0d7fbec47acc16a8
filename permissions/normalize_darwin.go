package permissions

import "golang.org/x/text/unicode/norm"

// normalize returns the composed form of a name: file systems here treat composed
// and decomposed characters as equal.
func normalize(s string) string { return norm.NFC.String(s) }
