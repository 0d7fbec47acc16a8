//go:build unix

package root

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
)

var servingAt = regexp.MustCompile(`serving at (http://(\S+))`)

// serve starts a service whose sessions ask before they write, at an address, and
// returns its URL. It works without the sandbox, which not every machine has.
func (w *world) serve(at string) (a *command, url string) {
	w.t.Helper()
	return w.serveWith("--listen", at, "--no-sandbox", "--permission-mode", "default")
}

func (w *world) serveWith(args ...string) (a *command, url string) {
	w.t.Helper()
	a = w.run([]string{"FOREIGN=yes"}, append([]string{"serve"}, args...)...)
	if err := await("the service", func() bool { return servingAt.MatchString(a.read(a.stderr)) }); err != nil {
		w.t.Fatalf("%v\n%s", err, a.read(a.stderr))
	}
	return a, servingAt.FindStringSubmatch(a.read(a.stderr))[1]
}

// agent runs a command and returns what it prints.
func (w *world) agent(code int, args ...string) (stdout, stderr string) {
	w.t.Helper()
	a := w.run(nil, args...)
	if status := a.wait(); status.ExitStatus() != code {
		w.t.Errorf("agent %q: exit code %d, want %d\n%s%s", args, status.ExitStatus(), code, a.read(a.stdout), a.read(a.stderr))
	}
	return a.read(a.stdout), a.read(a.stderr)
}

func (w *world) wants(text string, all ...string) {
	w.t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			w.t.Errorf("no %q in %s", want, text)
		}
	}
}

const asksToWrite = `[{calls: [{name: write_file, args: {file_path: made.txt, content: x}}]}, {text: [Over.]}]`

// TestService parks a session on a service, kills that, and answers on the next.
func TestService(t *testing.T) {
	w := newWorld(t, asksToWrite)
	first, url := w.serve("127.0.0.1:0")
	token := strings.TrimSpace(first.read(first.stdout))
	if info, err := os.Stat(filepath.Join(w.home, ".agent", "service", "token")); err != nil || info.Mode().Perm() != 0o600 || len(token) < 40 {
		t.Errorf("the token %q: %v, %v", token, info, err)
	}
	if list, err := os.ReadFile(filepath.Join(w.home, ".agent", "service", "tokens.json")); err != nil || strings.Contains(string(list), token) {
		t.Errorf("the list of tokens: %s, %v", list, err)
	}
	_, errs := w.agent(1, "serve", "--listen", strings.TrimPrefix(url, "http://"))
	w.wants(errs, "is in use, perhaps by another agent serve")
	_, errs = w.agent(1, "serve", "--listen", "127.0.0.1:0", "--no-sandbox")
	w.wants(errs, "another agent serve uses")

	question, errs := w.agent(7, "exec", "--on", url, "--on-ask", "park", "Make a file")
	question = strings.TrimSpace(question)
	w.wants(errs, "? Write", "agent answer --on "+url+" "+question)
	session := question[:strings.LastIndex(question, "-")]
	var out string
	if err := await("the parked session", func() bool { // its record follows what the client got
		out, _ = w.agent(0, "sessions", "list", "--on", url)
		return strings.Contains(out, "parked, 1 question")
	}); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	w.wants(out, session, "Make a file")

	out, _ = w.agent(0, "answer", "--on", url)
	w.wants(out, question, "Write", "Make a file")

	first.signal(syscall.SIGKILL)
	first.wait()
	_, errs = w.agent(1, "sessions", "list", "--on", url)
	w.wants(errs, "cannot be reached")
	second, _ := w.serve(strings.TrimPrefix(url, "http://"))
	if out := second.read(second.stdout); out != "" {
		t.Errorf("the second start prints %q", out)
	}
	out, _ = w.agent(0, "answer", "--on", url, session[:12], "yes")
	w.wants(out, "Over.")
	if data, err := os.ReadFile(filepath.Join(w.home, ".local", "state", "agent", "work", "sessions", "default", session, "work", "made.txt")); err != nil || string(data) != "x" {
		t.Errorf("the file of the session: %q, %v", data, err)
	}
	_, errs = w.agent(0, "answer", "--on", url)
	w.wants(errs, "No open questions")
	_, errs = w.agent(1, "answer", "--on", url, question, "yes")
	w.wants(errs, "does not wait for an answer")
	out, _ = w.agent(0, "sessions", "show", "--on", url, session)
	w.wants(out, "Make a file", "Over.", "idle")
	out, _ = w.agent(0, "sessions", "show", "--on", url, session[:12])
	w.wants(out, session, "idle")

	second.signal(syscall.SIGINT)
	if status := second.wait(); status.ExitStatus() != 130 {
		t.Errorf("exit code %d after Ctrl-C: %s", status.ExitStatus(), second.read(second.stderr))
	}
}

