//go:build unix

package root

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// TestInteractiveSession takes the command as a person has it: a prompt, a
// question answered "always", commands, a file, and going on the next time.
func TestInteractiveSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: shell, args: {command: "sh say.sh"}}]},
		{text: ["First answer."]},
		{text: ["Second answer."]}]`)
	if err := os.WriteFile(filepath.Join(w.workspace, "notes.txt"), []byte("remember the milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.workspace, "say.sh"), []byte("echo one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("Please begin")
	s.answer("always: add shell(sh say.sh) to ~/.agent/settings.json", "a")
	s.answer("First answer.", "look at @notes.txt\r")
	s.answer("Second answer.", "/cost\r")
	s.answer("3 model calls", "/quit\r")
	s.exits(0)
	ids, err := store.List(filepath.Join(w.home, ".agent", "sessions"))
	if want := "agent resume "; err != nil || len(ids) != 1 || !strings.Contains(s.text(), want+ids[0].ID) {
		t.Errorf("%q with the session's ID is not said at the end: %v\n%s", want, err, s.text())
	}
	if !reflect.DeepEqual(s.was, s.state()) {
		t.Error("the terminal is not as it was")
	}
	requests := w.chat.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "remember the milk") || !strings.Contains(last, "Please begin") {
		t.Errorf("the model did not get the file or the first prompt: %s", last)
	}
	settings, err := os.ReadFile(filepath.Join(w.home, ".agent", "settings.json"))
	if err != nil || !strings.Contains(string(settings), "shell(sh say.sh)") {
		t.Errorf("the rule is not in the settings: %s, %v", settings, err)
	}

	// The next time: the rule holds, and the conversation goes on.
	w.model(`[{calls: [{name: shell, args: {command: "sh say.sh"}}]}, {text: ["Third answer."]}]`)
	again := w.onTerminal("-c")
	again.answer("resumed session", "once more\r")
	again.answer("Third answer.", "")
	again.idle()
	again.answer("", "\x04") // Ctrl-D
	again.exits(0)
	if strings.Contains(again.text(), "Run `") {
		t.Error("the second session asked in spite of the rule")
	}
	requests = w.chat.Requests()
	if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "First answer.") || !strings.Contains(last, "once more") {
		t.Errorf("the resumed session sent %s", last)
	}
}

// TestInteractiveScreenReader: with the setting, a capable terminal gets lines that are
// never redrawn.
func TestInteractiveScreenReader(t *testing.T) {
	w := newWorld(t, `[{calls: [{name: write_file, args: {file_path: a.txt, content: "new"}}]}, {text: ["Some **bold** text."]}]`)
	s := w.onTerminal("--set", "terminal.screenReader=true", "Please begin")
	s.answer("1 +new", "")
	s.answer("y: yes, once", "")
	s.answer("(an empty line: no):", "")
	if now := s.state(); !reflect.DeepEqual(now, s.was) {
		t.Error("the terminal's own line editing is off")
	}
	s.answer("", "y\n")
	s.answer("Some bold text.", "/quit\n")
	s.exits(0)
	if strings.Contains(s.text(), "press a key") {
		t.Errorf("the terminal shows:\n%s", s.text())
	}
}

// TestInteractiveInterrupt: the first Ctrl-C interrupts the running command, the
// second aborts one that ignores it.
func TestInteractiveInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: shell, args: {timeout_ms: 300000, command: "trap 'echo cleaned; exit 3' INT; echo >started; while :; do sleep 0.02; done"}}]},
		{calls: [{name: shell, args: {timeout_ms: 300000, command: "trap '' INT; echo >stubborn; while :; do sleep 0.02; done"}}]},
		{text: ["Never."]}]`)
	s := w.onTerminal("--permission-mode", "bypass", "Begin")
	w.await("started")
	s.answer("Ctrl-C stops", "\x03")
	s.answer("cancelled: interrupted by Ctrl-C", "again\r")
	w.await("stubborn")
	if last := string(w.chat.Requests()[1].Body); !strings.Contains(last, `cleaned\n[The user interrupted the command. Its output is shown above.]\n[exit code 3`) {
		t.Errorf("the model is not told: %s", last[max(0, len(last)-1000):])
	}
	s.answer("Ctrl-C stops", "\x03")
	s.answer("Ctrl-C again aborts", "\x03")
	s.answer("cancelled: interrupted by Ctrl-C", "") // or that of the first one
	s.idle()
	s.answer("", "\x04")
	w.gone()
}

// TestInteractivePlan: a plan is drawn, and what was shown in part is shown in
// full on Ctrl+O.
func TestInteractivePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: update_plan, args: {plan: [{step: count, status: in_progress}, {step: report, status: pending}]}}]},
		{calls: [{name: shell, args: {command: "seq -f 'line %g' 101 120"}}]},
		{calls: [{name: update_plan, args: {plan: [{step: count, status: completed}, {step: report, status: in_progress}]}}]},
		{text: ["Counted."]}]`)
	s := w.onTerminal("--permission-mode", "bypass", "Count")
	s.answer("Counted.", "")
	if text := s.text(); strings.Contains(text, "line 105") {
		t.Errorf("more of the output is shown than its end:\n%s", text)
	}
	for _, want := range []string{"plan · 0 of 2 done", "plan · 1 of 2 done", "Ctrl-O expands"} {
		s.answer(want, "")
	}
	s.answer("Ctrl-O", "\x0f")
	s.answer("line 105", "q/quit\r")
	s.exits(0)

	// A script gets what changed, and the whole as an event.
	w.model(`[{calls: [{name: update_plan, args: {plan: [{step: count, status: completed}]}}]}, {text: ["Counted."]}]`)
	a := w.exec("Count")
	a.exits(0)
	if out := a.read(a.stdout); !strings.Contains(out, `"structured":{"plan":[{"step":"count","status":"completed"}]}`) {
		t.Errorf("no plan in the stream:\n%s", out)
	}
}

