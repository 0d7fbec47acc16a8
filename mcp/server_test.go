package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// modeEnv makes this test binary an MCP server over stdio, with the misbehaviour
// that the variable names.
const modeEnv = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(agentEnv); ok {
		playAgent(dir)
		return
	}
	if mode, ok := os.LookupEnv(modeEnv); ok {
		newScripted(mode).run()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// oddSchema has everything that decoding and encoding could lose.
const oddSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Root","description":"root <b> & more","type":"object","properties":{"zeta":{"$ref":"#/$defs/Z"},"alpha":{"anyOf":[{"type":"string","minLength":1},{"type":"null"}],"default":null},"big":{"type":"integer","maximum":9007199254740993},"f":{"type":"number","multipleOf":1.10}},"$defs":{"Z":{"type":"object","properties":{"y":{"type":"string"}}}},"oneOf":[{"required":["alpha"]},{"required":["big"]}],"patternProperties":{"^x-":{"type":"string"}},"x-vendor":{"k":1}}`

// scripted is a server with fixed responses.
type scripted struct {
	mode  string
	mu    sync.Mutex
	in    *bufio.Reader
	calls int
	asked chan jsonrpc.Message // answers to our requests
	tools string
}

func newScripted(mode string) *scripted {
	return &scripted{mode: mode, in: bufio.NewReaderSize(os.Stdin, 1<<20), asked: make(chan jsonrpc.Message, 100), tools: defaultTools}
}

const defaultTools = `{"name":"echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},{"name":"odd","inputSchema":` + oddSchema + `},{"name":"hang","inputSchema":{"type":"object"}}`

func (s *scripted) out(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = os.Stdout.WriteString(text + "\n")
}

func (s *scripted) reply(id json.RawMessage, result string) {
	s.out(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

func (s *scripted) refuse(id json.RawMessage, code int, text string) {
	s.out(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text))
}

func (s *scripted) say(id json.RawMessage, text string) {
	s.reply(id, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

func (s *scripted) run() {
	if file := os.Getenv("MCP_TEST_COUNT"); file != "" { // counts the starts
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, os.Getpid())
			f.Close()
		}
	}
	if file := os.Getenv("MCP_TEST_TOOLS"); file != "" {
		if data, err := os.ReadFile(file); err == nil {
			s.tools = string(data)
		}
	}
	switch s.mode {
	case "noread":
		time.Sleep(time.Hour)
	case "exit":
		fmt.Fprintln(os.Stderr, "missing \x1b[31mAPI key")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	case "sleep":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		time.Sleep(time.Hour)
	case "garbage":
		for _, line := range []string{"Starting server v1.2.3 ...", "{not json", `{"jsonrpc":"2.0"}`, `[1,2,3]`, `{"jsonrpc":"2.0","id":999,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}`, strings.Repeat("x", 200_000), "\xff\xfe\x00", "null", `"text"`, "3"} {
			s.out(line)
		}
	}
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			if s.mode == "stubborn" {
				time.Sleep(time.Hour)
			}
			return
		}
		m, err := jsonrpc.Parse(line)
		switch {
		case err != nil:
		case m.Method == "" && m.HasID():
			s.asked <- m
		case m.Method != "":
			s.serve(m)
		}
	}
}

func (s *scripted) serve(m jsonrpc.Message) {
	if s.mode == "mute" {
		return
	}
	if s.mode == "empty" && m.HasID() && m.Method != "initialize" && m.Method != "tools/list" && m.Method != "tools/call" {
		s.reply(m.ID, "{}")
		return
	}
	switch m.Method {
	case "server/discover":
		switch s.mode {
		case "ignorant": // of unknown requests
		case "fragile":
			os.Exit(7)
		default:
			s.refuse(m.ID, -32601, "Method not found")
		}
	case "initialize":
		switch s.mode {
		case "silent":
		case "strange":
			s.reply(m.ID, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		case "stops": // reading after the handshake
			s.reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`)
			time.Sleep(time.Hour)
		default:
			s.reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"scripted","version":"1"},"instructions":"Be \u202ekind."}`)
		}
	case "tools/list":
		s.list(m)
	case "resources/list":
		s.reply(m.ID, `{"resources":[{"uri":"test://a","name":"a","mimeType":"text/plain"},{"uri":"test://b","name":"b"}]}`)
	case "resources/templates/list":
		s.reply(m.ID, `{"resourceTemplates":[{"uriTemplate":"test://{id}","name":"any"}]}`)
	case "resources/read":
		s.reply(m.ID, `{"contents":[{"uri":"test://a","mimeType":"text/plain","text":"what a holds"}]}`)
	case "prompts/list":
		s.reply(m.ID, `{"prompts":[{"name":"greet","description":"Greets","arguments":[{"name":"who","required":true}]}]}`)
	case "prompts/get":
		s.reply(m.ID, `{"messages":[{"role":"user","content":{"type":"text","text":"Greet them."}}]}`)
	case "completion/complete":
		s.reply(m.ID, `{"completion":{"values":["Ada","Alan"]}}`)
	case "tools/call":
		s.callOf(m)
	case "ping":
		if s.mode != "noping" {
			s.reply(m.ID, "{}")
		}
	case "resources/subscribe", "logging/setLevel":
		s.reply(m.ID, "{}")
	case "tasks/get":
		s.reply(m.ID, `{"taskId":"t1","status":"completed","createdAt":"x","lastUpdatedAt":"x","ttl":null}`)
	case "tasks/result":
		s.say(m.ID, "from a task")
	default:
		if m.HasID() {
			s.refuse(m.ID, -32601, "Method not found")
		}
	}
}

