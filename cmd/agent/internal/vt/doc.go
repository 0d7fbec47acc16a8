// Package vt is a small terminal emulator for tests and recordings. It supports
// the escape sequences that the interactive session uses and lists all others,
// so that a test notices them.
package vt
