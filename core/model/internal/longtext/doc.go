// Package longtext joins pieces of a text that can become very long.
package longtext
