// Package display prepares untrusted text (of models, tools, servers and files)
// for a terminal: it cannot control the terminal, and where the user decides on
// a text, no part of it is hidden.
package display
