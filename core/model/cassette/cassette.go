package cassette

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/seed-009c0928/agent/core/redact"
)

// version is the version of the file format.
const version = 1

// Options are the options of recording and replaying, which must be equal.
type Options struct {
	// Secrets returns texts that are never written, plain or encoded for JSON,
	// URLs or base64. Known formats of keys are not written either. It is called
	// for every exchange, from any goroutine, and may be nil.
	Secrets func() []string
	// Hidden returns texts that are never written, of which the file has the size
	// instead. A replay must learn of the same ones at the same points. It is called
	// like Secrets.
	Hidden func() []string
	// Stable names texts that differ between machines. The file contains the
	// names, which a replay replaces by the texts of its machine. In a streamed
	// answer, a text is found only within one piece.
	Stable []Stable
	// Ignore matches text that may differ in the strings of requests.
	Ignore []*regexp.Regexp
}

// Stable is a text, such as a directory's path, and its name.
type Stable struct{ Name, Text string }

// header is the first document of a file.
type header struct {
	Cassette int      `yaml:"cassette"`
	Stable   []string `yaml:"stable,flow,omitempty"`
}

// exchange is a request and its answer.
type exchange struct {
	Request  request  `yaml:"request"`
	Response response `yaml:"response"`

	line int // in the file
	used bool
}

type request struct {
	Method string            `yaml:"method"`
	URL    string            `yaml:"url"`
	Header map[string]string `yaml:"header,omitempty"`
	Body   body              `yaml:",inline"`
}

type response struct {
	Status int               `yaml:"status"`
	Header map[string]string `yaml:"header,omitempty"`
	Body   body              `yaml:",inline"`
	// Cut means that the answer ended early, or was not read to its end.
	Cut bool `yaml:"cut,omitempty"`
}

// body is text or, if it is not valid UTF-8, base64.
type body struct {
	Text   string `yaml:"body,omitempty"`
	CRLF   bool   `yaml:"crlf,omitempty"` // every line of the text ends with CRLF
	Base64 string `yaml:"base64,omitempty"`
}

func newBody(data []byte) body {
	switch ends := bytes.Count(data, []byte("\r\n")); {
	case !utf8.Valid(data):
		return body{Base64: base64.StdEncoding.EncodeToString(data)}
	case ends > 0 && ends == bytes.Count(data, []byte("\n")) && ends == bytes.Count(data, []byte("\r")):
		return body{Text: strings.ReplaceAll(string(data), "\r\n", "\n"), CRLF: true} // or YAML could not write it as lines
	}
	return body{Text: string(data)}
}

func (b body) bytes() ([]byte, error) {
	switch {
	case b.Base64 != "":
		return base64.StdEncoding.DecodeString(b.Base64)
	case b.CRLF:
		return []byte(strings.ReplaceAll(b.Text, "\n", "\r\n")), nil
	}
	return []byte(b.Text), nil
}

// The headers that are written. All others may contain a credential, or are of no
// use.
var (
	requestHeaders  = []string{"Accept", "Content-Type", "Anthropic-Beta", "Anthropic-Version", "Openai-Beta", "X-Github-Api-Version"}
	responseHeaders = []string{"Content-Type", "Retry-After", "Retry-After-Ms", "Request-Id", "X-Request-Id"}
)

// codec converts between exchanges and the file.
type codec struct {
	secrets func() []string
	hidden  func() []string
	stable  []Stable // longest text first
	ignore  []*regexp.Regexp
}

func newCodec(o Options) *codec {
	c := &codec{secrets: o.Secrets, hidden: o.Hidden, ignore: o.Ignore}
	for _, s := range o.Stable {
		if len(s.Text) >= 2 { // "/" occurs everywhere
			c.stable = append(c.stable, s)
		}
	}
	slices.SortStableFunc(c.stable, func(a, b Stable) int { return len(b.Text) - len(a.Text) })
	return c
}

func placeholder(name string) string { return "{{" + name + "}}" }

// clean removes hidden texts and secrets, and replaces stable texts by their names.
func (c *codec) clean(text []byte) []byte {
	text = c.withoutHidden(text)
	for _, s := range c.stable {
		name := []byte(placeholder(s.Name))
		text = replaceWord(text, []byte(s.Text), name)
		if inJSON := quoted(s.Text); inJSON != s.Text {
			text = replaceWord(text, []byte(inJSON), name)
		}
	}
	text, _ = c.redactor().Text(text)
	return text
}

