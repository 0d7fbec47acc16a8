package page

import (
	"strings"
	"testing"
)

// TestMarkdown checks what becomes of Markdown, also of what would take long.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	md := newMarkdown()
	for text, want := range map[string]string{
		"**a** `b`":                          "<p><strong>a</strong> <code>b</code></p>\n",
		"# Title":                            "<p class=\"h\"><strong>Title</strong></p>\n",
		"a <b>c</b>":                         "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n",
		"<div>\nx\n</div>":                   "<pre>&lt;div&gt;\nx\n&lt;/div&gt;</pre>\n",
		"[a](https://go.dev \"t\")":          "<p><a rel=\"noopener noreferrer nofollow\" href=\"https://go.dev\">a</a></p>\n",
		"[a](docs/a.md)":                     "<p>a (docs/a.md)</p>\n",
		"[a](javascript:b)":                  "<p>a (javascript:b)</p>\n",
		"<https://go.dev> <mailto:a@b.c>":    "<p><a rel=\"noopener noreferrer nofollow\" href=\"https://go.dev\">https://go.dev</a> mailto:a@b.c</p>\n",
		"![a *b*](c.png)":                    "<p>[image: a <em>b</em> c.png]</p>\n",
		"- [x] a\n- [ ] b":                   "<ul>\n<li>☑ a</li>\n<li>☐ b</li>\n</ul>\n",
		"```go\na<b\n```":                    "<pre><code class=\"language-go\">a&lt;b\n</code></pre>\n",
		"a\x1b[31mb\u202ec":                  "<p>abc</p>\n",
		strings.Repeat("> ", 40) + "x":       `<pre dir="auto">` + strings.Repeat("&gt; ", 40) + "x</pre>",
		strings.Repeat("[a](", 2000):         `<pre dir="auto">` + strings.Repeat("[a](", 2000) + "</pre>",
		strings.Repeat("*a_ ", 1000):         `<pre dir="auto">` + strings.Repeat("*a_ ", 1000) + "</pre>",
		strings.Repeat("long ", maxMarkdown): `<pre dir="auto">` + strings.Repeat("long ", maxMarkdown) + "</pre>",
	} {
		if got := string(md.html(text)); got != want {
			t.Errorf("%.60q: %.200q, want %.200q", text, got, want)
		}
	}
}

// FuzzMarkdown checks that nothing but the elements of Markdown comes out, whatever goes in.
func FuzzMarkdown(f *testing.F) {
	for _, a := range attacks {
		f.Add(a)
	}
	md := newMarkdown()
	allowed := map[string]bool{}
	for name := range strings.FieldsSeq("a p pre code em strong del ul ol li blockquote hr br table thead tbody tr th td") {
		allowed[name] = true
	}
	f.Fuzz(func(t *testing.T, text string) {
		for rest := string(md.html(text)); ; {
			_, after, ok := strings.Cut(rest, "<")
			if !ok {
				return
			}
			tag, after, ok := strings.Cut(after, ">")
			name, attributes, _ := strings.Cut(strings.Trim(tag, "/ "), " ")
			if !ok || !allowed[name] {
				t.Fatalf("element %q of %q", tag, text)
			}
			if name == "a" && attributes != "" && !strings.HasPrefix(attributes, `rel="noopener noreferrer nofollow" href="http`) {
				t.Fatalf("attributes %q of %q", attributes, text)
			}
			rest = after
		}
	})
}
