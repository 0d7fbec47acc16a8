package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/cmd/agent/internal/config"
	"github.com/seed-009c0928/agent/cmd/agent/internal/dashboard"
	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/privatefile"
	"github.com/seed-009c0928/agent/cmd/agent/internal/setup"
)

// The container of the Aspire dashboard, and the ports of this machine.
const (
	image     = "mcr.microsoft.com/dotnet/aspire-dashboard:9.5"
	container = "agent-telemetry"
	pageURL   = "http://localhost:18888"
	endpoint  = "http://localhost:4317"
)

// NewCmd returns agent telemetry.
func NewCmd(s *cmdutil.IO) *cobra.Command {
	return cmdutil.Group("telemetry", "Look at traces and metrics on a local dashboard", newUpCmd(s), newDownCmd(s), newStatusCmd(s))
}

func newUpCmd(s *cmdutil.IO) *cobra.Command {
	var inDocker bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a dashboard, and send telemetry to it",
		Long: "Start a web page of all sessions in the background. It reads the session logs and needs no telemetry; its address\n" +
			"contains a random token. Where docker works, also start the Aspire dashboard: its page is on port 18888 of this\n" +
			"machine, and it takes telemetry on port 4317. Your settings then send telemetry to it, until 'agent telemetry down'.\n" +
			"Nothing leaves this machine.",
		Args: cmdutil.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := startPage(cmd.Context(), s); err != nil {
				return err
			}
			if !cmd.Flags().Changed("docker") {
				inDocker = dockerWorks(cmd.Context())
			}
			if !inDocker {
				return nil
			}
			return up(cmd.Context(), s)
		},
	}
	cmd.Flags().BoolVar(&inDocker, "docker", false, "also run the Aspire dashboard in docker (default: if docker works)")
	return cmd
}

func newDownCmd(s *cmdutil.IO) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the dashboard, and restore the settings",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return down(cmd.Context(), s) },
	}
}

func newStatusCmd(s *cmdutil.IO) *cobra.Command {
	var flags setup.Flags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show where telemetry is sent, and whether the dashboard is running",
		Args:  cmdutil.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return status(cmd.Context(), s, &flags, asJSON) },
	}
	flags.Register(cmd.Flags(), setup.DirFlag|setup.SettingsFlags)
	cmdutil.JSONFlag(cmd, &asJSON)
	return cmd
}

// docker runs docker and returns its output.
func docker(ctx context.Context, args ...string) (string, error) {
	path, err := exec.LookPath("docker")
	if err != nil {
		return "", cmdutil.Advise(errors.New("docker was not found"), "Install docker, or send telemetry to another collector: see docs/telemetry.md.\n")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("docker %s: %s", args[0], display.OneLine(string(failed.Stderr), 500))
	}
	return strings.TrimSpace(string(out)), err
}

// dockerWorks reports whether docker can start a container.
func dockerWorks(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := docker(ctx, "version", "--format", "{{.Server.Version}}")
	return err == nil
}

// startPage serves the page of all sessions in the background.
func startPage(ctx context.Context, s *cmdutil.IO) error {
	home, err := s.AgentHome()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	url, err := dashboard.Up(ctx, self, home)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "Sessions: %s\n", url)
	return err
}

// isRunning reports whether the dashboard's container runs.
func isRunning(ctx context.Context) bool {
	out, err := docker(ctx, "inspect", "--format", "{{.State.Running}}", container)
	return err == nil && out == "true"
}

func up(ctx context.Context, s *cmdutil.IO) error {
	home, err := s.AgentHome()
	if err != nil {
		return err
	}
	if !isRunning(ctx) {
		fmt.Fprintf(s.Err, "Starting %s\n", image)
		_, _ = docker(ctx, "rm", "--force", container) // one that has stopped
		if _, err := docker(ctx, "run", "--detach", "--rm", "--name", container,
			"--publish", "127.0.0.1:18888:18888", "--publish", "127.0.0.1:4317:18889", "--publish", "127.0.0.1:4318:18890",
			"--env", "DOTNET_DASHBOARD_UNSECURED_ALLOW_ANONYMOUS=true", image); err != nil {
			return err
		}
		if !isRunning(ctx) {
			return fmt.Errorf("the container %s ended at once; its output: docker logs %s", container, container)
		}
	}
	if err := redirect(ctx, home); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "Dashboard: %s\nSessions send telemetry to %s. Stop it with: agent telemetry down\n", pageURL, endpoint)
	return nil
}

// former is what the settings were before up.
type former struct {
	Enabled  bool              `json:"enabled"`
	Endpoint string            `json:"endpoint"`
	Protocol string            `json:"protocol"`
	Headers  map[string]string `json:"headers,omitempty"` // as written in the settings
}

func formerFile(home string) string { return filepath.Join(home, "telemetry.json") }

