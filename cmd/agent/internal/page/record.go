package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/core/event"
	"github.com/seed-009c0928/agent/core/model"
	"github.com/seed-009c0928/agent/core/store"
)

// Limits of a page. A longer session has several.
const (
	pageEvents = 5000
	pageBytes  = 4 << 20 // of texts, as they are shown
)

// Price returns the cost of a model call in USD, and whether it is known.
type Price func(provider, model string, u model.Usage) (usd float64, known bool)

// Source is where pages get sessions from.
type Source interface {
	// Stat describes a session.
	Stat(id string) (store.Summary, error)
	// Read yields the records of a session after a number, oldest first.
	Read(ctx context.Context, id string, after event.Seq) iter.Seq2[event.Event, error]
	// Image returns the beginning of a stored image, by its hash: one byte more than
	// what a page can show if it is larger.
	Image(ctx context.Context, id, hash string) ([]byte, error)
	// Running reports whether the session is open in some process.
	Running(id string) bool
}

// item is one thing in a conversation: a message, a call, a note.
type item struct {
	Kind      string // user, agent, steering, call, note, warning, failure, subagent, prompt, question, changes
	ID        string // its anchor
	Page      int    // from 1
	Seq       event.Seq
	Time      time.Time
	Heading   string
	Text      string
	Markdown  bool
	Reasoning string
	Added     []string // to an input by context sources
	Dropped   []string // calls of an incomplete answer, which never ran
	Child     string   // the subagent's session
	Call      *call    // of a call
	Questions []*question
	Changes   []event.FilesChanged
	Images    []picture
}

// call is a tool call with what belongs to it.
type call struct {
	Name, Source string
	Args         string
	Ended        time.Time // zero while it runs
	Decision     *event.Permission
	Result       *event.ToolResult
	Seq          event.Seq // of the result
}

// question is a question to the user, with its answer.
type question struct {
	event.Question
	Seq    event.Seq
	Asked  time.Time
	Answer *event.Answer
}

// point is a model call in the curves: totals up to there.
type point struct {
	Input, Cached, Output int
	Context               int // tokens of the request
	Cost                  float64
}

// part is a piece of the conversation that the next request contains.
type part struct {
	what    string
	tokens  int
	seq     event.Seq
	message int
}

// record is what the pages of a session show, folded from its events. Only the items
// of one page are kept.
type record struct {
	price Price
	album *album // nil shows no images
	page  int    // to keep; 0 keeps all
	name  string // prefix of anchors
	// reopened is a session that is closed and resumed for each input: that is not shown.
	reopened bool

	About    store.Summary
	Provider string
	Model    string
	Agent    string
	Running  bool
	Events   int
	Last     event.Seq
	Began    time.Time
	Ended    time.Time
	Items    []*item
	Points   []point
	Usage    model.Usage
	Cost     float64
	Unpriced int // model calls without a known price
	Calls    int
	Failed   int
	Pages    int
	Places   map[string]int // page of each anchor of a call
	Err      error          // why the record ends early

	bytes    int // on the current page
	atEvents int // Events at its beginning
	open     map[string]*item
	asked    map[string]*question
	waterfall
	calls    []model.ToolCall // of the last answer
	prompt   string
	board    board // of a task
	parts    []part
	messages int
	changed  map[*item]bool
	anchors  map[string]int
}

func newRecord(about store.Summary, price Price, page int) *record {
	r := &record{
		About: about, price: price, page: page, Pages: 1, Places: map[string]int{}, open: map[string]*item{},
		asked: map[string]*question{}, changed: map[*item]bool{}, anchors: map[string]int{},
	}
	r.waterfall = newWaterfall(r)
	return r
}

// readRecord folds a whole session. What could be read is returned also if the record is
// damaged; Err says so.
func readRecord(ctx context.Context, from Source, id string, price Price, page int) (*record, error) {
	about, err := from.Stat(id)
	if err != nil {
		return nil, err
	}
	r := newRecord(about, price, page)
	r.album = newAlbum(ctx, from, id)
	r.Running = from.Running(id)
	for e, err := range from.Read(ctx, id, 0) {
		if err != nil {
			r.Err = err
			break
		}
		r.add(e)
	}
	return r, ctx.Err()
}

