//go:build unix

package root

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInteractiveMCP uses a server as a person at the terminal: a call asks, a
// resource goes along, a prompt is a command, and a definition that has changed
// is looked at.
func TestInteractiveMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{text: ["Ready."]},
		{calls: [{name: near__echo, args: {text: hello}}]},
		{text: ["Called."]},
		{text: ["Read."]},
		{text: ["Greeted."]},
		{calls: [{name: near__echo, args: {text: again}}]},
		{text: ["Over."]}]`)
	add := exec.Command("agent", "mcp", "add", "near", "--", "mcpserver")
	add.Dir, add.Env = w.workspace, []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := w.onTerminal("Begin")
	s.answer("Ready.", "/mcp near\r")
	s.answer("near__echo", "go on\r")
	s.answer("Call echo of the MCP server near?", "y")
	s.answer("Called.", "look at @near:script://notes\r")
	s.answer("Read.", "/quit\r")
	s.exits(0)
	requests := w.chat.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "remember the bread") || !strings.Contains(last, `<resource server=\"near\" uri=\"script://notes\">`) {
		t.Errorf("the resource did not go along: %s", last)
	}

	if err := os.WriteFile(filepath.Join(w.workspace, "words"), []byte("Says it twice."), 0o600); err != nil {
		t.Fatal(err)
	}
	again := w.onTerminal()
	again.answer("/help", "/near:greet\r")
	again.answer("missing argument who: /near:greet WHO", "/near:greet Ada Lovelace\r")
	again.answer("Greeted.", "once more\r")
	again.answer("Call echo of the MCP server near?", "y")
	again.answer("MCP server near has changed its tool echo. Use the changed tool?", "")
	again.answer("+ Says it twice.", "n")
	again.answer("Over.", "/quit\r")
	again.exits(0)
	requests = w.chat.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "Please greet Ada Lovelace.") || !strings.Contains(last, "the change was denied") || strings.Contains(last, "twice") {
		t.Errorf("the prompt did not go, or the changed tool did: %s", last)
	}
}

// TestInteractiveSignIn: a server that needs a sign-in is named; the address of the page is
// whole, for another machine's browser, and then the model has the server's tools.
func TestInteractiveSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: ["Ready."]}]`)
	url := protectedServer(t)
	add := exec.Command("agent", "mcp", "add", "tracker", url)
	add.Dir, add.Env = w.workspace, []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := w.onTerminal()
	s.answer("! MCP server tracker: sign-in required", "/mcp\r")
	s.answer("sign-in required · 0 tools · ", "\r")
	s.answer("› sign in", "\r")
	s.answer("Sign in on this page", "")
	_, page, _ := strings.Cut(s.text(), "/mcp\n\n")
	page, _, _ = strings.Cut(page, "\n\n")
	resp, err := http.Get(strings.ReplaceAll(page, "\n", ""))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v; the terminal shows:\n%s", resp, err, s.text())
	}
	_ = resp.Body.Close()
	s.answer("Signed in to MCP server tracker. It has 1 tool.", "Begin\r")
	s.answer("Ready.", "/quit\r")
	s.exits(0)
	if body := string(w.chat.Requests()[0].Body); !strings.Contains(body, "tracker__hello") {
		t.Errorf("the model got %s", body)
	}
}
