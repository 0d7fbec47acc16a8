//go:build unix

package root

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDropOnATerminal drags an image into the terminal, and pastes another one from
// the clipboard; the model gets both.
func TestDropOnATerminal(t *testing.T) {
	t.Parallel()
	const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\xe7\x02\x9b\xb9\x00\x00\x00\x00IEND\xaeB`\x82"
	w := newWorld(t, `[{text: ["I see two."]}]`)
	bin := t.TempDir()
	for path, data := range map[string]string{
		filepath.Join(w.home, "my pic.png"): png, filepath.Join(bin, "clip.png"): png,
		filepath.Join(bin, "xclip"):    "#!/bin/sh\ncat " + filepath.Join(bin, "clip.png") + "\n",
		filepath.Join(bin, "pngpaste"): "#!/bin/sh\ncat " + filepath.Join(bin, "clip.png") + "\n",
	} {
		if err := os.WriteFile(path, []byte(data), 0o755); err != nil { //nolint:gosec // some are programs
			t.Fatal(err)
		}
	}
	s := w.onTerminalWith([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "DISPLAY=:7"})
	s.answer("default", "see \x1b[200~'"+filepath.Join(w.home, "my pic.png")+"'\x1b[201~")
	s.answer(`my pic.png"`, "\x16") // Ctrl-V
	s.answer("pasted-1.png", "\r")
	s.answer("I see two.", "/quit\r")
	s.exits(0)
	requests := w.chat.Requests()
	if n := strings.Count(string(requests[len(requests)-1].Body), "data:image/png;base64,"); n != 2 {
		t.Errorf("%d images were sent on %s:\n%s", n, runtime.GOOS, s.text())
	}
}
