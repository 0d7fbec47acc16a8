// Package hook contains the commands agent hooks.
package hook
