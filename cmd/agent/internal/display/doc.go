// Package display turns what models, tools, servers and files say into text for
// a person's terminal: nothing in it can drive the terminal, and where a person
// decides, nothing in it hides.
package display
