package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// MaxFile is the size of the largest file that servers are told of.
const MaxFile = 8 << 20

const (
	maxOpen     = 100     // files that a server has open
	maxProblems = 500     // of a file
	maxStderr   = 2 << 10 // bytes that an error shows
)

// client is a connection to a running server.
type client struct {
	spec   *Server
	conn   *jsonrpc.Conn
	kill   context.CancelCauseFunc
	ended  chan struct{} // closed when it has ended, with failed set
	failed error
	notify func() // that something is new
	caps   capabilities
	stderr tail
	heard  atomic.Int64 // messages from the server
	work   sync.WaitGroup

	syncing sync.Mutex // one message about documents at a time
	files   watchedFiles

	mu       sync.Mutex
	folders  []string
	docs     map[string]*document
	order    []string // open documents, the one used last at the end
	problems map[string]*problems
	seq      int             // of changes of problems
	busy     map[string]bool // work that the server started unasked
}

// document is an open file.
type document struct {
	version int
	text    string // as it was sent
	starts  []int
	raw     string // with its byte order mark
}

// problems are what a server said about a file.
type problems struct {
	version int // of the document; 0 = unknown
	seq     int
	at      time.Time
	list    []diagnostic
}

// capabilities are what a server can do.
type capabilities struct {
	Encoding string `json:"positionEncoding"`
	Pull     any    `json:"diagnosticProvider"`
	Sync     any    `json:"textDocumentSync"`
}

type diagnostic struct {
	Range    span   `json:"range"`
	Severity int    `json:"severity"`
	Message  string `json:"message"`
	Source   string `json:"source"`
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-maxStderr):]
	return len(p), nil
}

// String returns it on one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "")), " ")
}

// start starts a server and waits until it is ready.
func start(ctx context.Context, supervisor *proc.Supervisor, spec *Server, folders, environ []string, notify func()) (*client, error) {
	c := &client{
		spec: spec, ended: make(chan struct{}), notify: notify, folders: folders,
		docs: map[string]*document{}, problems: map[string]*problems{}, busy: map[string]bool{},
	}
	if spec.Loads {
		c.busy["status"] = true
	}
	var lives context.Context
	lives, c.kill = context.WithCancelCause(context.Background())
	input, output, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	messages, prints := io.Pipe()
	p, err := supervisor.Start(lives, proc.Spec{
		Path: spec.Command[0], Args: spec.Command[1:], Dir: folders[0], Env: append(slices.Clone(environ), spec.Env...),
		Stdin: input, Stdout: prints, Stderr: &c.stderr, Grace: 300 * time.Millisecond,
	})
	_ = input.Close()
	if err != nil {
		c.kill(nil)
		_ = output.Close()
		return nil, err
	}
	c.conn = jsonrpc.NewConn(output)
	c.conn.Headers, c.conn.Handlers = true, c.handlers()
	go c.serve(lives, p, messages, prints, output)
	if err := c.initialize(ctx); err != nil {
		select {
		case <-c.ended: // that is why
			err = c.failed
		default:
			c.stop(err)
		}
		return nil, err
	}
	return c, nil
}

// serve handles the server's messages until it ends.
func (c *client) serve(ctx context.Context, p *proc.Process, messages *io.PipeReader, prints *io.PipeWriter, output io.Closer) {
	go func() { // ends with the process
		_, err := p.Wait()
		_ = prints.CloseWithError(cmp.Or(err, io.EOF))
	}()
	err := c.conn.Serve(ctx, messages)
	cause := context.Cause(ctx)
	c.kill(nil)
	_ = messages.Close()
	exit, _ := p.Wait()
	_ = output.Close()
	switch last := c.stderr.String(); {
	case cause != nil:
		c.failed = cause
	case err != nil && !errors.Is(err, context.Canceled):
		c.failed = fmt.Errorf("it was ended: %w", err)
	case exit.Signal != "":
		c.failed = fmt.Errorf("it crashed (%s)", exit.Signal)
	default:
		c.failed = fmt.Errorf("it ended (exit code %d)", exit.Code)
		if last != "" {
			c.failed = fmt.Errorf("it ended (exit code %d): %s", exit.Code, last)
		}
	}
	close(c.ended)
	c.work.Wait()
	c.notify()
}

