//go:build !darwin

package permissions

// normalize leaves a name as it is: file systems here distinguish composed and
// decomposed characters.
func normalize(s string) string { return s }
