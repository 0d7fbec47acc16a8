package root

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
)

// namers are all commands that take the name of something that may not exist.
// "nix" stands for a name.
var namers = []string{
	"answer nix yes", "exec --resume nix PROMPT",
	"serve token revoke nix",
	"mcp disable nix", "mcp enable nix", "mcp get nix", "mcp login nix", "mcp logout nix", "mcp remove nix", "mcp test nix",
	"hooks log nix", "hooks test nix",
	"permissions check --tool nix", "permissions explain --tool nix", "permissions log nix",
	"plugins add ./nix", "plugins marketplace add ./nix", "plugins marketplace remove nix", "plugins marketplace update nix", "plugins allow nix", "plugins config nix", "plugins show nix", "plugins disable nix", "plugins enable nix", "plugins logs nix", "plugins remove nix", "plugins seal nix", "plugins test nix", "plugins dev nix", "plugins update nix", "plugins verify nix",
	"sessions delete nix", "sessions diff nix", "sessions undo nix", "sessions restore nix", "sessions export nix", "sessions fork nix", "sessions move nix --to http://127.0.0.1:1", "sessions repair nix", "sessions show nix", "sessions trace nix", "sessions view nix",
	"skills add ./nix", "skills disable nix", "skills enable nix", "skills eval nix", "skills lint nix", "skills remove nix", "skills show nix", "skills update nix", "skills verify nix",
	"graph impact nix", "graph show nix", "graph test nix", "graph why nix nix",
	"task resume nix", "task status nix", "task undo nix", "task view nix", "task export nix",
	"tools call nix", "tools show nix",
	"trust nix",
	"worktrees apply nix", "worktrees branch nix", "worktrees diff nix", "worktrees remove nix",
}

// fixedNames are commands whose argument is not such a name: one of a fixed list,
// whose other values are wrong usage, a new name, a text or a settings file, or a name
// that only a service knows.
var fixedNames = []string{
	"completion", "config get", "config set", "config unset", "config validate", "exec", "mcp add", "permissions test", "plugins new", "plugins search",
	"serve", "serve token add", "serve token keep", "serve webhook add", "serve webhook delete", "worker", "acp setup", "acp tail", "providers setup", "providers test", "resume", "skills match", "task plan", "task run", "skills new", "skills why", "try",
}

// TestNotFound checks that "not found" has the same exit code in all commands and
// that the error says what was not found.
func TestNotFound(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for _, line := range namers {
		t.Run(line, func(t *testing.T) {
			s, out, errs := personAt(home, "")
			s.InTTY = false
			code := execute(t.Context(), strings.Fields(line), s)
			if code != cmdutil.ExitError || !strings.Contains(errs.String(), "nix") || out.Len() > 0 {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", code, cmdutil.ExitError, out, errs)
			}
		})
	}
}

// TestNotFoundIsComplete finds commands with arguments that TestNotFound does not
// know.
func TestNotFoundIsComplete(t *testing.T) {
	for cmd := range commandTree(newCmd(&cmdutil.IO{}, "")) {
		if !takesArgument(cmd) {
			continue
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "agent ")
		named := slices.ContainsFunc(namers, func(line string) bool { return strings.HasPrefix(line+" ", name+" ") })
		if !named && !slices.Contains(fixedNames, name) {
			t.Errorf("agent %s takes %q: add it to namers or fixedNames", name, cmd.Use)
		}
	}
}

func takesArgument(cmd *cobra.Command) bool {
	_, args, ok := strings.Cut(strings.TrimSuffix(cmd.Use, " [flags]"), " ")
	return ok && !cmd.Hidden && cmd.HasParent() && args != ""
}
