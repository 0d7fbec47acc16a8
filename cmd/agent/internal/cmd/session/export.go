package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

type exportOptions struct {
	*cmdutil.IO
	format string
	output string // "" is stdout
}

func newExportCmd(s *cmdutil.IO) *cobra.Command {
	o := &exportOptions{IO: s}
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Export a session as Markdown or JSON",
		Example: "  agent sessions export 0198a2c4 -o session.md\n" +
			"  agent sessions export 0198a2c4 --format json | jq '.[] | select(.type == \"tool_result\")'",
		Args: cmdutil.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&o.format, "format", "markdown", "output `FORMAT`: markdown (tool calls folded) or json (array of events)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "write to `FILE`, readable only by you, instead of stdout")
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
	if o.output == "" {
		return o.write(ctx, o.Out, home, id)
	}
	path := o.output
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Cwd, path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return errors.Join(o.write(ctx, f, home, id), f.Close())
}

func (o *exportOptions) write(ctx context.Context, to io.Writer, home, id string) error {
	out := bufio.NewWriter(to)
	var t transcript = &jsonTranscript{out: out}
	if o.format == "markdown" {
		t = newMarkdownTranscript(out)
	}
	return errors.Join(transcribe(ctx, home, id, t), out.Flush())
}
