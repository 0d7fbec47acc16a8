//go:build unix

package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordingOfSensitiveFiles records a session in which the user approves reading
// and writing files with secrets: the recording has their sizes, and a replay of the
// same session works.
func TestRecordingOfSensitiveFiles(t *testing.T) {
	t.Parallel()
	const old, fresh = "correct9horse7battery", "purple4monkey2dishwasher"
	w := newWorld(t, `[
		{calls: [{name: read_file, args: {file_path: .env}}]},
		{text: ["It is `+old[:12]+`", "`+old[12:]+`."]},
		{calls: [{name: write_file, args: {file_path: .env.new, content: "PASSWORD=`+fresh+`\n"}}]},
		{text: ["Over."]}]`)
	if err := os.WriteFile(filepath.Join(w.workspace, ".env"), []byte("USER=ann\nPASSWORD="+old+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tape := filepath.Join(t.TempDir(), "tape.yaml")
	talk := func(args ...string) *screen {
		s := w.onTerminal(append(args, "--ephemeral", "What is it?")...)
		s.answer("reads .env, which", "y")
		s.answer("It is", "change it\r")
		s.answer("writes .env.new, which", "y")
		s.answer("Over.", "/quit\r")
		s.exits(0)
		return s
	}
	talk("--record", tape)
	data, err := os.ReadFile(tape)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{old, old[:12], old[12:], fresh, "USER=ann"} {
		if strings.Contains(string(data), part) {
			t.Errorf("%q is recorded:\n%s", part, data)
		}
	}
	if !strings.Contains(string(data), "bytes are not recorded, because they may contain secrets]") || !strings.Contains(string(data), ".env.new") {
		t.Errorf("sizes and paths are not recorded:\n%s", data)
	}
	if err := os.Remove(filepath.Join(w.workspace, ".env.new")); err != nil {
		t.Fatal(err)
	}
	if s := talk("--replay", tape); !strings.Contains(s.text(), "It is [redacted].") {
		t.Errorf("the replay shows %q", s.text())
	}

	// Where the call is not approved, the replay says where it differs.
	a := w.exec("--replay", tape, "What is it?")
	a.exits(4)
	if text, err := os.ReadFile(a.stderr); err != nil || !strings.Contains(string(text), "bytes are not recorded") || !strings.Contains(string(text), "the request differs") {
		t.Errorf("%s, %v", text, err)
	}
}
