package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
	"github.com/seed-009c0928/agent/cmd/agent/internal/insight"
	"github.com/seed-009c0928/agent/core/store"
)

var (
	//go:embed assets/page.css
	css string
	//go:embed assets/page.js
	script string
	//go:embed assets/page.html
	sessionHTML string
	//go:embed assets/index.html
	indexHTML string
)

// policy is the content security policy: nothing but the page's own style and script,
// by their hashes, images within the page, and for a served page its own server.
func policy(served bool, script string) string {
	p := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + hash(css) + "'; script-src '" + hash(script) + "'; img-src data:"
	if served {
		p += "; connect-src 'self'"
	}
	return p
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// printer writes pages. It is safe for concurrent use.
type printer struct {
	templates *template.Template
	zone      *time.Location
}

func newPrinter(zone *time.Location) *printer {
	md := newMarkdown()
	clock := func(t time.Time) template.HTML {
		if t.IsZero() {
			return "unknown"
		}
		t = t.In(zone)
		return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, t.Format(time.RFC3339), t.Format(time.DateTime))) //nolint:gosec // a time
	}
	funcs := template.FuncMap{
		"style":         func() template.CSS { return template.CSS(css) },                  //nolint:gosec // of this package
		"script":        func() template.JS { return template.JS(script) },                 //nolint:gosec // of this package
		"servicescript": func() template.JS { return template.JS(script + serviceScript) }, //nolint:gosec // of this package
		"codescript":    func() template.JS { return template.JS(codeScript) },             //nolint:gosec // of this package
		"line":          func(text string) string { return display.OneLine(text, 500) },
		"careful":       func(text string) string { text, _ = cut(text); return display.Visible(text) },
		"text":          pre,
		"args":          func(args string) template.HTML { return pre(display.Visible(indented(args))) },
		"markdown": func(text string) template.HTML {
			if strings.TrimSpace(text) == "" {
				return ""
			}
			text, _ = cut(text)
			return `<div class="text" dir="auto">` + md.html(text) + `</div>`
		},
		"diff": diff, "change": display.FileChange, "when": clock, "count": display.Count, "percent": percent, "size": size,
		"dollars": dollars, "duration": display.Duration,
	}
	t := template.Must(template.New("page").Funcs(funcs).Parse(sessionHTML))
	for _, html := range []string{indexHTML, codeHTML, serviceHTML} {
		t = template.Must(t.Parse(html))
	}
	return &printer{t, zone}
}

// render executes a template. As the last step, characters that control a terminal or
// reorder text are made visible, wherever they come from.
func (p *printer) render(name string, data any) (string, error) {
	var b strings.Builder
	if err := p.templates.ExecuteTemplate(&b, name, data); err != nil {
		return "", err
	}
	html := b.String()
	if strings.IndexFunc(html, harmful) < 0 {
		return html, nil
	}
	b.Reset()
	for _, c := range html {
		if harmful(c) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String(), nil
}

func harmful(c rune) bool {
	if c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
		return false
	}
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)
}

// pre shows a text as it is.
func pre(text string) template.HTML {
	if text == "" {
		return ""
	}
	text, left := cut(text)
	html := `<pre dir="auto">` + template.HTMLEscapeString(display.Printable(text)) + `</pre>`
	if left > 0 {
		html += `<p class="soft">… ` + size(int64(left)) + ` more</p>`
	}
	return template.HTML(html) //nolint:gosec // escaped
}

// diff shows a difference, a line at a time.
func diff(text string) template.HTML {
	var b strings.Builder
	b.WriteString(`<pre class="diff">`)
	text, left := cut(text)
	for l := range strings.Lines(display.Visible(text)) {
		class := ""
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"), strings.HasPrefix(l, "@@"):
			class = ` class="h"`
		case strings.HasPrefix(l, "+"):
			class = ` class="a"`
		case strings.HasPrefix(l, "-"):
			class = ` class="d"`
		}
		b.WriteString("<span" + class + ">" + template.HTMLEscapeString(strings.TrimSuffix(l, "\n")) + "</span>")
	}
	b.WriteString("</pre>")
	if left > 0 {
		b.WriteString(`<p class="soft">… ` + size(int64(left)) + " more</p>")
	}
	return template.HTML(b.String()) //nolint:gosec // escaped
}

func percent(part, whole int) string { return fmt.Sprintf("%d %%", 100*part/max(1, whole)) }

func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// view is what the template of a session's page gets.
type view struct {
	Record    *record
	Page      int
	Items     []itemView
	Others    []pageView // the other pages of a file
	Subagents []*view    // in a file
	Served    bool
	Live      bool
	Policy    string
}

// pageView is one of the pages that wait in a file.
type pageView struct {
	Page  int
	Items []itemView
}

// newView returns the view of a page of a record, which keeps that one or all.
func newView(r *record, page int, served bool) *view {
	v := &view{Record: r, Page: page, Served: served, Live: served && r.Running && page == r.Pages, Policy: policy(served, script)}
	for _, it := range r.Items {
		iv := itemView{it, v}
		for len(v.Others) < it.Page-page && it.Page > page {
			v.Others = append(v.Others, pageView{Page: page + len(v.Others) + 1})
		}
		if it.Page == page {
			v.Items = append(v.Items, iv)
		} else if n := len(v.Others); n > 0 {
			v.Others[n-1].Items = append(v.Others[n-1].Items, iv)
		}
	}
	return v
}

// Title is the beginning of the first input.
func (v *view) Title() string {
	if t := display.OneLine(v.Record.About.Text, 100); t != "" {
		return t
	}
	return "Session " + v.Record.About.ID
}

