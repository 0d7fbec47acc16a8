// Package vt is a small model of a terminal, for tests and recordings: it shows
// what a person would see. It knows the sequences that the line session uses
// and lists the others, so that none slips in.
package vt
