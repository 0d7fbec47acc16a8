// Package run is agent exec: it runs one prompt non-interactively and prints the
// events as text or JSON.
package run
