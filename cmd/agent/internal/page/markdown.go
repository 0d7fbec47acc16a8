package page

import (
	"bytes"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"github.com/seed-009c0928/agent/cmd/agent/internal/display"
)

// Limits of one text on a page. What is longer is cut; longer Markdown is shown as it
// is, because its worst cases take a time that grows with the square of the length.
const (
	maxText     = 128 << 10
	maxMarkdown = 32 << 10
	maxNesting  = 32   // quotes and lists within each other
	maxMarks    = 1500 // characters that may begin emphasis or a link
)

// cut returns the beginning of a text that is too long for a page, and the number of
// bytes left out.
func cut(text string) (string, int) {
	if len(text) <= maxText {
		return text, 0
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], len(text) - n
}

// markdown renders Markdown of others as HTML.
type markdown struct{ goldmark.Markdown }

func newMarkdown() markdown {
	return markdown{goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Strikethrough, extension.TaskList),
		goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(guard{}, 1))),
	)}
}

// html renders a text; what is too large or too deeply nested is shown as it is.
func (m markdown) html(text string) template.HTML {
	text = display.Printable(text)
	var b bytes.Buffer
	if len(text) > maxMarkdown || costly(text) || m.Convert([]byte(text), &b) != nil {
		return template.HTML(`<pre dir="auto">` + template.HTMLEscapeString(text) + `</pre>`) //nolint:gosec // escaped
	}
	return template.HTML(b.String()) //nolint:gosec // the guard leaves no raw HTML
}

// costly reports whether a text has more emphasis and links, or a line more quotes and
// lists within each other, than anybody writes.
func costly(text string) bool {
	if strings.Count(text, "[")+strings.Count(text, "*")+strings.Count(text, "_") > maxMarks {
		return true
	}
	for line := range strings.Lines(text) {
		marks := 0
		for _, c := range line {
			if strings.ContainsRune(">-*+ \t[!", c) {
				if c != ' ' && c != '\t' {
					marks++
				}
				continue
			}
			break
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if marks > maxNesting && strings.Trim(line, "-* \t\n") != "" || indent > 4*maxNesting {
			return true
		}
	}
	return false
}

// guard renders what could reach out of the page: raw HTML is shown as text, an image
// as its description, and a link only if it leads to another site.
type guard struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (g guard) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, g.block)
	r.Register(ast.KindRawHTML, g.raw)
	r.Register(ast.KindImage, g.image)
	r.Register(ast.KindLink, g.link)
	r.Register(ast.KindAutoLink, g.autoLink)
	r.Register(ast.KindHeading, g.heading)
	r.Register(extast.KindTaskCheckBox, g.checkBox)
}

func (guard) block(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre>")
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		escape(w, line.Value(src))
	}
	if b, ok := n.(*ast.HTMLBlock); ok && b.HasClosure() {
		escape(w, b.ClosureLine.Value(src))
	}
	_, _ = w.WriteString("</pre>\n")
	return ast.WalkSkipChildren, nil
}

func (guard) raw(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if r, ok := n.(*ast.RawHTML); ok && entering {
		for i := range r.Segments.Len() {
			at := r.Segments.At(i)
			escape(w, at.Value(src))
		}
	}
	return ast.WalkSkipChildren, nil
}

// image writes the description, which are the children, and the address.
func (guard) image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if i, ok := n.(*ast.Image); ok && entering {
		_, _ = w.WriteString("[image: ")
	} else if ok {
		_, _ = w.WriteString(" ")
		escape(w, i.Destination)
		_, _ = w.WriteString("]")
	}
	return ast.WalkContinue, nil
}

func (guard) link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l, ok := n.(*ast.Link)
	switch {
	case !ok:
	case foreign(string(l.Destination)) && entering:
		open(w, string(l.Destination))
	case foreign(string(l.Destination)):
		_, _ = w.WriteString("</a>")
	case !entering: // the address is shown: it is part of what was said
		_, _ = w.WriteString(" (")
		escape(w, l.Destination)
		_, _ = w.WriteString(")")
	}
	return ast.WalkContinue, nil
}

func (guard) autoLink(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l, ok := n.(*ast.AutoLink)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	if address := string(l.URL(src)); foreign(address) {
		open(w, address)
		escape(w, l.Label(src))
		_, _ = w.WriteString("</a>")
	} else {
		escape(w, l.Label(src))
	}
	return ast.WalkContinue, nil
}

// heading writes a heading as a paragraph: the page's own headings are its outline.
func (guard) heading(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<p class="h"><strong>`)
	} else {
		_, _ = w.WriteString("</strong></p>\n")
	}
	return ast.WalkContinue, nil
}

func (guard) checkBox(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	mark := "☐ "
	if c, ok := n.(*extast.TaskCheckBox); ok && c.IsChecked {
		mark = "☑ "
	}
	if entering {
		_, _ = w.WriteString(mark)
	}
	return ast.WalkContinue, nil
}

// open opens a link.
func open(w util.BufWriter, address string) {
	_, _ = w.WriteString(`<a rel="noopener noreferrer nofollow" href="`)
	_, _ = w.WriteString(template.HTMLEscapeString(address))
	_, _ = w.WriteString(`">`)
}

// foreign reports whether an address leads to another site, in a way that a browser
// only shows.
func foreign(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && slices.Contains([]string{"http", "https"}, u.Scheme)
}

func escape(w util.BufWriter, text []byte) { template.HTMLEscape(w, text) }
