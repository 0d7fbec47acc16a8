// Package textedit is the engine of the tools that edit files: it finds lines
// with increasing tolerance, replaces them, and keeps what an edit must keep: the
// byte order mark, the line ending of each line, and the indentation. It is pure.
package textedit
