package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/acp"
	"github.com/seed-009c0928/agent/core/coretest"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
	"github.com/seed-009c0928/agent/permissions"
	"github.com/seed-009c0928/agent/sdk/agent"
)

// serveText serves lines and returns the answers.
func serveText(t *testing.T, w *world, lines string) string {
	t.Helper()
	var out bytes.Buffer
	if err := acp.Serve(t.Context(), strings.NewReader(lines), &out, w.options()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestBadInput(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
	w := newWorld(t, coretest.Model())
	for name, tt := range map[string]struct{ lines, want string }{
		"not JSON":            {"hello\n" + initialize, `"code":-32700`},
		"not a message":       {`{"x":1}` + "\n" + initialize, `"code":-32600`},
		"a batch":             {`[{"jsonrpc":"2.0","id":1,"method":"x"}]` + "\n" + initialize, `"code":-32600`},
		"unknown method":      {initialize + `{"jsonrpc":"2.0","id":1,"method":"x/y"}` + "\n", `"id":1,"error":{"code":-32601,"message":"unknown method \"x/y\""`},
		"wrong type":          {initialize + `{"jsonrpc":"2.0","id":"a","method":"session/new","params":{"cwd":5}}` + "\n", `"id":"a","error":{"code":-32602`},
		"no directory":        {initialize + `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/no/such/dir","mcpServers":[]}}` + "\n", `"error":{"code":-32602,"message":"invalid params: cwd: \"/no/such/dir\" is not a directory`},
		"relative directory":  {initialize + `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","additionalDirectories":["sub"],"mcpServers":[]}}` + "\n", `"message":"invalid params: additionalDirectories: the directory \"sub\" is not absolute`},
		"no params":           {`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n" + initialize, `"code":-32602`},
		"not initialized":     {`{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}` + "\n" + initialize, `send initialize first`},
		"half a line":         {initialize + `{"jsonrpc":"2.0","id":1,"method":"session/li`, `"code":-32700`},
		"version 0":           {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":0}}` + "\n" + initialize, `speaks version 1`},
		"too long a line":     {strings.Repeat("y", jsonrpc.MaxLine+1) + "\n" + initialize, `longer than 64 MiB`},
		"a line of 60 MiB":    {`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + strings.Repeat("y", 60<<20) + "\"}\n" + initialize, `"id":1,"error":{"code":-32601`},
		"stray response":      {`{"jsonrpc":"2.0","id":77,"result":{}}` + "\n" + initialize, `"id":9,"result"`},
		"unknown cancel":      {`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}` + "\n" + initialize, `"id":9,"result"`},
		"empty lines":         {"\n  \n" + initialize, `"id":9,"result"`},
		"unknown session":     {initialize + `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}` + "\n", `"code":-32002`},
		"a path as session":   {initialize + `{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"../../x","cwd":"/","mcpServers":[]}}` + "\n", `"code":-32002`},
		"unknown login":       {initialize + `{"jsonrpc":"2.0","id":1,"method":"authenticate","params":{"methodId":"x"}}` + "\n", `"code":-32602`},
		"unknown notice":      {initialize + `{"jsonrpc":"2.0","method":"x/y","params":{}}` + "\n", `"id":9,"result"`},
		"version of tomorrow": {`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":2}}` + "\n", `"protocolVersion":1`},
	} {
		if testing.Short() && len(tt.lines) > 1<<20 {
			continue // slow with the race detector
		}
		t.Run(name, func(t *testing.T) {
			got := serveText(t, w, tt.lines)
			if !strings.Contains(got, tt.want) || !strings.Contains(got, `"id":9,"result"`) {
				t.Errorf("answered %.500s", got)
			}
		})
	}
}

// brokenPipe is an output that nobody reads any more.
type brokenPipe struct{ after int }

func (p *brokenPipe) Write(b []byte) (int, error) {
	if p.after--; p.after < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

func TestClosedPipe(t *testing.T) {
	w := newWorld(t, coretest.Model())
	in, write := io.Pipe()
	defer in.Close()
	go func() {
		for i := range 5 { // the last ones are not read
			if _, err := fmt.Fprintf(write, `{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":1}}`+"\n", i); err != nil {
				return
			}
		}
	}()
	if err := acp.Serve(t.Context(), in, &brokenPipe{after: 1}, w.options()); err != nil {
		t.Error(err)
	}
}

// TestGone: what the client leaves behind can be resumed where it was.
func TestGone(t *testing.T) {
	ends := map[string]func(*client){
		"stdin is closed": func(c *client) { _ = c.in.Close() },
		"stdout is broken": func(c *client) {
			_ = c.out.Close()
			c.notify("session/cancel", object{"sessionId": "x"})
			c.send("session/list", object{})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			started := make(chan struct{})
			p := coretest.Model(
				calls("write_file", object{"file_path": "a.txt", "content": "one\n"}),
				coretest.Turn{Text: "lost", Block: make(chan struct{}), Hook: func(*model.Request) { close(started) }}, coretest.Say("Done."),
			)
			w := newWorld(t, p)
			w.mode = permissions.ModeBypass
			c := w.connect(t)
			c.initialize(object{})
			id := c.session(w.dir)
			c.send("session/prompt", promptOf(id, "write"))
			<-started
			end(c)
			if err := <-c.served; err != nil {
				t.Errorf("the server ends with %v", err)
			}
			c.served <- nil
			var ended []string
			for e, err := range store.Read(t.Context(), agent.SessionsDir(w.home), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				switch e.Body.(type) {
				case event.Cancelled, event.Result, event.SessionEnd:
					ended = append(ended, fmt.Sprintf("%T", e.Body))
				}
			}
			if len(ended) > 0 {
				t.Errorf("the record has %v", ended)
			}
			again := w.connect(t)
			again.initialize(object{})
			again.call("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
			if stop := again.prompt(id, "go on"); stop != "end_turn" || again.said("agent_message_chunk") != "Done." {
				t.Errorf("%s, %q", stop, again.said("agent_message_chunk"))
			}
			requests := p.Requests()
			if text := fmt.Sprint(requests[len(requests)-1].Messages); !strings.Contains(text, "a.txt") {
				t.Errorf("the model does not know what it did: %s", text)
			}
		})
	}
}

// TestGoneDuringQuestion: a question that was open when the client went is asked again.
func TestGoneDuringQuestion(t *testing.T) {
	for _, broken := range []bool{false, true} {
		w := newWorld(t, coretest.Model(calls("write_file", object{"file_path": "a.txt", "content": "new\n"}), coretest.Say("Done.")))
		first := w.connect(t)
		asked, release := make(chan struct{}), make(chan struct{})
		first.answer = func(string, json.RawMessage) any {
			close(asked)
			<-release
			return nil
		}
		first.initialize(object{})
		id := first.session(w.dir)
		first.send("session/prompt", promptOf(id, "write"))
		<-asked
		if broken {
			_ = first.out.Close()
			first.send("session/list", object{})
		}
		_ = first.in.Close()
		if err := <-first.served; err != nil {
			t.Errorf("the server ends with %v", err)
		}
		first.served <- nil
		close(release)
		c := w.connect(t)
		c.answer = choosing("allow_once")
		c.initialize(object{})
		c.call("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
		c.until("the answer of the model", func() bool { return c.said("agent_message_chunk") == "Done." })
		if data, err := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "new\n" {
			t.Errorf("the file: %q, %v", data, err)
		}
	}
}

func TestPromptErrors(t *testing.T) {
	w := newWorld(t, coretest.Model(
		coretest.Turn{Err: &model.Error{Code: model.CodeRateLimited, Message: "slow down"}}, coretest.Say("Fine."),
		coretest.Turn{Err: &model.Error{Code: model.CodeAuthentication, Message: "wrong key"}}, coretest.Say("Back."),
	))
	c := w.connect(t)
	c.initialize(object{})
	id := c.session(w.dir)
	c.fails(-32603, "session/prompt", promptOf(id, "one"))
	if stop := c.prompt(id, "two"); stop != "end_turn" {
		t.Errorf("after an error: %s", stop)
	}
	c.fails(-32000, "session/prompt", promptOf(id, "three"))
	if stop := c.prompt(id, "four"); stop != "end_turn" || !strings.HasSuffix(c.said("agent_message_chunk"), "Back.") {
		t.Errorf("after an error that closes the session: %s", stop)
	}
}

func TestSignIn(t *testing.T) {
	configured := false
	w := newWorld(t, coretest.Model())
	w.change = func(o *acp.Options) {
		o.Check = func(context.Context) error {
			if !configured {
				return fmt.Errorf("%w (no key)", acp.ErrSignIn)
			}
			return nil
		}
		o.SignOut = func(context.Context) error {
			configured = false
			return nil
		}
	}
	c := w.connect(t)
	methods := c.initialize(object{"auth": object{"terminal": true}})["authMethods"].([]any)
	if got := jsonOf(t, methods[0]); !strings.Contains(got, `"args":["setup"]`) || !strings.Contains(got, `"type":"terminal"`) {
		t.Errorf("methods %s", got)
	}
	methods = c.initialize(object{})["authMethods"].([]any)
	if got := jsonOf(t, methods); strings.Contains(got, "terminal\",") || len(methods) != 1 {
		t.Errorf("methods of an old client %s", got)
	}
	c.fails(-32000, "authenticate", object{"methodId": "setup"})
	configured = true
	c.call("authenticate", object{"methodId": "setup"})
	c.call("logout", object{})
	c.fails(-32000, "authenticate", object{"methodId": "setup"})
}

// TestEditors: several editors at once, with several sessions each.
func TestEditors(t *testing.T) {
	const editors, sessions = 3, 3
	turns := make([]coretest.Turn, editors*sessions)
	for i := range turns {
		turns[i] = coretest.Say("Hello.")
	}
	w := newWorld(t, coretest.Model(turns...))
	var all sync.WaitGroup
	errs := make(chan error, editors*sessions)
	for range editors {
		c := w.connect(t)
		c.initialize(object{})
		for range sessions {
			id := c.session(w.dir)
			_, reply := c.send("session/prompt", promptOf(id, "hi"))
			all.Go(func() {
				if m := <-reply; m.Error != nil {
					errs <- errors.New(m.Error.Message)
				}
			})
		}
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	// A session of one editor is not open in another.
	first, second := w.connect(t), w.connect(t)
	first.initialize(object{})
	second.initialize(object{})
	id := first.session(w.dir)
	_, reply := second.send("session/load", object{"sessionId": id, "cwd": w.dir, "mcpServers": []any{}})
	if m := second.wait(reply); m.Error == nil || !strings.Contains(m.Error.Message, "open") && !strings.Contains(m.Error.Message, "use") {
		t.Errorf("a session that is open elsewhere: %+v", m.Error)
	}
}