// withoutHidden replaces hidden texts, longer ones first, in JSON.
func (c *codec) withoutHidden(text []byte) []byte {
	if c.hidden == nil {
		return text
	}
	list := c.hidden()
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) })
	for _, hidden := range list {
		marker := fmt.Sprintf("[%d bytes are not recorded, because they may contain secrets]", len(hidden))
		escaped, _ := json.Marshal(hidden) // a string always encodes
		for _, form := range []string{quoted(hidden), string(escaped[1 : len(escaped)-1])} {
			text = bytes.ReplaceAll(text, []byte(form), []byte(marker))
		}
	}
	return text
}

func (c *codec) redactor() *redact.Redactor {
	var forms []string
	if c.secrets != nil {
		for _, s := range c.secrets() {
			forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s),
				base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)))
		}
	}
	return redact.New(forms)
}

// expand replaces the names of stable texts by the texts.
func (c *codec) expand(text []byte, inJSON bool) []byte {
	for _, s := range c.stable {
		by := s.Text
		if inJSON {
			by = quoted(by)
		}
		text = bytes.ReplaceAll(text, []byte(placeholder(s.Name)), []byte(by))
	}
	return text
}

// quoted returns s as in a JSON string, without the quotes.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// replaceWord replaces a text where a word ends: /work does not match in
// /workspace.
func replaceWord(text, old, by []byte) []byte {
	var out []byte
	for rest := text; ; {
		i := bytes.Index(rest, old)
		if i < 0 {
			if out == nil {
				return text
			}
			return append(out, rest...)
		}
		end := i + len(old)
		out = append(out, rest[:i]...)
		if end < len(rest) && (rest[end] == '-' || rest[end] == '_' || rest[end] >= '0' && rest[end] <= '9' || rest[end] >= 'a' && rest[end] <= 'z' || rest[end] >= 'A' && rest[end] <= 'Z') {
			out = append(out, rest[i:end]...)
		} else {
			out = append(out, by...)
		}
		rest = rest[end:]
	}
}

// request returns r, with the body data, as it is written.
func (c *codec) request(r *http.Request, data []byte) request {
	return request{
		Method: r.Method, URL: string(c.clean([]byte(publicURL(r.URL)))), Header: pick(r.Header, requestHeaders),
		Body: newBody(indented(c.clean(data))),
	}
}

// publicURL returns a URL without user info and without query values that are not
// known to be harmless.
func publicURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	query := u.Query()
	for name, values := range query {
		if !slices.Contains([]string{"alt", "api-version", "pageSize", "limit", "after_id"}, name) {
			for i := range values {
				values[i] = "redacted"
			}
		}
	}
	shown.RawQuery = query.Encode()
	return shown.String()
}

func pick(h http.Header, names []string) map[string]string {
	kept := map[string]string{}
	for _, name := range names {
		if v := h.Values(name); len(v) > 0 {
			kept[name] = strings.Join(v, ", ")
		}
	}
	return kept
}

// indented indents JSON. Anything else is unchanged.
func indented(data []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, data, "", "  ") != nil {
		return data
	}
	return append(b.Bytes(), '\n')
}

// document returns v as YAML, after a separator.
func document(v any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("---\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(v), enc.Close()); err != nil {
		return nil, fmt.Errorf("cassette: %w", err)
	}
	return b.Bytes(), nil
}

// load reads a file. Errors contain its name and the line.
func load(path string) ([]*exchange, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cassette: %w", err)
	}
	defer f.Close()
	list, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("cassette %s: %w", path, err)
	}
	return list, nil
}

func read(r io.Reader) ([]*exchange, error) {
	dec := yaml.NewDecoder(r)
	var first yaml.Node
	var h header
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it is empty; the first document must be `cassette: 1`")
		}
		return nil, err
	}
	if err := first.Decode(&h); err != nil || h.Cassette == 0 {
		return nil, errors.New("line 1: not a recording: the first document must be `cassette: 1`")
	}
	if h.Cassette != version {
		return nil, fmt.Errorf("its version is %d; this program supports version %d", h.Cassette, version)
	}
	var list []*exchange
	for {
		var node yaml.Node
		if err := dec.Decode(&node); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		x := &exchange{line: node.Line}
		if err := decodeStrictly(&node, x); err != nil {
			return nil, err
		}
		if _, err := x.Response.Body.bytes(); err != nil || x.Request.Method == "" || x.Response.Status < 100 || x.Response.Status > 999 {
			return nil, fmt.Errorf("line %d: not an exchange: invalid method, status or base64", x.line)
		}
		list = append(list, x)
	}
}

// decodeStrictly rejects unknown fields, which yaml.Node.Decode ignores.
func decodeStrictly(node *yaml.Node, x *exchange) error {
	if err := node.Decode(x); err != nil {
		return err
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&exchange{}); err != nil {
		return fmt.Errorf("exchange at line %d: %w", node.Line, err)
	}
	return nil
}
