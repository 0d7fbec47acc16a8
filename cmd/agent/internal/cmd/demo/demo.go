package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/run"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/model/scripted"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/mcp"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

var (
	//go:embed files/script.yaml
	demoScript []byte
	//go:embed files/workspace.txtar
	demoWorkspace []byte
)

const demoPrompt = "There is a failing test here. Find out why it fails, fix the code, and run the test again."

// NewCmd returns agent demo.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	var keep bool
	var disallowed []string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a scripted model fix a failing test",
		Long: "Create a small script with a failing test in a temporary directory and let a scripted model fix it, with\n" +
			"the real tools and permission policy. A second agent inspects the result as an MCP server in a separate\n" +
			"process. It needs neither an API key nor a network. On a terminal it is an interactive session.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), s, keep, disallowed) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the workspace and the session log, and print their path")
	cmdutil.ListVar(cmd.Flags(), &disallowed, "disallowed-tools", "disable tools with these `NAMES`, to see the demo fail")
	return cmd
}

// runDemo runs the task of exec with a scripted model and scripted approvals.
func runDemo(ctx context.Context, s *cmdutil.IO, keep bool, without []string) (err error) {
	if _, err := exec.LookPath("sh"); err != nil {
		return fmt.Errorf("the demo tests a shell script and needs sh: %w", err)
	}
	root, remove, err := demoDir(keep)
	if err != nil {
		return fmt.Errorf("temporary directory: %w", err)
	}
	defer func() {
		if keep {
			fmt.Fprintf(s.Out, "\nKept: %s\n", root)
		} else if rerr := remove(); err == nil {
			err = rerr
		}
	}()
	workspace := filepath.Join(root, "workspace")
	if err := unpack(workspace, demoWorkspace); err != nil {
		return err
	}
	site, err := serveGuide()
	if err != nil {
		return err
	}
	defer site.close()
	t, err := demoTask(s, root, workspace, site)
	if err != nil {
		return err
	}
	t.Forget, t.Agent.Disallowed = !keep, without
	if s.InTTY && s.OutTTY {
		if err := onTerminal(ctx, s, t); err != nil {
			return err
		}
		fmt.Fprintln(s.Out, "That was a script. To use a real model: agent providers setup")
		return nil
	}
	fmt.Fprintf(s.Out, "This is a demonstration. The model is a script: its text and tool calls are fixed. The rest is real: the loop,\n"+
		"the tools, the files, the commands, the plugin that fetches a page from a server on this machine, the MCP\n"+
		"server, the permission policy.\n\n"+
		"Workspace: %s\nPrompt:    %s\n\n", workspace, demoPrompt)
	out, err := t.Run(ctx)
	if err != nil {
		fmt.Fprintf(s.Err, "agent: the demo failed: %v\n", err)
		return &cmdutil.StatusError{Code: demoFailed(err)}
	}
	if code := run.OutcomeCode(out, nil); code != cmdutil.ExitDone {
		return &cmdutil.StatusError{Code: code}
	}
	fmt.Fprintln(s.Out, "\nThat was a script. To use a real model: agent providers setup")
	return nil
}

// demoDir creates the directory of the demo. The next agent removes that of a
// killed demo, unless it is to be kept.
func demoDir(keep bool) (root string, remove func() error, err error) {
	if keep {
		root, err = os.MkdirTemp("", "agent-demo-")
		return root, nil, err
	}
	dir, err := sandbox.NewTempDir()
	if err != nil {
		return "", nil, err
	}
	return dir.Path, dir.Remove, nil
}

// demoTask is the task of the demo, with its files below root.
func demoTask(s *cmdutil.IO, root, workspace string, site *demoSite) (*run.Task, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the agent binary: %w", err)
	}
	script, err := scripted.Parse("demo/script.yaml", demoScript)
	if err != nil {
		return nil, err
	}
	neighbor, err := demoServer(root)
	if err != nil {
		return nil, err
	}
	return &run.Task{
		IO: s, Format: run.FormatText, Narrate: true, Scripted: true, Prompt: demoPrompt, Mode: string(permissions.ModeDefault),
		Agent: agent.Options{
			Dir: workspace, Home: filepath.Join(root, "home"), Version: cmdutil.Version(), Subreaper: true, Skills: setup.BundledSkills(),
			MCP:     agent.MCPOptions{Servers: []mcp.Configured{neighbor}, Dir: filepath.Join(root, "home", "mcp")},
			Plugins: site.plugins(filepath.Join(root, "home"), self),
		},
		Session: agent.SessionOptions{
			Provider: script.Provider(scripted.Options{Vars: map[string]string{"workspace": workspace, "guide": site.url()}}),
			Asker:    demoUser{},
		},
	}, nil
}

// demoServer is this binary as an MCP server with its own settings.
func demoServer(root string) (mcp.Configured, error) {
	self, err := os.Executable()
	if err != nil {
		return mcp.Configured{}, fmt.Errorf("finding the agent binary: %w", err)
	}
	return mcp.Configured{Name: "neighbor", Source: "the demo", Server: mcp.Server{
		Command: self, Args: []string{"mcp", "serve", "--no-tasks"}, Env: map[string]string{"AGENT_HOME": filepath.Join(root, "neighbor")}, Required: true,
	}}, nil
}

// demoFailed is the exit code of a failed demo. The scripted model is no provider
// that can fail.
func demoFailed(err error) int {
	if code := cmdutil.ExitCode(err); code != cmdutil.ExitProvider {
		return code
	}
	return cmdutil.ExitError
}

// demoUser approves each permission request once.
type demoUser struct{}

func (demoUser) Ask(ctx context.Context, q core.Question) (core.Answer, error) {
	if q.Kind != core.QuestionPermission {
		return core.Answer{}, errors.New("the demo answers permission requests only")
	}
	return core.Answer{Choice: core.ChoiceOnce, Reason: "(approved by the demo)"}, ctx.Err()
}

// unpack writes the files of a txtar archive below dir.
func unpack(dir string, archive []byte) error {
	for _, f := range txtar.Parse(archive).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
