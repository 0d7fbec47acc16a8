// Package lazy makes regular expressions that are compiled on first use: most
// commands need none, and must start quickly.
package lazy
