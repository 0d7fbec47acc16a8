package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/page"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type exportOptions struct {
	*cmdutil.IO
	format string
	output string // "" is stdout
	html   string // a file
}

func newExportCmd(s *cmdutil.IO) *cobra.Command {
	o := &exportOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Export a session as Markdown, JSON or a web page",
		Example: "  agent sessions export 0198a2c4 -o session.md\n" +
			"  agent sessions export 0198a2c4 --format json | jq '.[] | select(.type == \"tool_result\")'",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags(); f.Changed("html") && (o.html == "" || f.Changed("format") || f.Changed("output")) {
				return cmdutil.Usagef("--html takes the name of a file, and neither --format nor --output")
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&o.format, "format", "markdown", "output `FORMAT`: markdown (tool calls folded) or json (array of events)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "write to `FILE`, readable only by you, instead of stdout")
	cmd.Flags().StringVar(&o.html, "html", "", "write a self-contained web page to `FILE`, readable only by you")
	return cmd
}

func (o *exportOptions) run(ctx context.Context, prefix string) error {
	if o.format != "markdown" && o.format != "json" {
		return cmdutil.Usagef("--format %q: use markdown or json", o.format)
	}
	home, id, err := setup.FindSession(o.IO, prefix)
	if err != nil {
		return err
	}
	switch {
	case o.html != "":
		price := setup.KnownModels(o.IO).Price
		return o.file("--html", o.html, func(f io.Writer) error {
			return setup.SessionAdvice(page.Export(ctx, f, page.Logs(home), id, price, time.Local), id)
		})
	case o.output != "":
		return o.file("--output", o.output, func(f io.Writer) error { return o.write(ctx, f, home, id) })
	}
	return o.write(ctx, o.Out, home, id)
}

// file writes a file that only the user can read.
func (o *exportOptions) file(flag, path string, write func(io.Writer) error) error {
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Cwd, path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return errors.Join(write(f), f.Close())
}

func (o *exportOptions) write(ctx context.Context, to io.Writer, home, id string) error {
	out := bufio.NewWriter(to)
	var t transcript = &jsonTranscript{out: out}
	if o.format == "markdown" {
		t = newMarkdownTranscript(out)
	}
	return errors.Join(transcribe(ctx, home, id, t), out.Flush())
}