// add folds the next event.
func (r *record) add(e event.Event) {
	if r.Began.IsZero() {
		r.Began = e.Time
	}
	r.Events, r.Last, r.Ended = r.Events+1, e.Seq, e.Time
	if r.Events-r.atEvents > pageEvents || r.bytes > pageBytes {
		r.Pages, r.atEvents, r.bytes = r.Pages+1, r.Events-1, 0
		r.pageStarts = append(r.pageStarts, e.Seq)
	}
	switch b := e.Body.(type) {
	case event.SessionStart:
		r.start(e, b)
	case event.Prompt:
		r.prompt = b.Text
		r.item(e, item{Kind: "prompt", Heading: "System prompt", Text: b.Text})
	case event.User:
		r.input(e, b)
	case event.Steering:
		r.steering(e, b)
	case event.Message:
		r.message(e, b)
	case event.LLMEnd:
		r.Provider, r.Model = cmp.Or(b.Provider, r.Provider), cmp.Or(b.Model, r.Model)
		r.spend(b)
	case event.ToolUse, event.ToolResult, event.Permission, event.FilesChanged:
		r.tool(e)
	case event.Question, event.Answer:
		r.question(e)
	case event.SubagentStart, event.SubagentEnd:
		r.subagent(e)
	default:
		r.other(e)
	}
	e.Session = r.About.ID
	r.builder.Add(e)
}

// item adds an item, unless it is on another page.
func (r *record) item(e event.Event, it item) *item {
	it.Seq, it.Time, it.Page = e.Seq, e.Time, r.Pages
	if it.ID == "" {
		it.ID = fmt.Sprintf("%se%d", r.name, e.Seq)
	}
	r.bytes += min(len(it.Text), maxText) + min(len(it.Reasoning), maxText)
	if r.page == 0 || r.page == r.Pages {
		r.Items = append(r.Items, &it)
		r.changed[&it] = true
	}
	return &it
}

// anchor returns the anchor of a call: unique, though models repeat ids.
func (r *record) anchor(id string) string {
	clean := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, id)
	clean = r.name + "call-" + clean[:min(len(clean), 100)]
	r.anchors[clean]++
	if n := r.anchors[clean]; n > 1 {
		clean = fmt.Sprintf("%s.%d", clean, n)
	}
	r.Places[clean] = r.Pages
	return clean
}

func (r *record) start(e event.Event, b event.SessionStart) {
	same := b.Provider == r.Provider && b.Model == r.Model
	r.Provider, r.Model, r.Agent = cmp.Or(b.Provider, r.Provider), cmp.Or(b.Model, r.Model), cmp.Or(b.Agent, r.Agent)
	if b.Resumed && !(r.reopened && same) {
		r.item(e, item{Kind: "note", Text: "Resumed with " + modelName(b.Provider, b.Model)})
	}
}

func (r *record) input(e event.Event, b event.User) {
	text, added := "", []string(nil)
	for i, p := range b.Content {
		switch t := partsText(model.Parts{p}); {
		case i == 0:
			text = t
		case strings.HasPrefix(t, "<context "):
			added = append(added, t)
		default:
			text += t
		}
	}
	r.pictures(r.item(e, item{Kind: "user", Heading: "You", Text: text, Markdown: true, Added: added}), b.Content)
	r.turns = append(r.turns, &turn{Title: display.OneLine(text, 100), Seq: e.Seq, Start: e.Time, End: e.Time})
	r.remember(e, model.RoleUser, b.Content)
}

func (r *record) steering(e event.Event, b event.Steering) {
	who := b.Source + " (steering)"
	if b.Source == "user" {
		who = "You (steering)"
	}
	r.pictures(r.item(e, item{Kind: "steering", Heading: who, Text: partsText(b.Content), Markdown: true}), b.Content)
	r.remember(e, model.RoleUser, b.Content)
}

func (r *record) message(e event.Event, b event.Message) {
	r.calls = b.Content.ToolCalls()
	it := item{Kind: "agent", Heading: "Agent", Text: partsText(b.Content), Markdown: true, Reasoning: b.Content.Reasoning()}
	if b.Partial {
		it.Heading = "Agent (incomplete)"
	}
	if b.Partial || b.Stop == model.StopMaxTokens {
		for _, c := range r.calls {
			it.Dropped = append(it.Dropped, display.OneLine(c.Name+" "+c.Args, 300))
		}
	}
	if strings.TrimSpace(it.Text) != "" || it.Reasoning != "" || len(it.Dropped) > 0 || len(r.calls) == 0 {
		r.item(e, it)
	}
	r.remember(e, model.RoleAssistant, b.Content)
}

