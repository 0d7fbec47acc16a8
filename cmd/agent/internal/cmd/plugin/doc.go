// Package plugin implements the command agent plugins: create, add, verify and
// remove plugins.
package plugin