// TestServiceKilled kills a service while the model answers. Who follows the session
// gets the answer from the next one, as the same stream.
func TestServiceKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{touch: asked, await: never, text: [Lost.]}, {text: [Found.]}]`)
	first, url := w.serve("127.0.0.1:0")
	a := w.execWith(nil, "--on", url, "Go")
	w.await("asked")
	first.signal(syscall.SIGKILL)
	first.wait()
	if err := os.WriteFile(filepath.Join(w.workspace, "never"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.serve(strings.TrimPrefix(url, "http://"))
	if result, _ := a.exits(0); result.Text != "Found." {
		t.Errorf("result %+v", result)
	}
}

// TestServiceExec denies what needs approval, and knows what a service does not take.
func TestServiceExec(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToWrite)
	_, url := w.serve("127.0.0.1:0")
	a := w.execWith(nil, "--on", url, "Make a file")
	result, session := a.exits(6)
	if result.Text != "Over." || len(result.Denied) != 1 {
		t.Errorf("result %+v", result)
	}
	w.model(`[{text: [Again.]}]`)
	out, _ := w.agent(0, "exec", "--on", url, "--resume", session[:12], "And now?")
	if out != "Again.\n" {
		t.Errorf("stdout %q", out)
	}
	requests := w.chat.Requests()
	w.wants(string(requests[len(requests)-1].Body), "Make a file", "And now?")
	for want, args := range map[string][]string{
		"permissionMode is bypass, and this service allows workspace at most": {"--permission-mode", "bypass", "Go"},
		"the operator of the service does not allow it":                       {"--cd", w.workspace, "Go"},
		"has no session nix": {"--resume", "nix", "Go"},
	} {
		_, errs := w.agent(1, append([]string{"exec", "--on", url}, args...)...)
		w.wants(errs, want)
	}
	w.model(`[{text: [More.]}]`)
	w.agent(0, "exec", "--on", url, "Once more")
	_, errs := w.agent(2, "exec", "--on", url, "--resume", session[:2], "Go")
	w.wants(errs, "matches several sessions")
	_, errs = w.agent(2, "exec", "--on", url, "--add-dir", "/", "Go")
	w.wants(errs, "--add-dir: not with --on")
	_, errs = w.agent(2, "exec", "--on", "http://agents.example", "Go")
	w.wants(errs, "in the clear")

	token, _ := w.agent(0, "serve", "token", "add", "--scope", "read", "reader")
	b := w.run([]string{"AGENT_SERVICE_TOKEN=" + token}, "exec", "--on", url, "Go")
	b.wait()
	w.wants(b.read(b.stderr), "the token lacks the scope run")
	out, _ = w.agent(0, "serve", "token", "list")
	w.wants(out, "reader", "first")
	w.agent(0, "serve", "token", "revoke", "reader")
	c := w.run([]string{"AGENT_SERVICE_TOKEN=" + token}, "sessions", "list", "--on", url)
	c.wait()
	w.wants(c.read(c.stderr), "send a token of the service")
}

// TestServiceQuota: a tenant has as many sessions as its quota, others as the one of all.
// The one of a flag is taken before that of the settings.
func TestServiceQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: [One.]}, {text: [Two.]}]`)
	w.settings(map[string]any{"service": map[string]any{"quotas": map[string]any{"default": map[string]int{"sessions": 500}, "*": map[string]int{"sessions": 1}}}})
	_, url := w.serveWith("--listen", "127.0.0.1:0", "--no-sandbox", "--quota", "default:sessions=1,tokens=1000000,cost=2.5", "--quota", "third:running=3")
	w.agent(0, "exec", "--on", url, "Go")
	_, errs := w.agent(1, "exec", "--on", url, "Go")
	w.wants(errs, "the quota of tenant default is used up: 1 sessions; delete some")
	other, _ := w.agent(0, "serve", "token", "add", "--tenant", "other", "ci")
	for _, code := range []int{0, 1} { // the settings allow one
		c := w.run([]string{"AGENT_SERVICE_TOKEN=" + strings.TrimSpace(other)}, "exec", "--on", url, "Go")
		if status := c.wait(); status.ExitStatus() != code {
			t.Errorf("exit code %d, want %d: %s", status.ExitStatus(), code, c.read(c.stderr))
		}
		if code == 1 {
			w.wants(c.read(c.stderr), "the quota of tenant other is used up: 1 sessions")
		}
	}
	w.settings(map[string]any{"service": map[string]any{"quotas": map[string]any{"a b": map[string]int{"sessions": 1}}}})
	_, errs = w.agent(3, "serve", "--listen", "127.0.0.1:0", "--no-sandbox", "--data", t.TempDir())
	w.wants(errs, "service.quotas", "a b")
}

