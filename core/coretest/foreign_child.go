package coretest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-009c0928/agent/core"
)

// RunForeignIfAsked turns the process into the child of a [StartForeign] when
// it was started as one, and does not return then. Call it first thing in
// TestMain.
func RunForeignIfAsked() {
	if os.Getenv(foreignVar) == "" {
		return
	}
	if err := serveForeign(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "foreign toolset:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// guest is the child's side of the wire.
type guest struct {
	wmu sync.Mutex
	w   io.Writer

	mu        sync.Mutex
	calls     map[string]*guestCall
	cancelled int
	changed   bool // the list of tools is the second one
}

// guestCall is a call as a tool of the child sees it.
type guestCall struct {
	guest  *guest
	id     string
	args   guestArgs
	cancel context.CancelFunc

	mu    sync.Mutex
	asked int
	asks  map[int]chan wireAnswer
}

// guestArgs are the arguments of all the child's tools.
type guestArgs struct {
	Text   string `json:"text"`
	Pieces int    `json:"pieces"`
	Bytes  int64  `json:"bytes"`
	How    string `json:"how"`
}

// serveForeign speaks the wire until the host ends stdin; then it cancels what
// runs and waits for it.
func serveForeign(in io.Reader, out io.Writer) error {
	g := &guest{w: out, calls: make(map[string]*guestCall)}
	hello := wireHello{Version: wireVersion, Name: "foreign", Tools: guestToolList(false)}
	if err := g.send(kindHello, "", hello); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for r := newFrameReader(in); ; {
		f, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = g.handle(ctx, &running, f)
		}
		if err != nil {
			return err
		}
	}
}

func (g *guest) handle(ctx context.Context, running *sync.WaitGroup, f frame) error {
	g.mu.Lock()
	c := g.calls[f.ID]
	g.mu.Unlock()
	switch {
	case f.Kind == kindCall:
		call, err := decodePayload[wireCall](f)
		if err != nil {
			return err
		}
		return g.start(ctx, running, f.ID, call)
	case c == nil: // it ended in the meantime
	case f.Kind == kindCancel:
		c.cancel()
	case f.Kind == kindAnswer:
		a, err := decodePayload[wireAnswer](f)
		if err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if ch := c.asks[a.Ask]; ch != nil {
			ch <- a // holds one, and there is one answer to a question
			delete(c.asks, a.Ask)
		}
	default:
		return fmt.Errorf("a frame of kind %q is none that a host sends", f.Kind)
	}
	return nil
}

// start runs a call in a goroutine of its own, so that the next frame is read.
func (g *guest) start(ctx context.Context, running *sync.WaitGroup, id string, call wireCall) error {
	c := &guestCall{guest: g, id: id, asks: make(map[int]chan wireAnswer)}
	if err := json.Unmarshal(call.Args, &c.args); err != nil {
		return g.send(kindResult, id, guestFail(core.CodeValidation, err.Error()))
	}
	ctx, c.cancel = context.WithCancel(ctx)
	g.mu.Lock()
	g.calls[id] = c
	g.mu.Unlock()
	running.Go(func() {
		defer c.cancel()
		res := c.run(ctx, call.Name)
		g.mu.Lock()
		delete(g.calls, id)
		if res.Code == core.CodeCancelled {
			g.cancelled++
		}
		g.mu.Unlock()
		_ = g.send(kindResult, id, res) // fails when the host is gone; stdin says so too
	})
	return nil
}

// run turns whatever a tool does into a result.
func (c *guestCall) run(ctx context.Context, name string) (res wireResult) {
	defer func() {
		if p := recover(); p != nil {
			res = guestFail(core.CodeUnknown, fmt.Sprintf("the tool %s panicked: %v", name, p))
		}
	}()
	t, ok := guestTools()[name]
	if !ok {
		return guestFail(core.CodeNotFound, fmt.Sprintf("there is no tool %q here", name))
	}
	res, err := t.run(ctx, c)
	switch {
	case err == nil:
		return res
	case ctx.Err() != nil:
		return guestFail(core.CodeCancelled, "stopped: the call was cancelled")
	}
	return guestFail(core.CodeIO, err.Error())
}

func (g *guest) send(kind frameKind, id string, v any) error {
	f, err := jsonFrame(kind, id, v)
	if err != nil {
		return err
	}
	return g.write(f)
}

func (g *guest) write(f frame) error {
	g.wmu.Lock()
	defer g.wmu.Unlock()
	return writeFrame(g.w, f)
}

// output sends live output, ended early when the call is cancelled.
func (c *guestCall) output(ctx context.Context, p []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.guest.write(frame{Kind: kindOutput, ID: c.id, payload: p})
}

// ask puts a question to the person and waits for the answer.
func (c *guestCall) ask(ctx context.Context, q wireQuestion) (wireAnswer, error) {
	ch := make(chan wireAnswer, 1)
	c.mu.Lock()
	c.asked++
	q.Ask = c.asked
	c.asks[q.Ask] = ch
	c.mu.Unlock()
	if err := c.guest.send(kindAsk, c.id, q); err != nil {
		return wireAnswer{}, err
	}
	select {
	case a := <-ch:
		if a.Error != "" {
			return a, fmt.Errorf("nobody answered: %s", a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return wireAnswer{}, ctx.Err()
	}
}

// guestTool is a tool of the child.
type guestTool struct {
	description string
	args        string // properties of its schema
	when        guestWhen
	run         func(ctx context.Context, c *guestCall) (wireResult, error)
}

// guestWhen says which of the child's two lists name a tool. It can be called
// in any case: a host may still hold the other list.
type guestWhen uint8

const (
	always guestWhen = iota
	beforeChange
	afterChange
)

// guestOrder is the order of the tools in the list.
var guestOrder = [...]string{
	"stream", "ask", "image", "huge", "hugeresult", "progress", "change", "stale", "fresh", "hang", "status", "die", "panic",
}

func guestTools() map[string]guestTool {
	const number = `"bytes":{"type":"integer","minimum":0}`
	return map[string]guestTool{
		"stream":     {"Writes pieces of output one by one.", `"pieces":{"type":"integer","minimum":1}`, always, guestStream},
		"ask":        {"Asks the person and tells what the answer was.", `"text":{"type":"string"}`, always, guestAsk},
		"image":      {"Draws a small picture.", ``, always, guestImage},
		"huge":       {"Writes very much output.", number, always, guestHuge},
		"hugeresult": {"Returns one very long text.", number, always, guestHugeResult},
		"progress":   {"Tells how far it is, three times.", ``, always, guestProgress},
		"change":     {"Changes the list of tools: stale goes, fresh comes.", ``, always, guestChange},
		"stale":      {"Is there until the list changes.", ``, beforeChange, guestSay("stale, but served")},
		"fresh":      {"Is there after the list changed.", ``, afterChange, guestSay("fresh")},
		"hang":       {"Waits until it is cancelled.", ``, always, guestHang},
		"status":     {"Tells about the process.", ``, always, guestStatus},
		"die":        {"Ends the process in the middle of the call.", `"how":{"enum":["exit","garbage","flood","deaf"]}`, always, guestDie},
		"panic":      {"Panics.", ``, always, func(context.Context, *guestCall) (wireResult, error) { panic("as it was told") }},
	}
}

// guestToolList is what the host is told that there is.
func guestToolList(changed bool) []wireTool {
	var list []wireTool
	tools := guestTools()
	for _, name := range guestOrder {
		t := tools[name]
		if t.when == beforeChange && changed || t.when == afterChange && !changed {
			continue
		}
		schema := `{"type":"object","properties":{` + t.args + `},"additionalProperties":false}`
		list = append(list, wireTool{Name: name, Description: t.description, Schema: json.RawMessage(schema), ReadOnly: name == "status"})
	}
	return list
}

func guestText(text string) wireResult {
	return wireResult{Content: []wirePart{{Text: text}}}
}

func guestFail(code core.ErrorCode, message string) wireResult {
	res := guestText(message)
	res.Code = code
	return res
}

func guestSay(text string) func(context.Context, *guestCall) (wireResult, error) {
	return func(context.Context, *guestCall) (wireResult, error) { return guestText(text), nil }
}

func guestStream(ctx context.Context, c *guestCall) (wireResult, error) {
	for i := range max(c.args.Pieces, 3) {
		if err := c.output(ctx, fmt.Appendf(nil, "piece %d\n", i+1)); err != nil {
			return wireResult{}, err
		}
	}
	return wireResult{}, nil
}

// guestAsk writes a line before it asks, so that a host can see that output is
// shown while the call still runs.
func guestAsk(ctx context.Context, c *guestCall) (wireResult, error) {
	if err := c.output(ctx, []byte("about to ask\n")); err != nil {
		return wireResult{}, err
	}
	title := c.args.Text
	if title == "" {
		title = "Go on?"
	}
	a, err := c.ask(ctx, wireQuestion{
		Kind: core.QuestionConfirm, Title: title, Choices: []core.Choice{core.ChoiceYes, core.ChoiceNo},
	})
	if err != nil {
		return wireResult{}, err
	}
	return wireResult{}, c.output(ctx, fmt.Appendf(nil, "the answer was %q\n", a.Choice))
}

func guestImage(context.Context, *guestCall) (wireResult, error) {
	img := image.NewGray(image.Rect(0, 0, 8, 8))
	img.SetGray(3, 3, color.Gray{Y: 200})
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		return wireResult{}, err
	}
	return wireResult{Content: []wirePart{
		{Text: "a grey dot"}, {MediaType: "image/png", Data: buf.Bytes()},
	}}, nil
}

// hugeLine is what huge and hugeresult are made of.
const hugeLine = "all work and no play makes a very long text indeed, line after\n"

func guestHuge(ctx context.Context, c *guestCall) (wireResult, error) {
	left := c.args.Bytes
	if left == 0 {
		left = 100_000_000
	}
	chunk := []byte(strings.Repeat(hugeLine, outputChunk/len(hugeLine)))
	for left > 0 {
		n := min(left, int64(len(chunk)))
		if err := c.output(ctx, chunk[:n]); err != nil {
			return wireResult{}, err
		}
		left -= n
	}
	return wireResult{}, nil
}

func guestHugeResult(_ context.Context, c *guestCall) (wireResult, error) {
	n := int(min(c.args.Bytes, maxPayload/2))
	if n == 0 {
		n = 4_000_000
	}
	return guestText(strings.Repeat(hugeLine, n/len(hugeLine)+1)[:n]), nil
}

func guestProgress(_ context.Context, c *guestCall) (wireResult, error) {
	for i := range 3 {
		p := core.Progress{Done: float64(i + 1), Total: 3, Message: "on the way"}
		if err := c.guest.send(kindProgress, c.id, p); err != nil {
			return wireResult{}, err
		}
	}
	return guestText("arrived"), nil
}

// guestChange switches to the other list. The host knows it before the result.
func guestChange(_ context.Context, c *guestCall) (wireResult, error) {
	g := c.guest
	g.mu.Lock()
	g.changed = !g.changed
	changed := g.changed
	g.mu.Unlock()
	if err := g.send(kindTools, "", guestToolList(changed)); err != nil {
		return wireResult{}, err
	}
	return guestText("the tools have changed"), nil
}

func guestHang(ctx context.Context, c *guestCall) (wireResult, error) {
	if err := c.output(ctx, []byte("hanging\n")); err != nil {
		return wireResult{}, err
	}
	<-ctx.Done()
	return wireResult{}, ctx.Err()
}

// ForeignStatus is what the foreign toolset's status tool returns as its
// structured result.
type ForeignStatus struct {
	PID       int      `json:"pid"`
	Cancelled int      `json:"cancelled"` // calls that saw that they were cancelled
	Env       []string `json:"env"`       // names of the environment's variables
}

func guestStatus(_ context.Context, c *guestCall) (wireResult, error) {
	c.guest.mu.Lock()
	s := ForeignStatus{PID: os.Getpid(), Cancelled: c.guest.cancelled}
	c.guest.mu.Unlock()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		s.Env = append(s.Env, name)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return wireResult{}, err
	}
	res := guestText(string(raw))
	res.Structured = raw
	return res, nil
}

// guestDie ends the process in one of several bad ways, having said something.
func guestDie(ctx context.Context, c *guestCall) (wireResult, error) {
	if err := c.output(ctx, []byte("feeling unwell\n")); err != nil {
		return wireResult{}, err
	}
	g := c.guest
	g.wmu.Lock() // nothing else is said any more
	defer g.wmu.Unlock()
	switch c.args.How {
	case "garbage":
		_, err := io.WriteString(g.w, "this is no frame\n")
		return wireResult{}, errors.Join(err, waitForHost(ctx))
	case "flood":
		_, err := io.WriteString(g.w, strings.Repeat("x", 2*maxLine))
		return wireResult{}, errors.Join(err, waitForHost(ctx))
	case "deaf":
		time.Sleep(time.Hour) // not even the end of stdin ends it
	}
	fmt.Fprintln(os.Stderr, "fatal: the disk has caught fire")
	os.Exit(3)
	return wireResult{}, nil
}

// waitForHost gives the host the time to end this process.
func waitForHost(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}
