//go:build unix

package root

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// way is a way to a service that may fail for what changes something.
type way struct {
	t       testing.TB
	fail    atomic.Value // func(req *http.Request, deliver func())
	service string
	forward http.Handler
}

func (p *way) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	fail, ok := p.fail.Load().(func(req *http.Request, deliver func()))
	if !ok || fail == nil || req.Method != http.MethodPut {
		p.forward.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body) // the end of the connection is noticed behind it
	if err != nil {
		p.t.Error(err)
	}
	fail(req, func() {
		again, err := http.NewRequestWithContext(p.t.Context(), http.MethodPut, p.service+req.URL.Path, bytes.NewReader(body))
		if err != nil {
			p.t.Error(err)
			return
		}
		again.Header = req.Header.Clone()
		res, err := http.DefaultClient.Do(again)
		if err != nil || res.StatusCode != http.StatusCreated {
			p.t.Errorf("delivered: %+v, %v", res, err)
			return
		}
		_ = res.Body.Close()
	})
}

// through returns a way to a service, and its address.
func (w *world) through(service string) (*way, string) {
	w.t.Helper()
	to, err := url.Parse(service)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &way{t: w.t, service: service, forward: httputil.NewSingleHostReverseProxy(to)}
	s := httptest.NewServer(p)
	w.t.Cleanup(s.Close)
	return p, s.URL
}

// parkedSession is a session here that waits for an answer.
func (w *world) parkedSession() (question, session string) {
	w.t.Helper()
	question, _ = w.agent(7, "exec", "--permission-mode", "default", "--on-ask", "park", "Make a file")
	question = strings.TrimSpace(question)
	return question, question[:strings.LastIndex(question, "-")]
}