// TestInteractiveCustomCommand: a prompt from a file, of the person's own and,
// once it is trusted, of the project.
func TestInteractiveCustomCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: ["First answer."]}, {text: ["Second answer."]}]`)
	for path, text := range map[string]string{
		filepath.Join(w.home, ".agent", "commands", "greet.md"):        "---\ndescription: greets\n---\nSay hello to $0.",
		filepath.Join(w.workspace, ".agent", "commands", "project.md"): "Of the project.",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := w.onTerminal()
	s.answer("/help", "/greet Ann\r")
	s.answer("First answer.", "/project\r")
	s.answer("unknown command /project", "/quit\r")
	s.exits(0)
	if body := string(w.chat.Requests()[0].Body); !strings.Contains(body, "Say hello to Ann.") {
		t.Errorf("the model got %s", body)
	}
	trust := w.onTerminal("trust")
	trust.answer("commands/project.md", "y\r")
	trust.exits(0)
	again := w.onTerminal()
	again.answer("/help", "/project\r")
	again.answer("Second answer.", "/quit\r")
	again.exits(0)
}

// TestInteractiveUndo: /undo takes back what an input changed in files, and keeps
// what was changed since; the model learns of it.
func TestInteractiveUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: shell, args: {command: "printf 'ONE\\ntwo\\nthree\\n' >a.txt; mkdir new; echo x >new/b.txt"}}]},
		{text: ["First answer."]}, {text: ["Second answer."]}]`)
	file := filepath.Join(w.workspace, "a.txt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntwo\nthree\n")
	s := w.onTerminal("--permission-mode", "bypass")
	s.answer("/help", "Change it\r")
	s.answer("First answer.", "")
	s.idle()
	write("ONE\ntwo\nmine\n")
	s.answer("", "/undo\r")
	s.answer("(later changes are kept)", "go on\r")
	s.answer("Second answer.", "/redo\r")
	s.answer("create new/b.txt", "/quit\r")
	s.exits(0)
	if got, err := os.ReadFile(file); err != nil || string(got) != "ONE\ntwo\nmine\n" {
		t.Errorf("after undo and redo: %q, %v", got, err)
	}
	if body := string(w.chat.Requests()[2].Body); !strings.Contains(body, "The user took back changes to these files") || !strings.Contains(body, "new/b.txt") {
		t.Errorf("after the undo the model gets %s", body)
	}
}