// TestServiceTerminal answers a question on the terminal, leaves, and comes back.
func TestServiceTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToWrite)
	_, url := w.serve("127.0.0.1:0")
	s := w.onTerminal("--on", url)
	s.answer(url, "Make a file\r")
	s.answer("or Enter to answer", "y")
	s.answer("Over.", "/quit\r")
	s.answer("to come back", "")
	s.exits(0)
	id := regexp.MustCompile(`--resume (\S+)`).FindStringSubmatch(s.text())
	if id == nil {
		t.Fatalf("no ID to come back to:\n%s", s.text())
	}
	w.model(`[{text: [Again.]}]`)
	s = w.onTerminal("--on", url, "--resume", id[1])
	s.answer("Over.", "And now?\r")
	s.answer("Again.", "/quit\r")
	s.exits(0)

	w.settings(map[string]any{"terminal": map[string]any{"screenReader": true}})
	s = w.onTerminal("--on", url, "--resume", id[1])
	s.answer("Again.", "/quit\n")
	s.exits(0)
	if strings.Contains(s.text(), "───") {
		t.Errorf("line by line there is an input box:\n%s", s.text())
	}
}

// TestServiceIsolation: a command in a session of a service sees neither the environment
// of the service nor what is in the home directory, and its changes are those of the
// session.
func TestServiceIsolation(t *testing.T) {
	t.Parallel()
	if works, err := condition("sandbox"); err != nil || !works {
		t.Skipf("no level of the sandbox works here (%v)", err)
	}
	w := newWorld(t, `[{calls: [{name: shell, args: {command: "env; ls -a ~ ~/.agent; cat ~/private.txt; echo x >made.txt"}}]}, {text: [Done.]}]`)
	if err := os.WriteFile(filepath.Join(w.home, "private.txt"), []byte("of the home directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := w.serveWith("--listen", "127.0.0.1:0")
	out, _ := w.agent(0, "exec", "--on", url, "Look around")
	w.wants(out, "Done.")
	requests := w.chat.Requests()
	seen := string(requests[len(requests)-1].Body)
	w.wants(seen, "PATH=", "private.txt: ")
	for _, hidden := range []string{"FOREIGN", "of the home directory"} {
		if strings.Contains(seen, hidden) {
			t.Errorf("a command sees %q: %s", hidden, seen)
		}
	}
	made, err := filepath.Glob(filepath.Join(w.home, ".local", "state", "agent", "work", "sessions", "default", "*", "work", "made.txt"))
	if err != nil || len(made) != 1 {
		t.Errorf("the file that was made: %q, %v", made, err)
	}
}

// TestServiceCancel: Ctrl-C cancels a run on a service; if the service does not answer,
// the next one leaves it.
func TestServiceCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{touch: asked, await: never, text: [Lost.]}, {touch: again, await: never, text: [Lost.]}]`)
	_, url := w.serve("127.0.0.1:0")
	a := w.execWith(nil, "--on", url, "Go")
	w.await("asked")
	a.signal(syscall.SIGINT)
	if result, _ := a.exits(130); result.Outcome != "cancelled" {
		t.Errorf("result %+v", result)
	}

	to, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	silent := make(chan struct{}, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.URL.Path, "/commands") {
			forward.ServeHTTP(res, req)
			return
		}
		_, _ = io.Copy(io.Discard, req.Body) // the end of the connection is noticed behind it
		silent <- struct{}{}
		<-req.Context().Done()
	}))
	t.Cleanup(proxy.Close)
	a = w.execWith(nil, "--on", proxy.URL, "Go")
	w.await("again")
	a.signal(syscall.SIGINT)
	<-silent
	a.signal(syscall.SIGINT)
	a.wait()
	w.wants(a.read(a.stderr), "continues on the service")
	w.touch("never")
}

// TestServiceSubagents: the stream of a run on a service has the events of subagents, as
// that of a local run.
func TestServiceSubagents(t *testing.T) {
	t.Parallel()
	const turns = `[{calls: [{name: spawn_agent, args: {task: "find out"}}, {name: wait, args: {agent_id: agent-1}}]}, {text: [The report.]}, {text: [It says so.]}]`
	w := newWorld(t, turns)
	_, url := w.serve("127.0.0.1:0")
	types := func(on ...string) (list []string) {
		out, _ := w.agent(0, append([]string{"exec", "--output-format", "stream-json", "Look"}, on...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for _, line := range lines {
			var e event.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if e.Parent != "" && !e.IsDelta() {
				list = append(list, e.Body.Type())
			}
		}
		w.wants(lines[len(lines)-1], `"type":"result"`, "It says so.")
		return list
	}
	local := types("--permission-mode", "default")
	w.model(turns)
	if remote := types("--on", url); !slices.Equal(local, remote) || !slices.Contains(remote, "session_end") {
		t.Errorf("local %q, on the service %q", local, remote)
	}
}
