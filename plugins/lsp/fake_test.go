package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-009c0928/agent/internal/jsonrpc"
)

// fakeEnv makes this program a language server that behaves as its value says.
const fakeEnv = "FAKE_LANGUAGE_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeEnv); mode != "" {
		serveFake(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// fake is a language server for text: a line with BAD is an error, and a word is
// defined where it comes first.
type fake struct {
	mode     string
	conn     *jsonrpc.Conn
	encoding string
	texts    map[string]string // by URI
	order    []string
}

func serveFake(mode string) {
	f := &fake{mode: mode, conn: jsonrpc.NewConn(os.Stdout), encoding: utf16Units, texts: map[string]string{}}
	switch f.mode {
	case "garbage":
		fmt.Println("Welcome! This is no language server.")
		select {}
	case "silent":
		select {}
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(3)
	case "utf8":
		f.encoding = utf8Units
	}
	f.conn.Headers = true
	ignore := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	f.conn.Handlers = map[string]jsonrpc.Handler{
		"initialize":  f.initialize,
		"initialized": ignore, "workspace/didChangeWatchedFiles": f.watched, "textDocument/didSave": ignore,
		"textDocument/didOpen":   jsonrpc.On(f.changed),
		"textDocument/didChange": jsonrpc.On(f.changed),
		"textDocument/didClose":  ignore, "$/cancelRequest": ignore,
		"textDocument/definition": jsonrpc.On(f.find),
		"textDocument/references": jsonrpc.On(f.find),
		"textDocument/rename":     jsonrpc.On(f.rename),
	}
	_ = f.conn.Serve(context.Background(), os.Stdin)
}

func (f *fake) initialize(context.Context, json.RawMessage) (any, error) {
	if rest, ok := strings.CutPrefix(f.mode, "slow "); ok {
		for !exists(rest) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	c := map[string]any{"textDocumentSync": 1}
	if f.encoding != utf16Units {
		c["positionEncoding"] = f.encoding
	}
	return map[string]any{"capabilities": c}, nil
}

func (f *fake) watched(_ context.Context, raw json.RawMessage) (any, error) {
	if f.mode == "watch" {
		return nil, os.WriteFile(os.Getenv("WATCHED"), raw, 0o600)
	}
	return nil, nil
}

func (f *fake) changed(_ context.Context, p struct {
	TextDocument struct {
		URI     string
		Version int
		Text    string
	}
	ContentChanges []struct{ Text string }
},
) (any, error) {
	d := p.TextDocument
	for _, c := range p.ContentChanges {
		d.Text = c.Text
	}
	if _, known := f.texts[d.URI]; !known {
		f.order = append(f.order, d.URI)
	}
	f.texts[d.URI] = d.Text
	list := []map[string]any{}
	for i, line := range strings.Split(d.Text, "\n") {
		if at := strings.Index(line, "BAD"); at >= 0 {
			start := positionOf(line, []int{0}, at, f.encoding)
			start.Line = i
			list = append(list, map[string]any{"range": span{start, start}, "severity": 1, "message": "bad\nline", "source": "fake"})
		}
	}
	switch f.mode {
	case "hang":
		return nil, nil
	case "huge":
		for i := range 200_000 {
			list = append(list, map[string]any{"range": span{}, "severity": 1, "message": fmt.Sprint("one of many problems: ", i)})
		}
	}
	notify := map[string]any{"uri": d.URI, "diagnostics": list}
	if f.mode != "versionless" {
		notify["version"] = d.Version
	}
	return nil, f.conn.Notify("textDocument/publishDiagnostics", notify)
}

type positionParams struct {
	TextDocument struct{ URI string }
	Position     position
	NewName      string
}

// find returns all places of the word at a position.
func (f *fake) find(_ context.Context, p positionParams) (any, error) {
	switch f.mode {
	case "hang":
		return jsonrpc.Later(func() (any, error) { select {} }), nil
	case "crash later":
		os.Exit(1)
	case "link":
		return []map[string]any{{"targetUri": p.TextDocument.URI, "targetSelectionRange": span{p.Position, p.Position}}}, nil
	case "null":
		return nil, nil
	case "elsewhere":
		return map[string]any{"uri": "jdt://contents/String.class", "range": span{}}, nil
	}
	list := []map[string]any{}
	for uri, ranges := range f.places(p) {
		for _, r := range ranges {
			list = append(list, map[string]any{"uri": uri, "range": r})
		}
	}
	return list, nil
}

func (f *fake) places(p positionParams) map[string][]span {
	text := f.texts[p.TextDocument.URI]
	at, _ := offset(text, lineStarts(text), p.Position, f.encoding)
	name := text[at:]
	if i := strings.IndexFunc(name, func(r rune) bool { return r != '_' && (r < 'A' || r > 'z') }); i >= 0 {
		name = name[:i]
	}
	all := map[string][]span{}
	for _, uri := range f.order {
		text := f.texts[uri]
		starts := lineStarts(text)
		for _, w := range words(text, starts, name, 0) {
			all[uri] = append(all[uri], span{positionOf(text, starts, w.start, f.encoding), positionOf(text, starts, w.end, f.encoding)})
		}
	}
	return all
}

func (f *fake) rename(_ context.Context, p positionParams) (any, error) {
	if f.mode == "move" {
		return map[string]any{"documentChanges": []any{map[string]any{"kind": "rename", "oldUri": "file:///a", "newUri": "file:///b"}}}, nil
	}
	changes := map[string][]textEdit{}
	for uri, ranges := range f.places(p) {
		for _, r := range ranges {
			changes[uri] = append(changes[uri], textEdit{r, p.NewName})
		}
		slices.Reverse(changes[uri])
	}
	return workspaceEdit{Changes: changes}, nil
}

// place is a workspace with fake servers.
type place struct {
	t    *testing.T
	dir  string
	all  *servers
	spec *Server
}

func newPlace(t *testing.T, mode string) *place {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir}
	o := Options{Roots: []string{dir}, Servers: []Server{{
		Name: "fake", Command: []string{self}, Extensions: map[string]string{".txt": "text"}, Markers: []string{"project"},
		Env: []string{fakeEnv + "=" + mode, "WATCHED=" + filepath.Join(dir, ".watched")},
	}}}
	p.all = newServers(o, os.Environ())
	p.spec = &p.all.options.Servers[0]
	t.Cleanup(func() {
		if err := p.all.close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *place) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *place) query(q Query) (Answer, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	return p.all.query(ctx, p.dir, q)
}

// await checks until the text of a report is there.
func (p *place) await(session string, files ...File) string {
	p.t.Helper()
	in := Check{Files: files, WaitMS: 60_000}
	r := p.all.check(p.t.Context(), session, p.dir, in)
	if r.Pending {
		p.t.Errorf("pending after a minute: %+v", r)
	}
	return r.Text
}
