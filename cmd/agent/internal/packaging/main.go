package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmd/root"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packaging DIR")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// write writes everything to a directory.
func write(ctx context.Context, dir string) error {
	cmd := root.Tree()
	if err := writeManPages(cmd, filepath.Join(dir, "man")); err != nil {
		return err
	}
	if err := writeCompletions(cmd, filepath.Join(dir, "completions")); err != nil {
		return err
	}
	text, err := licences(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "THIRD_PARTY_LICENSES.md"), text, 0o644)
}

// writeManPages writes agent.1, agent-exec.1 and so on. They have no date, so that
// the same source gives the same bytes.
func writeManPages(cmd *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd.DisableAutoGenTag = true
	undated := time.Unix(0, 0).UTC()
	return doc.GenManTree(cmd, &doc.GenManHeader{Section: "1", Source: "agent", Manual: "agent", Date: &undated}, dir)
}

func writeCompletions(cmd *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, generate := range map[string]func(io.Writer) error{
		"agent.bash": func(w io.Writer) error { return cmd.GenBashCompletionV2(w, true) },
		"_agent":     cmd.GenZshCompletion,
		"agent.fish": func(w io.Writer) error { return cmd.GenFishCompletion(w, true) },
		"agent.ps1":  cmd.GenPowerShellCompletionWithDesc,
	} {
		if err := writeFile(filepath.Join(dir, name), generate); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, generate func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return generate(f)
}