// TestSessionsMove moves a session with its question and its files to a service, where it
// continues, and not here.
func TestSessionsMove(t *testing.T) {
	w := newWorld(t, `[{calls: [{name: write_file, args: {file_path: made.txt, content: x}}]}, {text: [Over.]}]`)
	for name, text := range map[string]string{"kept.txt": "not committed", "sub/run.sh": "#!/bin/sh\n", ".env": "TOKEN=abc", "build/out": "ignored", ".gitignore": "build/\n"} {
		name = filepath.Join(w.workspace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	_, url := w.serve("127.0.0.1:0")
	question, session := w.parkedSession()

	_, errs := w.agent(2, "sessions", "move", session)
	w.wants(errs, "--to is missing")
	_, errs = w.agent(2, "sessions", "move", session, "--to", "http://agents.example")
	w.wants(errs, "--to: ", "in the clear")
	_, errs = w.agent(1, "sessions", "move", session, "--to", url)
	w.wants(errs, "is in no git repository", "--files", "--empty")
	_, errs = w.agent(1, "sessions", "move", session, "--to", url, "--cd", w.workspace)
	w.wants(errs, "the operator of the service does not allow it")
	w.agent(7, "exec", "--permission-mode", "default", "--on-ask", "park", "--resume", session) // a refused move leaves it here

	out, errs := w.agent(0, "sessions", "move", session[:13], "--to", url+"/", "--files")
	w.wants(out, "agent --on "+url+" --resume "+session)
	w.wants(errs, ".env stays here: it may hold secrets")
	for _, again := range [][]string{{"exec", "--resume", session, "Go"}, {"answer", question, "yes"}} {
		_, errs = w.agent(1, again...)
		w.wants(errs, "was moved to "+url, "agent --on "+url+" --resume "+session, "agent sessions fork "+session)
	}
	out, _ = w.agent(0, "sessions", "list")
	w.wants(out, "(moved) Make a file")
	out, _ = w.agent(0, "sessions", "move", session, "--to", url, "--files")
	w.wants(out, "was moved to "+url+" already")
	_, errs = w.agent(1, "sessions", "move", session, "--to", "http://127.0.0.1:1")
	w.wants(errs, "was moved to "+url)

	out, _ = w.agent(0, "answer", "--on", url)
	w.wants(out, question, "Make a file")
	w.answerMoved(url, question)
	made, err := filepath.Glob(filepath.Join(w.home, ".local", "state", "agent", "work", "sessions", "default", session, "work", "*"))
	if err != nil || len(made) != 4 || w.has("made.txt") {
		t.Errorf("the files there: %q, %v; here made.txt is %v", made, err, w.has("made.txt"))
	}
	w.model(`[{text: [Again.]}]`)
	out, _ = w.agent(0, "exec", "--on", url, "--resume", session, "And now?")
	w.wants(out, "Again.")
	requests := w.chat.Requests()
	w.wants(string(requests[len(requests)-1].Body), "Make a file", "Over.", "And now?")
	copied, _ := w.agent(0, "sessions", "fork", session)
	out, _ = w.agent(7, "exec", "--permission-mode", "default", "--on-ask", "park", "--resume", strings.TrimSpace(copied))
	w.wants(out, question)
}

// TestSessionsMoveInterrupted: a move whose process is killed, or whose answer is lost, is
// completed by the next one; until then the session runs nowhere but on the service.
func TestSessionsMoveInterrupted(t *testing.T) {
	w := newWorld(t, asksToWrite)
	_, url := w.serve("127.0.0.1:0")
	p, address := w.through(url)
	token, err := os.ReadFile(filepath.Join(w.home, ".agent", "service", "token"))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"AGENT_SERVICE_TOKEN=" + strings.TrimSpace(string(token))}
	move := func(session string) *command {
		return w.run(env, "sessions", "move", session, "--to", address, "--empty")
	}
	for name, fail := range map[string]func(*http.Request, func()){
		"killed before": func(req *http.Request, _ func()) {
			w.touch("arrived")
			<-req.Context().Done()
		},
		"killed behind": func(req *http.Request, deliver func()) {
			deliver()
			w.touch("arrived")
			<-req.Context().Done()
		},
		"answer lost": func(_ *http.Request, deliver func()) {
			deliver()
			panic(http.ErrAbortHandler)
		},
	} {
		w.model(asksToWrite)
		question, session := w.parkedSession()
		p.fail.Store(fail)
		a := move(session)
		if strings.HasPrefix(name, "killed") {
			if err := await("the move", func() bool { return w.has("arrived") || a.cmd.ProcessState != nil }); err != nil || !w.has("arrived") {
				t.Fatalf("%s: %v: %s", name, err, a.read(a.stderr))
			}
			a.signal(syscall.SIGKILL)
			_ = os.Remove(filepath.Join(w.workspace, "arrived"))
		}
		a.wait()
		if name == "answer lost" {
			w.wants(a.read(a.stderr), "repeat the command")
		}
		_, errs := w.agent(1, "answer", question, "yes")
		w.wants(errs, "is being moved to "+address, "agent sessions move "+session)
		p.fail.Store((func(*http.Request, func()))(nil))
		if b := move(session); b.wait().ExitStatus() != 0 {
			t.Fatalf("%s: the second move: %s", name, b.read(b.stderr))
		}
		out, _ := w.agent(0, "sessions", "list", "--on", url)
		if n := strings.Count(out, session); n != 1 {
			t.Errorf("%s: the session is there %d times:\n%s", name, n, out)
		}
		w.answerMoved(url, question)
	}
}

// answerMoved answers a question that moved: it is about a file of another directory now,
// so that it is asked again.
func (w *world) answerMoved(url, question string) {
	w.t.Helper()
	again, _ := w.agent(7, "answer", "--on", url, question, "yes")
	out, _ := w.agent(0, "answer", "--on", url, strings.TrimSpace(again), "yes")
	w.wants(out, "Over.")
}

func (w *world) touch(file string) {
	if err := os.WriteFile(filepath.Join(w.workspace, file), nil, 0o600); err != nil {
		w.t.Error(err)
	}
}

// TestSessionsMoveRunning: a session that is in use stays where it is.
func TestSessionsMoveRunning(t *testing.T) {
	w := newWorld(t, `[{touch: asked, await: end, text: [Done.]}]`)
	_, url := w.serve("127.0.0.1:0")
	a := w.exec("Go")
	w.await("asked")
	id := regexp.MustCompile(`"session":"([^"]+)"`).FindStringSubmatch(a.read(a.stdout))
	if id == nil {
		t.Fatalf("no session in %s", a.read(a.stdout))
	}
	_, errs := w.agent(1, "sessions", "move", id[1], "--to", url, "--empty")
	w.wants(errs, "is in use by process")
	w.touch("end")
	a.exits(0)
	w.agent(0, "sessions", "move", id[1], "--to", url, "--empty")
}

// TestSessionsMoveGit: a commit that a remote has is fetched by the service; what is not
// committed or not pushed is not left behind silently.
func TestSessionsMoveGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	w := newWorld(t, `[{text: [Done.]}]`)
	_, url := w.serve("127.0.0.1:0")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", w.workspace, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	_, session := w.exec("Go").exits(0)
	w.touch("a.txt")
	git("init", "-q", "-b", "main")
	refused := func(why string) {
		t.Helper()
		_, errs := w.agent(1, "sessions", "move", session, "--to", url)
		w.wants(errs, why, "commit and push them")
	}
	refused("has uncommitted changes")
	git("add", ".")
	git("commit", "-qm", "first")
	refused("has a commit that no remote has")
	git("remote", "add", "origin", "git@host.invalid:repository.git")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	refused("has a remote that is not reached by https://")
	git("remote", "set-url", "origin", "https://host.invalid/repository.git")
	w.agent(0, "sessions", "move", session, "--to", url)
	out, _ := w.agent(0, "sessions", "list", "--on", url, "--json")
	w.wants(out, `"git": "https://host.invalid/repository.git"`, `"revision": "`)
}

