package permissions

import "golang.org/x/text/unicode/norm"

// normalize gives a name the one spelling of its characters that rules are
// compared in: the file systems here take composed and decomposed ones for the
// same.
func normalize(s string) string { return norm.NFC.String(s) }