// spend adds the tokens and the cost of a model call.
func (r *record) spend(b event.LLMEnd) {
	if b.Usage.Total() == 0 {
		return
	}
	r.Usage = r.Usage.Add(b.Usage)
	if usd, ok := r.price(b.Provider, b.Model, b.Usage); ok {
		r.Cost += usd
	} else {
		r.Unpriced++
	}
	r.Points = append(r.Points, point{Input: r.Usage.Input, Cached: r.Usage.CachedInput, Output: r.Usage.Output, Context: b.Usage.Input, Cost: r.Cost})
}

// callItem returns the open item of a call, or adds it.
func (r *record) callItem(e event.Event, name string) *item {
	if it := r.open[e.Call]; it != nil {
		r.changed[it] = true
		return it
	}
	c := &call{Name: name}
	if i := slices.IndexFunc(r.calls, func(c model.ToolCall) bool { return c.ID == e.Call }); i >= 0 {
		c.Name, c.Args = r.calls[i].Name, r.calls[i].Args
	}
	it := r.item(e, item{Kind: "call", ID: r.anchor(e.Call), Call: c})
	r.open[e.Call], r.spanOf[e.Seq] = it, it
	return it
}

func (r *record) tool(e event.Event) {
	switch b := e.Body.(type) {
	case event.ToolUse:
		delete(r.open, e.Call) // an earlier call of the same id has ended
		it := r.callItem(e, b.Name)
		it.Call.Name, it.Call.Source, it.Call.Args = b.Name, b.Source, b.Args
		r.bytes += min(len(b.Args), maxText)
	case event.Permission:
		r.callItem(e, b.Tool).Call.Decision = &b
	case event.FilesChanged:
		r.filesChanged(e, b)
	case event.ToolResult:
		r.result(e, b)
	}
}

func (r *record) filesChanged(e event.Event, b event.FilesChanged) {
	for _, f := range b.Files {
		r.bytes += len(f.Diff)
	}
	if it := r.open[e.Call]; e.Call != "" && it != nil {
		it.Changes = append(it.Changes, b)
		r.changed[it] = true
		return
	}
	heading := "Files changed"
	if b.Source != "" {
		heading = "Files changed by " + b.Source
	}
	r.item(e, item{Kind: "changes", Heading: heading, Changes: []event.FilesChanged{b}})
}

func (r *record) result(e event.Event, b event.ToolResult) {
	it := r.callItem(e, b.Name)
	it.Call.Ended, it.Call.Result, it.Call.Seq = e.Time, &b, e.Seq
	r.bytes += min(len(b.Content.Text()), maxText)
	r.pictures(it, b.Content)
	if b.Output != nil {
		r.bytes += min(len(b.Output.Text), maxText)
	}
	r.Calls++
	if b.IsError || display.CommandFailed(b) {
		r.Failed++
	}
	r.remember(e, model.RoleTool, model.Parts{model.ToolResult{CallID: e.Call, Name: b.Name, Content: b.Content}})
}

func (r *record) question(e event.Event) {
	switch b := e.Body.(type) {
	case event.Question:
		q := &question{Question: b, Seq: e.Seq, Asked: e.Time}
		r.asked[b.QID] = q
		it := r.open[e.Call]
		if e.Call != "" && it != nil {
			it.Questions = append(it.Questions, q)
			r.changed[it] = true
		} else {
			it = r.item(e, item{Kind: "question", Heading: "Question", Questions: []*question{q}})
		}
		r.spanOf[e.Seq] = it
	case event.Answer:
		if q := r.asked[b.QID]; q != nil {
			q.Answer = &b
			for _, it := range r.Items {
				if slices.Contains(it.Questions, q) {
					r.changed[it] = true
				}
			}
		}
		delete(r.asked, b.QID)
	}
}

