// Package highlight tells the parts of program code apart: keywords, strings,
// comments. The languages are definitions of chroma (MIT licence, see
// languages.LICENSE) in an archive, read when a language is first used: chroma's
// own package of them would cost every command time and memory at its start.
package highlight

//go:generate go run gen.go