// stop ends the server, and waits for that.
func (c *client) stop(cause error) {
	c.kill(cause)
	<-c.ended
}

// cause returns why the server ended if err says that it did, and else err.
func (c *client) cause(err error) error {
	if !errors.Is(err, jsonrpc.ErrClosed) {
		return err
	}
	<-c.ended
	return fmt.Errorf("%s: %w", c.spec.Name, c.failed)
}

// call sends a request. One that is not answered in time ends a server that is silent
// meanwhile.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	heard := c.heard.Load()
	err := c.conn.Call(ctx, method, params, result)
	switch {
	case errors.Is(err, jsonrpc.ErrClosed):
		return c.cause(err)
	case errors.Is(err, context.DeadlineExceeded):
		if c.heard.Load() == heard {
			c.kill(errors.New("it did not answer, and was ended"))
			return fmt.Errorf("%s did not answer in time and was ended; the next call starts it again", c.spec.Name)
		}
		return fmt.Errorf("%s did not answer in time; it may still read the workspace: try again later, or use grep", c.spec.Name)
	case err != nil && ctx.Err() == nil:
		c.heard.Add(1)
		return fmt.Errorf("%s: %w", c.spec.Name, err)
	case err == nil:
		c.heard.Add(1)
	}
	return err
}

// handlers answer what servers send.
func (c *client) handlers() map[string]jsonrpc.Handler {
	nothing := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	all := map[string]jsonrpc.Handler{
		"client/registerCapability": nothing, "client/unregisterCapability": nothing, "window/workDoneProgress/create": nothing,
		"window/showMessageRequest": nothing, "workspace/diagnostic/refresh": nothing,
		"window/logMessage": nothing, "window/showMessage": nothing, "telemetry/event": nothing,
		"workspace/applyEdit": func(context.Context, json.RawMessage) (any, error) {
			return map[string]any{"applied": false, "failureReason": "edits are made by the agent"}, nil
		},
		"workspace/workspaceFolders": func(context.Context, json.RawMessage) (any, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return folderList(c.folders), nil
		},
		"workspace/configuration":         jsonrpc.On(c.configuration),
		"textDocument/publishDiagnostics": jsonrpc.On(c.published),
		"$/progress":                      jsonrpc.On(c.progress),
		"experimental/serverStatus":       jsonrpc.On(c.status),
	}
	for name, h := range all {
		all[name] = func(ctx context.Context, params json.RawMessage) (any, error) {
			c.heard.Add(1)
			return h(ctx, params)
		}
	}
	return all
}

type configurationParams struct {
	Items []struct {
		Section string `json:"section"`
	} `json:"items"`
}

// configuration returns the settings of each section; null for an unknown one.
func (c *client) configuration(_ context.Context, p configurationParams) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, len(p.Items))
	for i, item := range p.Items {
		at := c.spec.Settings
		if item.Section == "gopls" && len(at) == 0 {
			at = c.spec.Options
		} else if item.Section != "" {
			for name := range strings.SplitSeq(item.Section, ".") {
				var object map[string]json.RawMessage
				_ = json.Unmarshal(at, &object) // it stays nil if that fails
				at = object[name]
			}
		}
		if list[i] = at; len(at) == 0 {
			list[i] = json.RawMessage("null")
		}
	}
	return list, nil
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

func (c *client) published(_ context.Context, p publishParams) (any, error) {
	if path := pathOf(p.URI); path != "" {
		c.note(path, p.Version, p.Diagnostics)
	}
	return nil, nil
}

// note changes the problems of a file; those of an older text are ignored.
func (c *client) note(path string, version int, list []diagnostic) {
	c.mu.Lock()
	if f := c.problems[path]; f == nil || version == 0 || version >= f.version {
		c.seq++
		c.problems[path] = &problems{version, c.seq, time.Now(), list[:min(len(list), maxProblems)]}
	}
	c.mu.Unlock()
	c.notify()
}