func (r *record) subagent(e event.Event) {
	switch b := e.Body.(type) {
	case event.SubagentStart:
		by := ""
		if b.Kind != "" || b.Model != "" {
			by = " (" + strings.TrimSpace(b.Kind+" "+b.Model) + ")"
		}
		it := r.item(e, item{Kind: "subagent", Heading: "Subagent " + b.Name + by + " starts", Text: b.Input, Markdown: true, Child: b.Child})
		r.starts(e, b, it)
	case event.SubagentEnd:
		text := b.Text
		if b.Error != "" {
			text = strings.TrimSpace(b.Error + "\n\n" + text)
		}
		heading := fmt.Sprintf("Subagent %s: %s, %s tokens", b.Name, b.Outcome, display.Count(b.Usage.Total()))
		if b.CostUSD != nil {
			heading += ", " + dollars(*b.CostUSD)
		}
		r.item(e, item{Kind: "subagent", Heading: heading, Text: text, Markdown: true, Child: b.Child})
		r.ends(e, b)
	}
}

// other adds what is neither part of the conversation nor a call.
func (r *record) other(e event.Event) {
	switch b := e.Body.(type) {
	case event.Compacted:
		r.compacted(e, b)
		n, _ := display.NoteOf(b)
		r.item(e, item{Kind: "note", Heading: n.Text, Text: partsText(b.Content), Markdown: true})
		return
	case event.Rewound:
		r.parts = slices.DeleteFunc(r.parts, func(p part) bool { return p.seq >= b.Input })
	case event.SkillsListed:
		r.item(e, item{Kind: "note", Text: "Skills listed: " + strings.Join(b.Names, ", ")})
		return
	case event.SourceStarted:
		r.started(e, b)
		return
	case event.Hook:
		r.hook(e, b)
		return
	case event.BeadStart:
		r.board.Apply(e)
		n, _ := display.NoteOf(b)
		r.item(e, item{Kind: "subagent", Heading: n.Text, Child: b.Child})
		return
	case event.TaskStart, event.TaskState, event.BeadEnd, event.Criterion, event.Guard, event.Budget:
		r.board.Apply(e)
	case event.SettingChanged:
		r.item(e, item{Kind: "note", Text: "Setting changed: " + b.Setting + " = " + b.Value})
		return
	case event.SessionEnd:
		if !r.reopened || b.Reason != "closed" {
			r.item(e, item{Kind: "note", Text: "Session ended: " + b.Reason})
		}
		return
	case event.Host:
		r.item(e, item{Kind: "unknown", Heading: "Event of the host: " + b.Name, Text: string(b.Data)})
		return
	case event.Unknown:
		r.item(e, item{Kind: "unknown", Heading: "Event of the unknown type " + b.Kind, Text: string(b.Raw)})
		return
	}
	n, ok := display.NoteOf(e.Body)
	if !ok {
		return
	}
	kind := [...]string{"note", "warning", "failure"}[n.Severity]
	r.item(e, item{Kind: kind, Text: n.Text})
}

// hook adds what a hook did.
func (r *record) hook(e event.Event, b event.Hook) {
	it := item{Kind: "note", Text: display.HookLine(b)}
	if b.Error != "" {
		it.Kind = "warning"
	}
	r.spanOf[e.Seq] = r.item(e, it)
}

// started adds the start of a plugin or an MCP server.
func (r *record) started(e event.Event, b event.SourceStarted) {
	took := time.Duration(b.DurationMS) * time.Millisecond
	it := item{Kind: "note", Text: fmt.Sprintf("Started %s %s in %s", b.Kind, b.Name, display.Duration(took))}
	if b.Error != "" {
		it = item{Kind: "warning", Text: fmt.Sprintf("Could not start %s %s: %s", b.Kind, b.Name, b.Error)}
	}
	r.spanOf[e.Seq] = r.item(e, it)
}

func modelName(provider, name string) string {
	if provider == "" {
		return name
	}
	return provider + "/" + name
}

// partsText returns the text of a message, with a placeholder for each image.
func partsText(content model.Parts) string {
	var b strings.Builder
	for _, p := range content {
		switch p := p.(type) {
		case model.Text:
			b.WriteString(p.Text)
		case model.Image:
			fmt.Fprintf(&b, "\n[image %s, %d bytes]\n", p.MediaType, max(p.Bytes, len(p.Data)))
		}
	}
	return b.String()
}

// indented returns arguments in a form that is easy to read.
func indented(args string) string {
	// The indentation of deep nesting would be many times its size.
	if len(args) > maxText || strings.Count(args, "{")+strings.Count(args, "[") > 1000 {
		return args
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(args), "", "  ") != nil {
		return args
	}
	return b.String()
}
