// Package plugin is the command agent plugins: install, create, verify and
// remove plugins.
package plugin