type progressParams struct {
	Token json.RawMessage `json:"token"`
	Value struct {
		Kind string `json:"kind"`
	} `json:"value"`
}

func (c *client) progress(_ context.Context, p progressParams) (any, error) {
	c.setBusy(string(p.Token), p.Value.Kind != "end")
	return nil, nil
}

// status is what rust-analyzer tells about itself.
func (c *client) status(_ context.Context, p struct {
	Quiescent bool `json:"quiescent"`
},
) (any, error) {
	c.setBusy("status", !p.Quiescent)
	return nil, nil
}

func (c *client) setBusy(token string, busy bool) {
	c.mu.Lock()
	if busy && len(c.busy) < 1000 {
		c.busy[token] = true
	} else {
		delete(c.busy, token)
	}
	c.mu.Unlock()
	c.notify()
}

// loading reports whether the server reads the workspace.
func (c *client) loading() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy) > 0
}

type folder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

func folderList(dirs []string) []folder {
	list := make([]folder, 0, len(dirs))
	for _, dir := range dirs {
		list = append(list, folder{uriOf(dir), filepath.Base(dir)})
	}
	return list
}

// initialize tells the server what this client can do.
func (c *client) initialize(ctx context.Context) error {
	none := map[string]any{}
	params := map[string]any{
		"processId": nil, "clientInfo": map[string]any{"name": "agent"},
		"rootUri": uriOf(c.folders[0]), "rootPath": c.folders[0], "workspaceFolders": folderList(c.folders),
		"capabilities": map[string]any{
			"general": map[string]any{"positionEncodings": []string{utf8Units, utf16Units}},
			"workspace": map[string]any{
				"configuration": true, "workspaceFolders": true,
				"workspaceEdit":         map[string]any{"documentChanges": true},
				"didChangeWatchedFiles": map[string]any{"dynamicRegistration": true},
			},
			"textDocument": map[string]any{
				"synchronization": map[string]any{"didSave": true}, "definition": map[string]any{"linkSupport": true},
				"references": none, "rename": none, "diagnostic": none, "publishDiagnostics": map[string]any{"versionSupport": true},
			},
			"window":       map[string]any{"workDoneProgress": true},
			"experimental": map[string]any{"serverStatusNotification": true},
		},
	}
	if len(c.spec.Options) > 0 {
		params["initializationOptions"] = c.spec.Options
	}
	var result struct {
		Capabilities capabilities `json:"capabilities"`
	}
	if err := c.call(ctx, "initialize", params, &result); err != nil {
		return err
	}
	c.caps = result.Capabilities
	switch c.caps.Encoding = cmp.Or(c.caps.Encoding, utf16Units); c.caps.Encoding {
	case utf8Units, utf16Units, utf32Units:
	default:
		return fmt.Errorf("%s uses the unknown position encoding %q", c.spec.Name, c.caps.Encoding)
	}
	if err := c.conn.Notify("initialized", none); err != nil {
		return c.cause(err)
	}
	if len(c.spec.Settings) == 0 {
		return nil
	}
	return c.cause(c.conn.Notify("workspace/didChangeConfiguration", map[string]any{"settings": c.spec.Settings}))
}

// addFolder adds a project.
func (c *client) addFolder(dir string) {
	c.mu.Lock()
	c.folders = append(c.folders, dir)
	c.mu.Unlock()
	_ = c.conn.Notify("workspace/didChangeWorkspaceFolders", map[string]any{"event": map[string]any{"added": folderList([]string{dir}), "removed": []folder{}}})
}

// readText returns a file's text, or the one that it is said to have, and whether it
// is on disk.
func readText(f File) (text string, saved bool, err error) {
	data, err := os.ReadFile(f.Path)
	if text = string(data); f.Text != nil {
		saved, err = err == nil && text == *f.Text, nil
		text = *f.Text
	}
	switch {
	case err != nil:
		return "", false, err
	case len(text) > MaxFile:
		return "", false, fmt.Errorf("%s is larger than %d MiB", f.Path, MaxFile>>20)
	case !utf8.ValidString(text):
		return "", false, fmt.Errorf("%s is not UTF-8 text", f.Path)
	}
	return text, saved || f.Text == nil, nil
}

