// Package page has what the commands share that write their figures into
// docs/performance.md.
package page
