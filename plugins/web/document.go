package web

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/seed-009c0928/agent/core/invisible"
)

// document is a page as received.
type document struct {
	url       *url.URL
	kind      string // media type
	charset   string // declared by the server; may be empty
	data      []byte
	truncated bool
}

// textual are the text types in addition to text/*, *+json and *+xml.
var textual = []string{
	"application/json", "application/ld+json", "application/x-ndjson", "application/jsonl", "application/xml", "application/xhtml+xml",
	"application/javascript", "application/x-javascript", "application/ecmascript", "application/typescript", "application/x-sh",
	"application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/graphql", "application/rtf",
	"application/octet-stream", // whose content is then sniffed
}

// readable returns an error if a media type is known not to be text.
func readable(kind string) error {
	switch {
	case kind == "", strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"), slices.Contains(textual, kind):
		return nil
	case kind == "application/pdf":
		return &refusedError{"it is a PDF document, which is not supported: look for a web page with the same content, or download it with a command"}
	}
	return &refusedError{fmt.Sprintf("it is %s, not text: download it with a command if you need it", clip(kind, 100))}
}

func (d *document) isHTML() bool { return d.kind == "text/html" || d.kind == "application/xhtml+xml" }

// page returns the document as text.
func (d *document) page(raw bool) (*page, error) {
	p := &page{URL: d.url.String(), Type: d.kind, Truncated: d.truncated}
	text := d.decode()
	if !raw && d.isHTML() {
		title, markdown, err := toMarkdown(text, d.url)
		if err != nil {
			return nil, fmt.Errorf("cannot parse the page as HTML: %w", err)
		}
		p.Title, text = title, markdown
	}
	p.Text = visible(text)
	return p, nil
}

// decode returns the content as UTF-8. Valid UTF-8 is assumed to be UTF-8 unless
// the server declares something else: other encodings do not look like it by
// accident.
func (d *document) decode() string {
	declared := strings.ToLower(d.charset)
	data := bytes.TrimPrefix(d.data, []byte("\ufeff"))
	if d.truncated {
		data = cutRune(data)
	}
	if utf8.Valid(data) && (declared == "" || declared == "utf-8" || declared == "utf8") {
		return string(data)
	}
	encoding, _, _ := charset.DetermineEncoding(d.data[:min(len(d.data), 1024)], d.kind+"; charset="+declared)
	text, err := encoding.NewDecoder().Bytes(d.data)
	if err != nil {
		text = d.data
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// cutRune removes an incomplete character at the end of a truncated page.
func cutRune(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if b := data[len(data)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-i:]) {
				return data[:len(data)-i]
			}
			break
		}
	}
	return data
}

// visible removes invisible characters: control, bidirectional and tag
// characters, and the like.
func visible(text string) string {
	return invisible.Strip(strings.ReplaceAll(text, "\r\n", "\n"))
}

// toMarkdown converts a page. If it marks its main content, the rest is omitted.
func toMarkdown(text string, at *url.URL) (title, markdown string, err error) {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return "", "", err
	}
	var found outline
	found.scan(root)
	at = found.baseURL(at)
	content := root
	if len(found.main) == 1 {
		content = found.main[0]
	} else if len(found.articles) == 1 {
		content = found.articles[0]
	}
	prune(content, content == root, at)
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	out, err := c.ConvertNode(content)
	if err != nil {
		return "", "", err
	}
	return clip(strings.Join(strings.Fields(visible(found.title)), " "), 300), strings.TrimSpace(string(out)), nil
}

// outline is the structure of a page.
type outline struct {
	title          string
	base           string
	main, articles []*html.Node
}

func (p *outline) scan(root *html.Node) {
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Namespace != "" {
			continue
		}
		switch {
		case n.DataAtom == atom.Title && p.title == "" && n.FirstChild != nil:
			p.title = n.FirstChild.Data
		case n.DataAtom == atom.Base && p.base == "":
			p.base = attribute(n, "href")
		case n.DataAtom == atom.Main || attribute(n, "role") == "main":
			p.main = append(p.main, n)
		case n.DataAtom == atom.Article:
			p.articles = append(p.articles, n)
		}
	}
}

// baseURL returns the URL to which the page's links are relative.
func (p *outline) baseURL(at *url.URL) *url.URL {
	if u, err := at.Parse(p.base); p.base != "" && err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return u
	}
	return at
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val
		}
	}
	return ""
}

// prune removes hidden elements and those without text, and makes links
// absolute. If all is set, it also removes navigation, footers and asides.
func prune(root *html.Node, all bool, at *url.URL) {
	var drop []*html.Node
	for n := range root.Descendants() {
		switch {
		case n.Type == html.CommentNode, n.Type == html.ElementNode && (noText(n) || all && surrounding(n) || hidden(n)):
			drop = append(drop, n)
		case n.Type == html.ElementNode:
			absolute(n, at)
		}
	}
	for _, n := range drop {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
}

func noText(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Svg, atom.Canvas,
		atom.Audio, atom.Video, atom.Button, atom.Input, atom.Select, atom.Textarea, atom.Dialog, atom.Link, atom.Meta, atom.Title:
		return true
	}
	return false
}

func surrounding(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Footer, atom.Aside:
		return true
	}
	return false
}

// hidden reports whether an element is marked as hidden.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "style":
			style := strings.ToLower(strings.Join(strings.Fields(a.Val), ""))
			for _, s := range []string{"display:none", "visibility:hidden", "font-size:0;", "font-size:0px", "opacity:0;"} {
				if strings.Contains(style+";", s) {
					return true
				}
			}
		}
	}
	return false
}

// absolute makes the links of an element absolute and removes those that are not
// URLs of pages, such as scripts and inline images.
func absolute(n *html.Node, at *url.URL) {
	var kept []html.Attribute
	for _, a := range n.Attr {
		if a.Key == "href" || a.Key == "src" {
			u, err := at.Parse(strings.TrimSpace(a.Val))
			if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
				continue
			}
			a.Val = u.String()
		}
		kept = append(kept, a)
	}
	n.Attr = kept
	if n.DataAtom == atom.A && attribute(n, "href") == "" {
		n.DataAtom, n.Data = atom.Span, "span"
	}
}
