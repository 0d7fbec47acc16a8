package tool

import (
	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core/pdftext"
)

// NewPDFCmd returns the hidden command that reads a PDF document for the agent that
// started it.
func NewPDFCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:    setup.InternalPDF + " FIRST PAGES BYTES",
		Hidden: true,
		Args:   cmdutil.Args(cobra.ExactArgs(3)),
		RunE:   func(_ *cobra.Command, args []string) error { return pdftext.Serve(s.In, s.Out, args) },
	}
}
