// Package charset finds out how a text is encoded, and converts it to UTF-8 and
// back. What it cannot take for text is binary data.
package charset