// TestInteractiveUndoAsks: about a file that the user changed in the same lines, and
// about no other.
func TestInteractiveUndoAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: shell, args: {command: "for f in a b c d; do echo agent >$f.txt; done"}}]},
		{text: ["First answer."]}]`)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.workspace, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		write(name, "old\n")
	}
	s := w.onTerminal("--permission-mode", "bypass")
	s.answer("/help", "Change it\r")
	s.answer("First answer.", "")
	s.idle()
	write("a.txt", "mine\n")
	write("b.txt", "mine\n")
	write("c.txt", "mine\n")
	s.answer("", "/undo\r")
	s.answer("Restore a.txt?", "")
	s.answer("-mine", "n") // what would be lost
	s.answer("Restore b.txt?", "y")
	s.answer("Restore c.txt?", "n")
	s.answer("delete d.txt", "/quit\r")
	s.exits(0)
	for name, want := range map[string]string{"a.txt": "mine\n", "b.txt": "old\n", "c.txt": "mine\n"} {
		if got, err := os.ReadFile(filepath.Join(w.workspace, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestInteractiveRewind: Esc Esc shows the inputs with their changes; the
// conversation, the files or both go back to before one of them.
func TestInteractiveRewind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{calls: [{name: shell, args: {command: "echo 1 >a.txt"}}]}, {text: ["First answer."]},
		{calls: [{name: shell, args: {command: "echo 2 >a.txt; echo 2 >b.txt"}}]}, {text: ["Second answer."]},
		{text: ["Third answer."]}, {text: ["Fourth answer."]}]`)
	expect := func(want map[string]string) {
		t.Helper()
		for name, text := range want {
			if got, err := os.ReadFile(filepath.Join(w.workspace, name)); text == "" && err == nil || string(got) != text {
				t.Errorf("%s: %q, %v, want %q", name, got, err, text)
			}
		}
	}
	const escape = "\x1b"
	s := w.onTerminal("--permission-mode", "bypass")
	s.answer("/help", "Write one\r")
	s.answer("First answer.", "")
	s.idle()
	s.answer("", "Write two\r")
	s.answer("Second answer.", "")
	s.idle()
	s.answer("", escape)
	s.answer("Esc again goes back", escape)
	s.answer("Rewind to before which input?", "")
	s.answer("2 files +2 -1 · just now", "\r")
	s.answer("Changed since: 2 files +2 -1", "")
	s.answer("conversation and files", "1")
	s.answer("delete b.txt", " again\r") // the input is back in the box
	s.answer("Third answer.", "")
	s.idle()
	expect(map[string]string{"a.txt": "1\n", "b.txt": ""})
	third := string(w.chat.Requests()[4].Body)
	if strings.Contains(third, "Second answer.") || !strings.Contains(third, "First answer.") || !strings.Contains(third, "Write two again") || !strings.Contains(third, "The user took back changes") {
		t.Errorf("after the rewind the model gets %s", third)
	}

	s.answer("", "/rewind 1 files\r")
	s.answer(`no input "1"`, "/rewind\r")
	s.answer("1 file +1 -0 · just now", "one\r")
	s.answer(`Rewind to before "Write one"?`, "3")
	s.answer("delete a.txt", "/redo\r")
	s.answer("create a.txt", "go on\r")
	s.answer("Fourth answer.", "/quit\r")
	s.exits(0)
	expect(map[string]string{"a.txt": "1\n"})
	if last := string(w.chat.Requests()[5].Body); !strings.Contains(last, "Third answer.") {
		t.Errorf("rewinding the files changed the conversation: %s", last)
	}
}

// TestInteractiveNewSkill: a skill that is added while a session is open is a
// command there, and gone when it is removed.
func TestInteractiveNewSkill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: ["First answer."]}]`)
	source := filepath.Join(t.TempDir(), "greeting")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: greeting\ndescription: Greets somebody.\n---\nGreet with three bows.\n"
	if err := os.WriteFile(filepath.Join(source, "SKILL.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := func(args ...string) {
		t.Helper()
		cmd := exec.Command("agent", args...)
		cmd.Dir, cmd.Env = w.workspace, []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("agent %v: %v\n%s", args, err, out)
		}
	}
	s := w.onTerminal()
	unknown := func(n int) func() bool {
		return func() bool { return strings.Count(s.text(), "unknown command /greeting") >= n }
	}
	s.answer("/help", "/plugins\r")
	s.answer("web_fetch", "/greeting Ann\r")
	if err := await("no command", unknown(1)); err != nil {
		t.Fatal(err)
	}
	agent("skills", "add", "--yes", source)
	s.answer("", "/greet")
	s.answer("Greets somebody.", "\tAnn\r")
	s.answer("First answer.", "")
	if body := string(w.chat.Requests()[0].Body); !strings.Contains(body, "Greet with three bows.") || !strings.Contains(body, "greeting Ann") {
		t.Errorf("the model got %s", body)
	}
	agent("skills", "remove", "greeting")
	s.answer("", "/greeting Bob\r")
	if err := await("no command again", unknown(2)); err != nil {
		t.Errorf("%v\n%s", err, s.text())
	}
	s.answer("", "/quit\r")
	s.exits(0)
}

// TestInteractiveCompact: what fills the window, and a shorter conversation.
func TestInteractiveCompact(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[
		{text: ["A long first answer."]},
		{text: ["- Task: the notes"]},
		{text: ["Second answer."]}]`)
	s := w.onTerminal("Please begin")
	s.answer("A long first answer.", "/context\r")
	s.idle()
	s.answer("tools: definitions", "/compact the milk\r")
	s.answer("conversation compacted", "go on\r")
	s.answer("Second answer.", "/quit\r")
	s.exits(0)
	if text := s.text(); !strings.Contains(text, "prompt: instructions") || !strings.Contains(text, "your messages") {
		t.Errorf("the report lacks something:\n%s", text)
	}
	requests := w.chat.Requests()
	if body := string(requests[1].Body); !strings.Contains(body, "the milk") || !strings.Contains(body, "Please begin") {
		t.Errorf("the notes are asked for by %s", body)
	}
	if body := string(requests[2].Body); !strings.Contains(body, "Task: the notes") || !strings.Contains(body, "Please begin") || strings.Contains(body, "A long first answer") || !strings.Contains(body, "go on") {
		t.Errorf("after it the model gets %s", body)
	}
}

