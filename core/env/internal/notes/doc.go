// Package notes appends notes to the output of commands, about what environments keep
// from them. Its types are not safe for concurrent use.
package notes