func (s *scripted) callOf(m jsonrpc.Message) {
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			Text string `json:"text"`
			N    int    `json:"n"`
		} `json:"arguments"`
		Meta struct {
			Token string `json:"progressToken"`
		} `json:"_meta"`
		Task json.RawMessage `json:"task"`
	}
	_ = json.Unmarshal(m.Params, &p)
	s.calls++
	s.call(m.ID, p.Name, p.Arguments.Text, p.Arguments.N, p.Meta.Token)
}

func (s *scripted) list(m jsonrpc.Message) {
	switch s.mode {
	case "circle":
		s.reply(m.ID, `{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"same"}`)
	case "endless":
		s.calls++
		s.reply(m.ID, fmt.Sprintf(`{"tools":[{"name":"a%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, s.calls, s.calls))
	case "pages":
		if strings.Contains(string(m.Params), `"two"`) {
			s.reply(m.ID, `{"tools":[{"name":"second","inputSchema":{"type":"object"}}]}`)
			return
		}
		s.reply(m.ID, `{"tools":[{"name":"first","inputSchema":{"type":"object"}}],"nextCursor":"two"}`)
	case "broken":
		s.reply(m.ID, `{"tools":[{"name":7},"x",{"inputSchema":{}},{"name":"nullprops","inputSchema":{"type":"object","properties":null}},{"name":"noschema"},`+s.tools+`]}`)
	default:
		s.reply(m.ID, `{"tools":[`+s.tools+`]}`)
	}
}

// results are the results of tools by name.
var results = map[string]string{
	"unknown":    `{"content":[{"type":"text","text":"ok"},{"type":"hologram","x":1},7,null]}`,
	"nocontent":  `{"structuredContent":{"n":9007199254740993}}`,
	"structured": `{"content":[],"structuredContent":{"n":9007199254740993,"z":1,"a":2}}`,
	"failed":     `{"content":[{"type":"text","text":"no such user"}],"isError":true}`,
	"image":      `{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="},{"type":"image","mimeType":"image/png","data":"***"},{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}`,
	"resources":  `{"content":[{"type":"resource","resource":{"uri":"test://a","text":"inside"}},{"type":"resource","resource":{"uri":"test://b","mimeType":"application/zip","blob":"AAAA"}},{"type":"resource_link","uri":"test://c","name":"c"}]}`,
	"control":    `{"content":[{"type":"text","text":"a\u001b]0;owned\u0007b\u0000c"}]}`,
	"notresult":  `[1,2]`,
	"nothing":    `{"content":[]}`,
	"create":     `{"task":{"taskId":"t1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null,"pollInterval":100}}`,
}

func (s *scripted) call(id json.RawMessage, name, text string, n int, token string) {
	if r, ok := results[name]; ok {
		s.reply(id, r)
		return
	}
	switch name {
	case "echo":
		s.say(id, text)
	case "pid":
		s.say(id, strconv.Itoa(os.Getpid()))
	case "env":
		s.say(id, strings.Join(os.Environ(), "\n"))
	case "hang":
	case "grandchild":
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), modeEnv+"=sleep")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			s.refuse(id, 1, err.Error())
			return
		}
		s.say(id, strconv.Itoa(c.Process.Pid))
	case "die":
		os.Exit(3)
	case "big":
		s.reply(id, `{"content":[{"type":"text","text":"`+strings.Repeat("A", n)+`"}]}`)
	case "wrongids":
		s.out(`{"jsonrpc":"2.0","id":"` + string(id) + `","result":{"content":[{"type":"text","text":"wrong"}]}}`)
		s.out(`{"jsonrpc":"2.0","id":424242,"result":{"content":[{"type":"text","text":"wrong"}]}}`)
	case "twice":
		s.say(id, "one")
		s.say(id, "two")
	case "slow":
		for i := range n {
			s.out(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"total":%d,"message":"step"}}`, token, i+1, n))
			time.Sleep(50 * time.Millisecond)
		}
		s.say(id, "done")
	case "progress": // all of it at once
		for i := range n {
			s.out(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%q,"progress":%d,"total":%d}}`, token, i+1, n))
		}
		s.say(id, "done")
	case "flood":
		for range n {
			s.out(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"blah"}}`)
			s.out(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		s.say(id, "flooded")
	case "change": // the text is the new list of tools
		s.tools = text
		s.out(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.say(id, "changed")
	case "updated":
		s.out(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
		s.say(id, "told")
	case "ask": // the text is a request to the client; the response becomes the result
		go s.ask(id, text, max(n, 1))
	case "open":
		if s.calls > 1 {
			s.say(id, "opened")
			return
		}
		s.out(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"open it","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://example.com/x","message":"Please"}]}}}`, id))
	default:
		s.say(id, name)
	}
}

// ask sends a request to the client n times; the result is all responses.
func (s *scripted) ask(id json.RawMessage, request string, n int) {
	for i := range n {
		s.out(fmt.Sprintf(`{"jsonrpc":"2.0","id":"srv-%d",%s}`, i, request))
	}
	var all []string
	for range n {
		if m := <-s.asked; m.Error != nil {
			all = append(all, "error: "+m.Error.Message)
		} else {
			all = append(all, string(m.Result))
		}
	}
	s.say(id, strings.Join(all, "\n"))
}