// BenchmarkOpenLongSession starts the command and goes on with a session of
// 5,000 events, until it takes keys. The binary is that of the tests.
func BenchmarkOpenLongSession(b *testing.B) {
	for _, turns := range []int{1, 625} {
		b.Run(fmt.Sprintf("events=%d", 8*turns), func(b *testing.B) {
			w := newWorld(b, `[{text: ["never"]}]`)
			keepSession(b, filepath.Join(w.home, ".agent"), "long", w.workspace, longConversation(turns)...)
			for b.Loop() {
				s := w.onTerminal("--continue")
				s.answer("resumed session", "")
				b.StopTimer()
				_ = s.cmd.Process.Kill()
				<-s.done
				b.StartTimer()
			}
		})
	}
}

// longConversation is turns of eight events each.
func longConversation(turns int) []event.Body {
	var out []event.Body
	for i := range turns {
		id := fmt.Sprint("call-", i)
		out = append(
			out,
			event.User{Content: model.TextParts("do the next thing")},
			event.LLMStart{Provider: "local", Model: "m"},
			event.Message{Content: model.Parts{model.Text{Text: "I **look** first."}, model.ToolCall{ID: id, Name: "shell", Args: `{"command":"make test"}`}}, Stop: model.StopToolCalls},
			event.LLMEnd{Provider: "local", Model: "m"},
			event.ToolUse{Name: "shell", Args: `{"command":"make test"}`},
			event.ToolResult{Name: "shell", Code: id, Content: model.TextParts(strings.Repeat("a line of output\n", 40)), DurationMS: 1200},
			event.Message{Content: model.TextParts("# Done\n\nAll *is* well:\n\n- one\n- two\n"), Stop: model.StopEnd},
			event.Idle{State: "idle", Stop: "done"},
		)
	}
	return out
}

// TestInteractiveWithoutAModel: nothing is configured and no server runs, and
// still there is something to do.
func TestInteractiveWithoutAModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: ["never"]}]`)
	w.stop() // the model's server is gone
	s := w.onTerminal("hello")
	s.answer("agent providers setup", "/quit\r")
	s.exits(0)
	if !strings.Contains(s.text(), "agent demo") {
		t.Errorf("there is no word of the demo:\n%s", s.text())
	}
}

// TestInteractiveModel switches models: names are completed, unknown providers are
// refused, and retries still work with another provider.
func TestInteractiveModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `[{text: ["First."]}, {text: ["Second."]}, {status: 503}, {text: ["Third."]}]`)
	second := &fakeModel{}
	url, err := second.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.stop)
	if err := second.play(w.workspace, []byte(`[{status: 503}, {text: ["From the other."]}]`)); err != nil {
		t.Fatal(err)
	}
	s := w.onTerminal("--set", "retry.enabled=true", "--set", "retry.baseDelayMs=1", "--set", "providers.openai.api=chat",
		"--set", "providers.openai.baseUrl="+url, "--set", "providers.openai.apiKey=sk-test-1234567890", "Please begin")
	s.answer("First.", "/model gpt\t")
	s.answer("/model gpt-5-mini", "\r")
	s.answer("local/gpt-5-mini · default", "/model nope/x\r")
	s.answer("unknown provider \"nope\"", "go on\r")
	s.answer("Second.", "/model openai/oth\t")
	s.answer("/model openai/other", "\r")
	s.answer("openai/other · default", "/model\r")
	s.answer("Which model?", "anthropic")
	s.answer("no key", "\x03") // leaves the list
	s.answer("", "/model openai/othr\r")
	s.answer("openai does not list this model; did you mean other?", "/model openai/other\r")
	s.answer("openai/other · default", "and now\r")
	s.answer("retrying in", "")
	s.answer("From the other.", "/quit\r")
	s.exits(0)
	for f, want := range map[*fakeModel]string{w.fakeModel: "gpt-5-mini", second: "other"} {
		requests := f.chat.Requests()
		if last := requests[len(requests)-1]; len(requests) != 2 || last.Model != want {
			t.Errorf("%d requests, the last for %s, want %s", len(requests), last.Model, want)
		}
	}
}
