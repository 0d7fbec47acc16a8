package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"8.8.8.8", "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8", "64:ff9b::808:808"} {
		if err := checkAddress(netip.MustParseAddr(a)); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
	for _, a := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
		"168.63.129.16", "192.0.0.192", "198.18.0.1", "203.0.113.9", "224.0.0.1", "255.255.255.255", "240.0.0.1",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "2002:7f00:1::", "2001:0:53aa:64c::1", "2001:db8::1", "3fff::1", "2000::1%1",
	} {
		if err := checkAddress(netip.MustParseAddr(a)); err == nil {
			t.Errorf("%s is accepted", a)
		}
	}
	if err := checkAddress(netip.Addr{}); err == nil {
		t.Error("the invalid address is accepted")
	}
}

func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	f := newFetcher(options{Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("it was resolved") }})
	for _, tt := range []struct{ url, want string }{
		{"", "only http:// and https:// URLs"},
		{"example.com", "only http:// and https:// URLs"},
		{"file:///etc/passwd", "only http:// and https:// URLs"},
		{"ftp://example.com/", "only http:// and https:// URLs"},
		{"javascript:alert(1)", "only http:// and https:// URLs"},
		{"http://", "no valid host"},
		{"http://user:secret@example.com/", "remove it"},
		{"http://good.com@evil.com/", "remove it"},
		{"http://example.com./", "no valid host"},
		{"http://ｅｖｉｌ.com/", "must be ASCII"},
		{"http://münchen.de/", "must be ASCII"},
		{"http://exa%20mple.com/", "invalid URL"},
		{"http://exa\\mple.com/", "invalid URL"},
		{"http://example.com:22/", "port 22"},
		{"http://example.com:99999/", "port 99999"},
		{"http://example.com:x/", "invalid URL"},
		{"http://127.0.0.1/", "not a public internet address"},
		{"http://[::1]/", "not a public internet address"},
		{"http://[::ffff:7f00:1]/", "not a public internet address"},
		{"http://[fe80::1%25eth0]/", "must be ASCII"},
		{"http://169.254.169.254/latest/meta-data/", "not a public internet address"},
		{"http://0/", "it was resolved"},
		{"http://2130706433/", "it was resolved"}, // treated as a name
		{"http://0x7f.1/", "it was resolved"},
		{"http://" + strings.Repeat("a", 5000), "longer than"},
	} {
		_, err := f.fetch(t.Context(), tt.url, false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v; want an error with %q", tt.url, err, tt.want)
		}
	}
}

// TestRebinding uses names that resolve to private addresses, some of them to a
// public one as well.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	public, local := netip.MustParseAddr("203.0.112.1"), netip.MustParseAddr("127.0.0.1")
	for name, addrs := range map[string][]netip.Addr{
		"local":           {local},
		"both":            {public, local},
		"mapped":          {netip.MustParseAddr("::ffff:127.0.0.1")},
		"every address":   {netip.MustParseAddr("0.0.0.0")},
		"none":            {},
		"of a zone":       {netip.MustParseAddr("fe80::1%lo")},
		"metadata by v6":  {netip.MustParseAddr("fd00:ec2::254")},
		"metadata by nat": {netip.MustParseAddr("64:ff9b::a9fe:a9fe")},
	} {
		lookups := 0
		f := newFetcher(options{Resolve: func(context.Context, string) ([]netip.Addr, error) { lookups++; return addrs, nil }})
		_, err := f.fetch(t.Context(), "http://rebind.example:"+port+"/", false)
		f.close()
		if err == nil || reached.Load() || lookups != 1 {
			t.Errorf("%s: %v, reached %v, looked up %d times", name, err, reached.Load(), lookups)
		}
	}
	// Without the check the server is reached.
	f := newFetcher(options{AllowPrivate: []string{"rebind.example:" + port}, Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{local}, nil }})
	defer f.close()
	if _, err := f.fetch(t.Context(), "http://rebind.example:"+port+"/", false); err != nil || !reached.Load() {
		t.Errorf("the allowed address: %v, reached %v", err, reached.Load())
	}
	if _, err := f.fetch(t.Context(), "http://other.example:"+port+"/", false); err == nil {
		t.Error("another host is allowed, too")
	}
}

// serve starts a server and a fetcher that may reach it.
func serve(t *testing.T, o options, h http.HandlerFunc) (*fetcher, string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o.AllowPrivate = append(o.AllowPrivate, server.Listener.Addr().String())
	f := newFetcher(o)
	t.Cleanup(f.close)
	return f, server.URL
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	f, base := serve(t, options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/there":
			fmt.Fprint(w, "arrived")
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			w.Header().Set("Location", r.URL.Query().Get("to"))
			w.WriteHeader(http.StatusMovedPermanently)
		}
	})
	for _, tt := range []struct{ path, text, redirect, err string }{
		{"/here", "arrived", "", ""},
		{"/loop", "", "", "more than 5 times"},
		{"/to?to=https://example.com/x%23part", "", "https://example.com/x", ""},
		{"/to?to=http://169.254.169.254/latest", "", "http://169.254.169.254/latest", ""}, // reported, not followed
		{"/to?to=http://localhost:9/", "", "", "port 9"},
		{"/to?to=file:///etc/passwd", "", "", "cannot be fetched"},
		{"/to?to=http://a:b@example.com/", "", "", "cannot be fetched"},
		{"/to?to=//example.com:8080/x", "", "http://example.com:8080/x", ""},
	} {
		p, err := f.fetch(t.Context(), base+tt.path, false)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v; want an error with %q", tt.path, err, tt.err)
			}
		case err != nil || p.Text != tt.text || p.Redirect != tt.redirect:
			t.Errorf("%s: %+v, %v; want text %q, redirect %q", tt.path, p, err, tt.text, tt.redirect)
		}
	}
}