const byteOrderMark = "\uFEFF"

// open tells the server of a file's text, and returns the document.
func (c *client) open(f File) (*document, error) {
	raw, saved, err := readText(f)
	if err != nil {
		return nil, err
	}
	c.syncing.Lock()
	defer c.syncing.Unlock()
	text := strings.TrimPrefix(raw, byteOrderMark)
	uri := uriOf(f.Path)
	c.mu.Lock()
	old := c.docs[f.Path]
	c.order = append(slices.DeleteFunc(c.order, func(p string) bool { return p == f.Path }), f.Path)
	doc := &document{1, text, lineStarts(text), raw}
	if old != nil {
		if old.raw == raw {
			c.mu.Unlock()
			return old, nil
		}
		doc.version = old.version + 1
	}
	c.docs[f.Path] = doc
	close := ""
	if len(c.order) > maxOpen {
		close, c.order = c.order[0], c.order[1:]
	}
	c.mu.Unlock()
	if close != "" {
		c.close(close)
	}
	id := map[string]any{"uri": uri, "version": doc.version}
	if old == nil {
		id["languageId"], id["text"] = c.spec.Extensions[strings.ToLower(filepath.Ext(f.Path))], text
		return doc, c.conn.Notify("textDocument/didOpen", map[string]any{"textDocument": id})
	}
	err = c.conn.Notify("textDocument/didChange", map[string]any{"textDocument": id, "contentChanges": []any{map[string]any{"text": text}}})
	if err == nil && saved {
		err = c.conn.Notify("textDocument/didSave", map[string]any{"textDocument": map[string]any{"uri": uri}})
	}
	return doc, err
}

// document returns an open document; nil if it is not open.
func (c *client) document(path string) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.docs[path]
}

// close closes a file.
func (c *client) close(path string) {
	c.mu.Lock()
	_, was := c.docs[path]
	delete(c.docs, path)
	c.order = slices.DeleteFunc(c.order, func(p string) bool { return p == path })
	c.mu.Unlock()
	if was {
		_ = c.conn.Notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": uriOf(path)}})
	}
}

// pull asks for the problems of a file, if the server can be asked.
func (c *client) pull(path string, version int) {
	if c.caps.Pull == nil || c.caps.Pull == false {
		return
	}
	c.work.Go(func() { // ends with the server
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var report struct {
			Items []diagnostic `json:"items"`
		}
		params := map[string]any{"textDocument": map[string]any{"uri": uriOf(path)}}
		if c.conn.Call(ctx, "textDocument/diagnostic", params, &report) == nil {
			c.heard.Add(1)
			c.note(path, version, report.Items)
		}
	})
}

// settled is how long the problems of a file must stay the same, if the server does
// not tell which text they are for.
const settled = 500 * time.Millisecond

// diagnosed reports whether the server knows the problems of a document since it was
// at a place in its messages. Wait is how long to wait before the next look.
func (c *client) diagnosed(path string, version, since int) (ok bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.problems[path]
	switch {
	case f == nil:
		return false, 0
	case f.version > 0:
		return f.version >= version, 0
	case f.seq <= since:
		return false, 0
	}
	wait = settled - time.Since(f.at)
	return wait <= 0, wait
}

// list returns the errors, and perhaps warnings, of a file, without repetitions.
func (c *client) list(path string, warnings bool) []diagnostic {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.problems[path]
	if f == nil {
		return nil
	}
	var list []diagnostic
	for _, d := range f.list {
		if (d.Severity <= 1 || warnings && d.Severity == 2) && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b diagnostic) int {
		return cmp.Or(cmp.Compare(a.Range.Start.Line, b.Range.Start.Line), cmp.Compare(a.Range.Start.Character, b.Range.Start.Character))
	})
	return list
}

// changedSince returns the files whose problems changed, and the present place.
func (c *client) changedSince(seq int) (paths []string, now int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, f := range c.problems {
		if f.seq > seq {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, c.seq
}