// Numbers are those of all pages.
func (v *view) Numbers() []int {
	all := make([]int, v.Record.Pages)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// Charts are the curves.
func (v *view) Charts() []chart { return v.Record.curves() }

// Problem says why the record ends early, in words that do not depend on the reader.
func (v *view) Problem() string {
	var corrupt *store.CorruptError
	switch err := v.Record.Err; {
	case err == nil:
		return ""
	case errors.As(err, &corrupt):
		return fmt.Sprintf("line %d is damaged; 'agent sessions repair %s' cuts it off", corrupt.Line, v.Record.About.ID)
	default:
		return err.Error()
	}
}

// shareView is a share with its bar.
type shareView struct {
	insight.Share
	Bar template.HTML
}

// Context is what the next request contains.
func (v *view) Context() []shareView {
	all := v.Record.context()
	total := all.Total()
	views := make([]shareView, len(all))
	for i, s := range all {
		views[i] = shareView{s, shareBar(s.Tokens, total)}
	}
	return views
}

// Turns are the inputs of the page. Those of other pages have no lines.
func (v *view) Turns() []*turn {
	return slices.DeleteFunc(v.Record.timeline(), func(t *turn) bool { return len(t.Rows) == 0 })
}

// barView is a line of the waterfall as it is drawn.
type barView struct {
	*row
	Bar  template.HTML
	Took string
}

// Bars are the lines of a turn's waterfall.
func (t *turn) Bars() []barView {
	views := make([]barView, len(t.Rows))
	for i, l := range t.Rows {
		views[i] = barView{l, t.bar(l), display.Duration(max(0, l.End.Sub(l.Start)))}
	}
	return views
}

// Lasted is the time from the input to the end of its processing.
func (t *turn) Lasted() string { return display.Duration(max(0, t.End.Sub(t.Start))) }

// By is the model.
func (r *record) By() string { return modelName(r.Provider, r.Model) }

// Lasted is the time from the first record to the last.
func (r *record) Lasted() string { return display.Duration(max(0, r.Ended.Sub(r.Began))) }

// Worked is the time in which inputs were processed.
func (r *record) Worked() string {
	var d time.Duration
	for _, t := range r.timeline() {
		d += max(0, t.End.Sub(t.Start))
	}
	return display.Duration(d)
}

// CostText is the cost, as far as it is known.
func (r *record) CostText() string { return costText(r.Cost, r.Unpriced, len(r.Points)) }

// itemView is an item as the template of a page gets it.
type itemView struct {
	*item
	view *view
}

// Folded reports whether only the heading is shown at first.
func (v itemView) Folded() bool {
	return v.Kind == "prompt" || v.Kind == "unknown" || v.Kind == "note" && v.Heading != ""
}

// Bad reports whether it is a call that failed.
func (v itemView) Bad() bool {
	return v.Call != nil && v.Call.Result != nil && (v.Call.Result.IsError || display.CommandFailed(*v.Call.Result))
}

// Mark is the first character of a call's line.
func (v itemView) Mark() string {
	switch {
	case v.Call.Result == nil:
		return "…"
	case v.Bad():
		return "✗"
	}
	return "✓"
}

// Brief is the most important argument of a call.
func (v itemView) Brief() string { return display.Arguments(v.Call.Args, v.view.Record.About.Cwd, 120) }

// Took says how long a call ran.
func (v itemView) Took() string {
	switch r := v.Call.Result; {
	case r != nil:
		return display.Duration(time.Duration(r.DurationMS) * time.Millisecond)
	case v.view.Live:
		return "running"
	}
	return "no result"
}

// verdict is a decision in a word.
type verdict struct{ Word, Class string }

// Decided is a decision worth mentioning beside the call: one that the policy did not
// make, or a denial.
func (v itemView) Decided() *verdict {
	d := v.Call.Decision
	switch {
	case d == nil || d.Decision == "allow" && d.Decider == "policy":
		return nil
	case d.Decision == "deny":
		return &verdict{"denied", "denied"}
	case d.Decider == "person":
		return &verdict{"approved", ""}
	}
	return &verdict{"allowed by " + d.Decider, ""}
}

// Sandbox is the sandbox level of the call's program.
func (v itemView) Sandbox() string {
	if v.Call.Result == nil {
		return ""
	}
	return v.Call.Result.Sandbox()
}

// ResultText is the result, in full if the record has it.
func (v itemView) ResultText() string {
	r := v.Call.Result
	if r.Output != nil && r.Output.Text != "" {
		return r.Output.Text
	}
	return partsText(r.Content)
}

// Left is the number of bytes of the text that are not on the page.
func (v itemView) Left() int64 {
	if v.Call != nil || !v.Markdown { // pre says it
		return 0
	}
	return int64(max(0, len(v.Text)-maxText))
}

// Full is the address of the whole event.
func (v itemView) Full() string {
	if !v.view.Served {
		return ""
	}
	return fmt.Sprintf("event/%d", v.Seq)
}

// OutputBytes is the size of an output that the record does not have.
func (v itemView) OutputBytes() int64 {
	if o := v.Call.Result.Output; o != nil && (o.Path != "" || len(o.Text) > maxText) {
		return o.Bytes
	}
	return 0
}

// OutputLink is the address of that output.
func (v itemView) OutputLink() string {
	if v.OutputBytes() == 0 || !v.view.Served {
		return ""
	}
	return fmt.Sprintf("output/%d", v.Call.Seq)
}

// ChildLink is the address of the subagent's session.
func (v itemView) ChildLink() string {
	switch {
	case v.Child == "" || store.CheckID(v.Child) != nil:
		return ""
	case v.view.Served:
		return "../" + v.Child + "/"
	}
	for _, s := range v.view.Subagents {
		if s.Record.About.ID == v.Child {
			return "#s-" + v.Child
		}
	}
	return ""
}