func TestSameSite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		follow   bool
	}{
		{"http://a.com/", "https://a.com/", true},
		{"https://a.com/", "https://A.com:443/x", true},
		{"https://a.com/", "http://a.com/", false},
		{"http://a.com/", "http://www.a.com/", false},
		{"http://a.com/", "http://a.com:8080/", false},
		{"http://a.com/", "http://a.com.evil.com/", false},
	} {
		from, _ := http.NewRequest(http.MethodGet, tt.from, nil)
		to, _ := http.NewRequest(http.MethodGet, tt.to, nil)
		if err := checkRedirect(to, []*http.Request{from}); (err == nil) != tt.follow {
			t.Errorf("%s to %s: %v, want to follow: %v", tt.from, tt.to, err, tt.follow)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	latin := []byte("caf\xe9")
	type answer struct {
		kind string
		body []byte
	}
	answers := map[string]answer{
		"html":       {"text/html; charset=utf-8", []byte("<title>A <b>title</title><h1>Head</h1><p>A <a href='/x?y=1#z'>link</a>.")},
		"xhtml":      {"application/xhtml+xml", []byte("<html><body><p>x</p></body></html>")},
		"json":       {"application/json", []byte(`{"a": 1}`)},
		"plus json":  {"application/problem+json", []byte(`{"a": 2}`)},
		"markdown":   {"text/markdown", []byte("# As *it* is\r\nend")},
		"text":       {"text/plain", []byte("plain <b>")},
		"latin":      {"text/plain; charset=ISO-8859-1", latin},
		"undeclared": {"text/plain", latin},
		"meta":       {"text/html", []byte("<meta charset=iso-8859-1><p>caf\xe9")},
		"utf16":      {"text/plain; charset=utf-16", []byte("\xfe\xff\x00h\x00i")},
		"bom":        {"text/plain", []byte("\ufeffhi")},
		"sniffed":    {"", []byte("<html><body>sniffed</body></html>")},
		"stream":     {"application/octet-stream", []byte("only text")},
		"invisible":  {"text/plain", []byte("a\u202eb\u200bc\x1b[31md\U000e0041e👨\u200d👩")},
		"pdf":        {"application/pdf", []byte("%PDF-1.7")},
		"image":      {"image/png", []byte("\x89PNG")},
		"sneaky pdf": {"", []byte("%PDF-1.7 ...")},
		"binary":     {"application/octet-stream", []byte("\x7fELF\x00\x00")},
		"bad type":   {"text/html; charset=\"", []byte("<p>still read")},
	}
	f, base := serve(t, options{Version: "1.2"}, func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.URL.Query().Get("q")]
		w.Header()["Content-Type"] = nil
		if a.kind != "" {
			w.Header().Set("Content-Type", a.kind)
		}
		if !strings.Contains(r.Header.Get("User-Agent"), "agent/1.2 (web_fetch") || r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" {
			t.Errorf("request %v", r.Header)
		}
		_, _ = w.Write(a.body)
	})
	for name, want := range map[string]string{
		"html": "# Head\n\nA [link](" + base + "/x?y=1#z).", "xhtml": "x", "json": `{"a": 1}`, "plus json": `{"a": 2}`, "markdown": "# As *it* is\nend",
		"text": "plain <b>", "latin": "café", "undeclared": "café", "meta": "café", "utf16": "hi", "bom": "hi", "sniffed": "sniffed", "stream": "only text",
		"invisible": "abc[31mde👨\u200d👩", "bad type": "still read",
	} {
		p, err := f.fetch(t.Context(), base+"/?q="+url.QueryEscape(name), false)
		if err != nil || p.Text != want {
			t.Errorf("%s: %+v, %v; want %q", name, p, err, want)
		}
		if name == "html" && p.Title != "A <b>title" {
			t.Errorf("title %q", p.Title)
		}
	}
	for name, want := range map[string]string{"pdf": "PDF document", "sneaky pdf": "PDF document", "image": "image/png, not text", "binary": "not text"} {
		if _, err := f.fetch(t.Context(), base+"/?q="+url.QueryEscape(name), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", name, err, want)
		}
	}
	if p, err := f.fetch(t.Context(), base+"/?q=html", true); err != nil || !strings.HasPrefix(p.Text, "<title>") {
		t.Errorf("raw: %+v, %v", p, err)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	at, _ := url.Parse("https://example.com/docs/page")
	for _, tt := range []struct{ name, html, want string }{
		{"surroundings go", "<nav>menu</nav><header>top</header><p>text</p><aside>ad</aside><footer>foot</footer>", "top\n\ntext"},
		{"only the main part", "<header>top</header><main><nav>contents</nav><p>text</p></main><p>rest", "contents\n\ntext"},
		{"no text", "<script>evil()</script><style>p{}</style><noscript>no</noscript><svg><text>x</text></svg><iframe src=x></iframe><p>text<!-- note -->", "text"},
		{"hidden from people", "<p hidden>1</p><p style='display: NONE'>2</p><p style='opacity:0'>3</p><p aria-hidden=true>4</p><p style='font-size: 0'>5</p><p>seen", "seen"},
		{
			"links", `<a href="other">a</a> <a href="javascript:x()">b</a> <a href="#part">c</a> <img src="data:image/png;base64,AAAA" alt="d"> <img src="/i.png" alt="e">`,
			"[a](https://example.com/docs/other) b [c](https://example.com/docs/page#part)  ![e](https://example.com/i.png)",
		},
		{"base", `<base href="https://cdn.example.com/v2/"><a href="x">a</a>`, "[a](https://cdn.example.com/v2/x)"},
		{"invalid base", `<base href="javascript:x"><a href="x">a</a>`, "[a](https://example.com/docs/x)"},
		{"table", "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>", "| A | B |\n|---|---|\n| 1 | 2 |"},
		{"code", "<pre><code>a &lt; b\n  c</code></pre>", "```\na < b\n  c\n```"},
		{"list", "<ul><li>a<ol><li>b</li></ol></li></ul>", "- a\n  \n  1. b"},
		{"nothing", "", ""},
	} {
		_, got, err := toMarkdown(tt.html, at)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		o    options
		h    http.HandlerFunc
		want string
	}{
		{"not found", options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<h1>No such page</h1>")
		}, "the server responded 404 Not Found: # No such page"},
		{"too many requests", options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, "429 Too Many Requests, try again after 30"},
		{"unasked 304", options{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "304"},
		{"headers without end", options{}, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		}, "cannot fetch the page"},
		{"no answer", options{Timeout: 50 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "did not respond in time"},
		{"body without end in time", options{Timeout: 100 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte("begun"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "did not respond in time"},
		{"broken off", options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("begun"))
		}, "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, base := serve(t, tt.o, tt.h)
			if p, err := f.fetch(t.Context(), base, false); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%+v, %v; want an error with %q", p, err, tt.want)
			}
		})
	}
}

