// Package run is agent exec: one prompt, run to its end without a terminal to
// ask on, and its events printed as text or JSON.
package run
