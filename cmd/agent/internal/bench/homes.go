package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Numbers of extensions of a user who has many.
const (
	manySkills  = 2_000
	manyServers = 20
	manyPlugins = 10
)

// echoPlugin is the name of the plugin in the scenarios of one.
const echoPlugin = "bench"

// homeMaker puts extensions into a home, with the agent.
type homeMaker struct {
	ctx     context.Context
	agent   string // its program
	plugin  string // the program of package plugin
	dir     string // for files
	environ []string
}

// run runs a command of the agent.
func (m *homeMaker) run(args ...string) error {
	cmd := exec.CommandContext(m.ctx, m.agent, args...)
	cmd.Dir, cmd.Env = m.dir, m.environ
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("agent %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// addPlugin installs the plugin under a name.
func (m *homeMaker) addPlugin(name string) error {
	dir := filepath.Join(m.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	spec, err := json.Marshal(object{
		"name": name, "version": "1.0.0", "protocol": 1, "summary": "Returns texts.",
		"command": object{"*": []string{"./" + name}}, "manifest": object{},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), spec, 0o600); err != nil {
		return err
	}
	program, err := os.ReadFile(m.plugin)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+exeSuffix()), program, 0o700); err != nil {
		return err
	}
	return m.run("plugins", "add", "--yes", dir)
}

// onePlugin installs echoPlugin.
func onePlugin(m *homeMaker, _ string) error { return m.addPlugin(echoPlugin) }

// manyExtensions writes skills, and adds MCP servers, whose tools the agent then knows,
// and plugins.
func manyExtensions(m *homeMaker, home string) error {
	for i := range manySkills {
		dir := filepath.Join(home, ".agent", "skills", fmt.Sprintf("skill-%04d", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(skillText(i)), 0o600); err != nil {
			return err
		}
	}
	for i := range manyServers {
		name := fmt.Sprintf("server-%02d", i)
		if err := m.run("mcp", "add", name, "--", m.plugin, name); err != nil {
			return err
		}
	}
	for i := range manyPlugins {
		if err := m.addPlugin(fmt.Sprintf("plugin-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// skillText is a skill of about 4 kB; no two are the same.
func skillText(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: skill-%04d\ndescription: Handles case %[1]d of department %d. Use when a form of kind %d has to be filled in.\n---\n\n", n, n%37, n%101)
	for i := range 40 {
		fmt.Fprintf(&b, "%d. Take sheet %d, compare it with ledger %d of year %d, and note what differs in the margin.\n", i+1, (n+i)%211, (n*i)%997, 1900+i)
	}
	return b.String()
}

// keptHome returns the home of a scenario whose runs share one: it is made with the
// first.
func (b *bench) keptHome(ctx context.Context, s *scenario, c contestant) (string, error) {
	home := filepath.Join(b.temp, "home "+s.name)
	if _, err := os.Stat(home); err == nil {
		return home, nil
	}
	program, err := b.pluginProgram(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(b.temp, "extensions-")
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return "", err
	}
	m := &homeMaker{ctx: ctx, agent: c.path, plugin: program, dir: dir, environ: environment(dir, home)}
	return home, s.home(m, home)
}

// pluginProgram builds package plugin once, as the agent builds plugins.
func (b *bench) pluginProgram(ctx context.Context) (string, error) {
	program := filepath.Join(b.temp, "plugin"+exeSuffix())
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	return program, build(ctx, root, "./cmd/agent/internal/bench/plugin", program, "-tags=grpcnotrace")
}

// environment returns the environment of a program in a home.
func environment(dir, home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home, "USERPROFILE=" + home,
		"AGENT_HOME=" + filepath.Join(home, ".agent"),
		"TMPDIR=" + dir, "TEMP=" + dir,
	}
}