// TestSize fetches pages that are too large, also after decompression.
func TestSize(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 1000 {
		_, _ = z.Write(make([]byte, 1000))
	}
	_ = z.Close()
	f, base := serve(t, options{MaxBytes: 1001}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if r.URL.Path == "/packed" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed.Bytes())
			return
		}
		for range 1000 { // the limit is within a character
			_, _ = w.Write([]byte("éé"))
		}
	})
	p, err := f.fetch(t.Context(), base, false)
	if err != nil || !p.Truncated || p.Text != strings.Repeat("é", 500) {
		t.Errorf("%d bytes, truncated %v, %v; want 1000, true", len(p.Text), p.Truncated, err)
	}
	if p, err := f.fetch(t.Context(), base+"/packed", true); err != nil || !p.Truncated || len(p.Text) > 1001 {
		t.Errorf("packed: %+v, %v", p, err)
	}
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	f, base := serve(t, options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			asked.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "content of "+r.URL.Path)
	})
	for range 2 {
		for i := range cachePages {
			path := fmt.Sprint("/", i)
			if p, err := f.fetch(t.Context(), base+path, false); err != nil || p.Text != "content of "+path {
				t.Fatalf("%+v, %v", p, err)
			}
		}
	}
	if got := asked.Load(); got != cachePages {
		t.Errorf("%d pages were revalidated, want %d", got, cachePages)
	}
	if _, err := f.fetch(t.Context(), base+"/more", false); err != nil || len(f.cache.entries) != cachePages {
		t.Errorf("%v, %d pages cached", err, len(f.cache.entries))
	}
}

func FuzzPage(f *testing.F) {
	f.Add("text/html", "utf-8", []byte("<main><a href=x>y</a><table><tr><td>z"))
	f.Add("text/plain", "utf-16", []byte("\xff\xfeh"))
	f.Add("", "", []byte("%PDF"))
	at, _ := url.Parse("https://example.com/")
	f.Fuzz(func(t *testing.T, kind, set string, data []byte) {
		d := &document{url: at, kind: kind, charset: set, data: data}
		p, err := d.page(false)
		if err != nil {
			return
		}
		if p.Text != visible(p.Text) || strings.ContainsRune(p.Text, 0x1b) {
			t.Errorf("%q contains invisible characters", p.Text)
		}
	})
}

func FuzzURL(f *testing.F) {
	f.Add("http://user@host:80/path#part")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := parseURL(text)
		if err != nil {
			return
		}
		again, err := parseURL(u.String())
		if err != nil || again.Host != u.Host || again.User != nil {
			t.Errorf("%q parses as %q, and that as %v, %v", text, u, again, err)
		}
	})
}