// TestSessionsMoveSubagents: subagents move with their session: one that is done takes
// more input there, and one that was running when the process died continues there.
func TestSessionsMoveSubagents(t *testing.T) {
	const spawn = `{calls: [{name: spawn_agent, args: {task: "find out"}}, {name: wait, args: {agent_id: agent-1}}]}`
	w := newWorld(t, `[`+spawn+`, {text: [The report.]}, {text: [It says so.]}]`)
	_, url := w.serve("127.0.0.1:0")
	_, errs := w.agent(0, "exec", "--permission-mode", "bypass", "Look")
	done := regexp.MustCompile(`session (\S+)`).FindStringSubmatch(errs + "session ?")[1]
	w.agent(0, "sessions", "move", done, "--to", url, "--empty")
	list, _ := w.agent(0, "sessions", "list", "--on", url)
	if !strings.Contains(list, done) || strings.Count(list, "\n") != 2 {
		t.Errorf("the sessions there: %s", list)
	}
	w.model(`[{calls: [{name: send_input, args: {agent_id: agent-1, message: "Say more."}}, {name: wait, args: {agent_id: agent-1}}]}, {text: [More of it.]}, {text: [It says more.]}]`)
	out, _ := w.agent(0, "exec", "--on", url, "--resume", done, "Ask it again")
	w.wants(out, "It says more.")
	requests := w.chat.Requests()
	w.wants(string(requests[len(requests)-2].Body), "find out", "The report.", "Say more.")
	w.wants(string(requests[len(requests)-1].Body), "It says so.", "More of it.")

	w.model(`[` + spawn + `, {touch: asked, await: never, text: [Lost.]}]`)
	a := w.exec("Look")
	w.await("asked")
	id := regexp.MustCompile(`"session":"([^"]+)"`).FindStringSubmatch(a.read(a.stdout))
	if id == nil {
		t.Fatalf("no session in %s", a.read(a.stdout))
	}
	_, errs = w.agent(1, "sessions", "move", id[1], "--to", url, "--empty")
	w.wants(errs, "is in use by process")
	a.signal(syscall.SIGKILL)
	a.wait()
	w.touch("never")
	w.agent(0, "sessions", "move", id[1], "--to", url, "--empty")
	w.model(`[{text: [Found.]}, {text: [It is found.]}]`)
	out, _ = w.agent(0, "exec", "--on", url, "--resume", id[1])
	w.wants(out, "It is found.")
	requests = w.chat.Requests()
	w.wants(string(requests[len(requests)-2].Body), "find out")
	w.wants(string(requests[len(requests)-1].Body), "Look", "Found.")
}
