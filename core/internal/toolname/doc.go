// Package toolname finds the tool that a model means by a name that is not
// spelt as the tool's.
package toolname
