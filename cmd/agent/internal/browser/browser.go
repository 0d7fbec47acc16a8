package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrMissing means that Chromium is not installed.
var ErrMissing = errors.New("chromium is not installed")

// closeTime is how long Chromium may take to end.
const closeTime = 10 * time.Second

// Browser is a running Chromium. Close ends it and removes its files.
type Browser struct {
	dir  string
	cmd  *exec.Cmd
	to   io.WriteCloser
	done chan struct{} // closed when its pipe ended

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	tabs    map[string]*Tab
}

// message is one of the DevTools protocol, in either direction.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts Chromium with its files in a temporary directory. The error is an
// ErrMissing if it is not installed.
func Start(ctx context.Context) (_ *Browser, err error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, ErrMissing
	}
	dir, err := os.MkdirTemp("", "agent-chromium-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + dir, "--no-first-run", "--disable-extensions", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--force-color-profile=srgb", "--window-size=1100,1200",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // its own sandbox does not work as root
	}
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	from, back, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, to.Close())
	}
	defer back.Close()
	b := &Browser{dir: dir, cmd: exec.CommandContext(ctx, path, append(args, "about:blank")...), to: to, done: make(chan struct{}), waiting: map[int]chan message{}, tabs: map[string]*Tab{}}
	b.cmd.ExtraFiles = []*os.File{theirs, back}
	b.cmd.Env = append(os.Environ(), "HOME="+dir)
	if err := b.cmd.Start(); err != nil {
		return nil, errors.Join(err, to.Close(), from.Close())
	}
	go b.read(from) // until the pipe ends, with the browser
	return b, nil
}

// Close ends Chromium, waits for it and removes its files.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = b.call(ctx, "", "Browser.close", nil, nil) // it may end before it answers
	select {
	case <-b.done:
	case <-ctx.Done():
		_ = b.cmd.Process.Kill()
	}
	_ = b.to.Close()
	err := b.cmd.Wait()
	<-b.done
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil // its exit code says nothing about the pages
	}
	// Its helper processes may write for a moment longer.
	removed := os.RemoveAll(b.dir)
	for tick := time.NewTicker(50 * time.Millisecond); removed != nil && ctx.Err() == nil; removed = os.RemoveAll(b.dir) {
		<-tick.C
	}
	return errors.Join(err, removed)
}

// read distributes what Chromium sends.
func (b *Browser) read(from io.ReadCloser) {
	defer from.Close()
	defer close(b.done)
	r := bufio.NewReader(from)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			message
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, tab := b.waiting[m.ID], b.tabs[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m.message
		case tab != nil:
			tab.event(m.Method, m.Params)
		}
	}
}

// call sends a command and waits for its result.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, Session: session, Method: method, Params: params}
	b.waiting[m.ID] = answer
	data, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-answer:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-b.done:
		return fmt.Errorf("%s: chromium ended", method)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// Tab is a page in the browser.
type Tab struct {
	browser *Browser
	session string
	loaded  chan struct{}

	mu       sync.Mutex
	problems []string
}

// Scheme is the colour scheme that a page is shown in.
type Scheme string

// The colour schemes.
const (
	Light Scheme = "light"
	Dark  Scheme = "dark"
)

// Open opens a new tab and waits until the page in it is loaded.
func (b *Browser) Open(ctx context.Context, url string, scheme Scheme) (*Tab, error) {
	var target struct {
		TargetID string `json:"targetId"`
	}
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	t := &Tab{browser: b, session: attached.SessionID, loaded: make(chan struct{}, 1)}
	b.mu.Lock()
	b.tabs[t.session] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		if err := t.call(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	media := map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": string(scheme)}}}
	if err := t.call(ctx, "Emulation.setEmulatedMedia", media, nil); err != nil {
		return nil, err
	}
	return t, t.Go(ctx, url)
}

// Go opens another page in the tab and waits until it is loaded.
func (t *Tab) Go(ctx context.Context, url string) error {
	select {
	case <-t.loaded: // of the page before
	default:
	}
	var went struct {
		Error string `json:"errorText"`
	}
	if err := t.call(ctx, "Page.navigate", map[string]any{"url": url}, &went); err != nil {
		return err
	}
	if went.Error != "" {
		return fmt.Errorf("open %s: %s", url, went.Error)
	}
	return t.Loaded(ctx)
}

// Loaded waits until a page that the tab navigated to is loaded.
func (t *Tab) Loaded(ctx context.Context) error {
	select {
	case <-t.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Tab) call(ctx context.Context, method string, params, result any) error {
	return t.browser.call(ctx, t.session, method, params, result)
}

// event remembers what is wrong with the page: errors of its script, refused requests and
// violations of its policy.
func (t *Tab) event(method string, params json.RawMessage) {
	switch method {
	case "Page.loadEventFired":
		select {
		case t.loaded <- struct{}{}:
		default:
		}
	case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
		var p struct {
			Type  string
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(params, &p) != nil || p.Entry.Level != "error" && method == "Log.entryAdded" || method == "Runtime.consoleAPICalled" && p.Type != "error" {
			return
		}
		text := strings.TrimSpace(p.Entry.Text + " " + p.Entry.URL)
		if text == "" {
			text = string(params)
		}
		t.mu.Lock()
		t.problems = append(t.problems, text)
		t.mu.Unlock()
	}
}

// Problems returns what was wrong with the pages of the tab so far.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problems
}

// Eval evaluates an expression in the page, waits for it if it is a promise, and decodes
// its value into result, which may be nil.
func (t *Tab) Eval(ctx context.Context, expression string, result any) error {
	var answer struct {
		Result    struct{ Value json.RawMessage }
		Exception *struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	params := map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}
	if err := t.call(ctx, "Runtime.evaluate", params, &answer); err != nil {
		return err
	}
	if e := answer.Exception; e != nil {
		return fmt.Errorf("%s %s", e.Text, e.Exception.Description)
	}
	if result == nil || len(answer.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

// keys are the codes of the keys that Press knows.
var keys = map[string]int{"Tab": 9, "Enter": 13, " ": 32}

// Press presses a key: Tab, Enter or a space.
func (t *Tab) Press(ctx context.Context, key string) error {
	code, ok := keys[key]
	if !ok {
		return fmt.Errorf("key %q: use Tab, Enter or a space", key)
	}
	text := map[string]string{"Enter": "\r", " ": " "}[key]
	down := map[string]any{"type": "keyDown", "key": key, "code": strings.ReplaceAll(key, " ", "Space"), "windowsVirtualKeyCode": code, "text": text}
	if err := t.call(ctx, "Input.dispatchKeyEvent", down, nil); err != nil {
		return err
	}
	down["type"] = "keyUp"
	delete(down, "text")
	return t.call(ctx, "Input.dispatchKeyEvent", down, nil)
}

// Screenshot returns the visible part of the page as PNG.
func (t *Tab) Screenshot(ctx context.Context) ([]byte, error) {
	var shot struct{ Data string }
	if err := t.call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(shot.Data)
}