// redirect sends telemetry to the dashboard and keeps the former settings. Headers are
// for the former endpoint, and may be its keys: the dashboard does not get them.
func redirect(ctx context.Context, home string) error {
	var kept error
	err := config.UserFile(home).Edit(ctx, func(in *config.Settings) []config.Change {
		t := in.Telemetry
		if kept = keep(ctx, home, former{t.Enabled, t.Endpoint, t.Protocol, t.Headers.Written()}); kept != nil {
			return nil
		}
		changes := []config.Change{{Key: "telemetry.enabled", Value: "true"}, {Key: "telemetry.endpoint", Value: endpoint}, {Key: "telemetry.protocol", Value: "grpc"}}
		if len(t.Headers) > 0 {
			changes = append(changes, config.Change{Key: "telemetry.headers", Value: "{}"})
		}
		return changes
	})
	return errors.Join(kept, err)
}

// keep saves the former settings, unless they are those of the dashboard.
func keep(ctx context.Context, home string, before former) error {
	path := formerFile(home)
	return privatefile.Update(ctx, path, path+".lock", func(old []byte) ([]byte, error) {
		if len(old) > 0 && before.Endpoint == endpoint { // it is up already
			return old, nil
		}
		return json.Marshal(before)
	})
}

func down(ctx context.Context, s *cmdutil.IO) error {
	home, err := s.AgentHome()
	if err != nil {
		return err
	}
	page, err := dashboard.Down(ctx, home)
	if err != nil {
		return err
	}
	if page {
		fmt.Fprintln(s.Out, "The page of all sessions is stopped.")
	}
	restored, err := restore(ctx, home)
	if err != nil {
		return err
	}
	running := isRunning(ctx)
	if running {
		if _, err := docker(ctx, "rm", "--force", container); err != nil {
			return err
		}
	}
	switch {
	case running && restored:
		fmt.Fprintln(s.Out, "The dashboard is stopped, and the settings are as before.")
	case running:
		fmt.Fprintln(s.Out, "The dashboard is stopped. The settings were changed since, and stay.")
	case restored:
		fmt.Fprintln(s.Out, "The settings are as before.")
	case !page:
		fmt.Fprintln(s.Err, "The dashboard is not running.")
	}
	return nil
}

// restore takes back what redirect changed, unless the user changed it since.
func restore(ctx context.Context, home string) (bool, error) {
	path := formerFile(home)
	data, err := privatefile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var before former
	if err != nil || json.Unmarshal(data, &before) != nil {
		return false, fmt.Errorf("%s is damaged: remove it, and set telemetry.* yourself", path)
	}
	target, ours := config.UserFile(home), false
	if err := target.Edit(ctx, func(in *config.Settings) []config.Change {
		ours = in.Telemetry.Endpoint == endpoint
		return nil
	}); err != nil {
		return false, err
	}
	if ours {
		values := map[string]string{"telemetry.endpoint": before.Endpoint, "telemetry.protocol": before.Protocol, "telemetry.enabled": "", "telemetry.headers": ""}
		if before.Enabled {
			values["telemetry.enabled"] = "true"
		}
		if len(before.Headers) > 0 {
			text, err := json.Marshal(before.Headers)
			if err != nil {
				return false, err
			}
			values["telemetry.headers"] = string(text)
		}
		for _, key := range cmdutil.SortedKeys(values) {
			if value := values[key]; value != "" {
				err = target.Set(ctx, key, value)
			} else {
				_, err = target.Unset(ctx, key)
			}
			if err != nil {
				return false, err
			}
		}
	}
	return ours, os.Remove(path)
}

// state is what status prints.
type state struct {
	Enabled   bool   `json:"enabled"`
	Endpoint  string `json:"endpoint,omitempty"`
	Protocol  string `json:"protocol,omitempty"`
	Reachable bool   `json:"reachable"`
	Content   bool   `json:"sensitiveData"`
	Dashboard string `json:"dashboard,omitempty"` // its page, while it is running
	Sessions  string `json:"sessions,omitempty"`  // the page of all sessions, likewise
}

func status(ctx context.Context, s *cmdutil.IO, flags *setup.Flags, asJSON bool) error {
	set, err := flags.Load(s)
	if err != nil {
		return err
	}
	var st state
	if st.Enabled = set.TelemetryOn(); st.Enabled {
		target, err := set.TelemetryTarget(ctx)
		if err != nil {
			return err
		}
		st.Endpoint, st.Protocol, st.Content = target.Endpoint, target.Protocol, set.Settings.Telemetry.EnableSensitiveData
		st.Reachable = setup.TelemetryReachable(ctx, st.Endpoint)
	}
	if isRunning(ctx) {
		st.Dashboard = pageURL
	}
	home, err := s.AgentHome()
	if err == nil {
		st.Sessions, err = dashboard.URL(home)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return cmdutil.WriteJSON(s.Out, st)
	}
	if !st.Enabled {
		fmt.Fprintln(s.Out, "Telemetry:  off")
	} else {
		fmt.Fprintf(s.Out, "Telemetry:  on\nEndpoint:   %s (%s, %s)\n", display.OneLine(st.Endpoint, 300), st.Protocol, map[bool]string{true: "reachable", false: "not reachable"}[st.Reachable])
		fmt.Fprintf(s.Out, "Content:    %s\n", map[bool]string{true: "sent", false: "not sent"}[st.Content])
	}
	fmt.Fprintf(s.Out, "Dashboard:  %s\nSessions:   %s\n", cmp.Or(st.Dashboard, "not running"), cmp.Or(st.Sessions, "not running"))
	return nil
}
