// Package acp is agent acp, which runs sessions for an editor.
package acp
