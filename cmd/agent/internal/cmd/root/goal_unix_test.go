//go:build unix

package root

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInteractiveGoal: /goal works until make test succeeds, and tells of it; a changed
// criterion is asked about.
func TestInteractiveGoal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: shell, args: {command: "echo 1 >add.txt"}}]},
		{text: ["I think that is it."]},
		{calls: [{name: shell, args: {command: "echo 3 >add.txt; echo >>Makefile"}}]},
		{text: ["Mended."]}]`)
	makefile := "test:\n\t@grep -q 3 add.txt || { echo add is wrong; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(w.workspace, "Makefile"), []byte(makefile), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("--permission-mode", "bypass")
	s.answer("/help", "/goal Mend add\r")
	s.answer("bead 1 retrying", "")
	s.answer("Accept changes of existing tests or criteria?", "y")
	s.answer("takes it back", "/tasks\r")
	s.answer("Mend add", "/goal\r")
	s.answer("there is no task to continue", "/quit\r")
	s.exits(0)
}
