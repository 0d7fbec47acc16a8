package cmdutil

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/core/jsonpos"
)

// NearCommand returns the name of the subcommand that a misspelt word most
// likely means, or "".
func NearCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return jsonpos.Nearest(word, names)
}

// UnknownCommand is the usage error for a word that is no subcommand. The hint
// is what else the word may have been meant for; it may be empty.
func UnknownCommand(cmd *cobra.Command, word, hint string) error {
	text := fmt.Sprintf("unknown command %q", word)
	if cmd.HasParent() {
		text += fmt.Sprintf(" for %q", cmd.CommandPath())
	}
	near := NearCommand(cmd, word)
	if near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	switch {
	case hint != "" && near != "":
		text += " (" + hint + ")"
	case hint != "":
		text += "; " + hint
	}
	return Usagef("%s", text)
}
