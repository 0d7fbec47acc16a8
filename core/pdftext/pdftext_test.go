package pdftext_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/pdftext"
	"github.com/seed-009c0928/agent/core/proc"
)

// The test binary is also the process that reads documents, and one that tries to
// do something else.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "serve":
			if err := pdftext.Serve(os.Stdin, os.Stdout, os.Args[2:]); err != nil {
				os.Exit(1)
			}
			os.Exit(0)
		case "probe":
			probe(os.Args[2])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// probe reports what a process of a Reader could do.
func probe(file string) {
	var done []string
	if _, err := os.ReadFile(file); err == nil {
		done = append(done, "it read a file")
	}
	if os.WriteFile(file, nil, 0o600) == nil {
		done = append(done, "it wrote a file")
	}
	if c, err := net.Dial("udp", "192.0.2.1:9"); err == nil {
		c.Close()
		done = append(done, "it has a network")
	}
	if environ := strings.Join(os.Environ(), " "); strings.Contains(environ, "HOME=") {
		done = append(done, "it has variables: "+environ)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"pages": done, "total": 1})
}

func reader(t *testing.T, args ...string) *pdftext.Reader {
	t.Helper()
	s := proc.NewSupervisor(proc.Options{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &pdftext.Reader{Command: append([]string{os.Args[0]}, args...), Supervisor: s}
}

// builder makes a document, of which object 1 is the catalog.
type builder struct{ objects []string }

func (b *builder) add(text string) (ref string) {
	b.objects = append(b.objects, text)
	return fmt.Sprintf("%d 0 R", len(b.objects))
}

func (b *builder) stream(dict, data string) (ref string) {
	return b.add(fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dict, len(data), data))
}

func (b *builder) bytes() []byte {
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(b.objects))
	for i, o := range b.objects {
		offsets[i] = out.Len()
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&out, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&out, "trailer\n<</Size %d /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, at)
	return out.Bytes()
}

// document has a page for each content, with the resources.
func document(resources string, contents ...string) *builder {
	b := &builder{}
	b.add("<</Type /Catalog /Pages 2 0 R>>")
	b.add("")
	var kids []string
	for _, c := range contents {
		kids = append(kids, b.add(fmt.Sprintf("<</Type /Page /Parent 2 0 R /Resources <<%s>> /Contents %s>>", resources, b.stream("", c))))
	}
	b.objects[1] = fmt.Sprintf("<</Type /Pages /Count %d /Kids [%s]>>", len(kids), strings.Join(kids, " "))
	return b
}

const helvetica = "/Font <</F <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> " +
	"/W <</Type /Font /Subtype /TrueType /BaseFont /Mono /FirstChar 32 /LastChar 34 /Widths [600 600 600] /FontDescriptor <</MissingWidth 600>> /Encoding /WinAnsiEncoding>>>>"

func TestText(t *testing.T) {
	t.Parallel()
	r := reader(t, "serve")
	tests := []struct{ name, content, want string }{
		{"lines", "BT /F 10 Tf 50 700 Td (First line) Tj 0 -12 Td (Second \\(line\\)) Tj ET", "First line\nSecond (line)"},
		{"paragraphs", "BT /F 10 Tf 50 700 Td (One) Tj 0 -30 Td (Two) Tj ET", "One\n\nTwo"},
		{"kerning", "BT /W 10 Tf 50 700 Td [(W) 80 (ord) -333 (by) -20 ( ) -10 (word)] TJ ET", "Word by word"},
		{"words one by one", "BT /W 10 Tf 1 0 0 1 50 700 Tm (two) Tj 1 0 0 1 74 700 Tm (words) Tj ET", "two words"},
		{"characters one by one", "BT /W 10 Tf 1 0 0 1 50 700 Tm (a) Tj 1 0 0 1 56 700 Tm (b) Tj 1 0 0 1 62.2 700 Tm (c) Tj ET", "abc"},
		{"words in a standard font", "BT /F 10 Tf 1 0 0 1 50 700 Tm (unknown) Tj 1 0 0 1 90 700 Tm (widths) Tj ET", "unknown widths"},
		{"columns of a table", "BT /W 10 Tf 50 700 Td (name) Tj 100 0 Td (size) Tj -100 -12 Td (a) Tj 100 0 Td (1) Tj ET", "name  size\na  1"},
		{"bold by drawing twice", "BT /W 10 Tf 50 700 Td (b) Tj ET BT /W 10 Tf 50.2 700 Td (b) Tj ET", "b"},
		{"operators that move", "BT /F 10 Tf 12 TL 50 700 Td (one) Tj T* (two) Tj (three) ' 1 0 (four) \" ET", "one\ntwo\nthree\nfour"},
		{"rotated", "q 0 1 -1 0 300 100 cm BT /W 10 Tf 0 0 Td (up) Tj 24 0 Td (wards) Tj ET Q BT /W 10 Tf 50 700 Td (level) Tj ET", "up wards\n\nlevel"},
		{"no text", "0 0 m 10 10 l S", ""},
		{"an unfinished content", "BT /F 10 Tf 50 700 Td (kept) Tj [(x", "kept"},
		{"Q without q", "Q Q BT /F 10 Tf (kept) Tj ET", "kept"},
	}
	contents := make([]string, len(tests))
	for i, tt := range tests {
		contents[i] = tt.content
	}
	pages, total, err := r.Read(t.Context(), bytes.NewReader(document(helvetica, contents...).bytes()), 1, 100, 1<<20)
	if err != nil || total != len(tests) || len(pages) != len(tests) {
		t.Fatalf("%d pages of %d, error %v", len(pages), total, err)
	}
	for i, tt := range tests {
		if pages[i] != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, pages[i], tt.want)
		}
	}
}

// TestFonts reads what current producers write: two bytes a character, which a map
// turns into text, and text within forms.
func TestFonts(t *testing.T) {
	t.Parallel()
	cmap := "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /X def\n1 begincodespacerange <0000> <FFFF> endcodespacerange\n" +
		"2 beginbfchar\n<0001> <00660069>\n<0002> <D83DDE00>\nendbfchar\n2 beginbfrange\n<0010> <0012> <0061>\n<0020> <0021> [<00DF> <00E9>]\nendbfrange\nendcmap"
	b := &builder{}
	b.add("<</Type /Catalog /Pages 2 0 R>>")
	b.add("<</Type /Pages /Count 1 /Kids [8 0 R]>>")
	b.add("<</Type /Font /Subtype /Type0 /BaseFont /ABC+Sans /Encoding /Identity-H /DescendantFonts [<</Type /Font /Subtype /CIDFontType2 /DW 500 /W [16 [500 500 500]]>>] /ToUnicode 5 0 R>>")
	b.stream("", "BT /T 10 Tf 50 700 Td [<001000110012> -400 <00010020>] TJ <00210002> Tj ET q 1 0 0 1 0 -40 cm /X Do Q BT /D 10 Tf 50 600 Td <0102> Tj ET")
	b.stream("", cmap)
	b.add("<</Type /Font /Subtype /Type1 /BaseFont /TeX /FirstChar 1 /Widths [500 500] /Encoding <</Differences [1 /fi /quoteright]>>>>")
	b.stream("/Type /XObject /Subtype /Form /Resources <</Font <</T 3 0 R>> /XObject <</X 7 0 R>>>>", "BT /T 10 Tf 50 700 Td <0010> Tj ET /X Do")
	b.add("<</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources <</Font <</T 3 0 R /D 6 0 R>> /XObject <</X 7 0 R>>>>>>")
	pages, _, err := reader(t, "serve").Read(t.Context(), bytes.NewReader(b.bytes()), 1, 1, 1<<20)
	want := "abc fißé😀\n\na\n\nfi’"
	if err != nil || len(pages) != 1 || pages[0] != want {
		t.Errorf("%q, error %v, want %q", pages, err, want)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	r := reader(t, "serve")
	var contents []string
	for i := range 9 {
		contents = append(contents, fmt.Sprintf("BT /F 10 Tf (page %d) Tj ET", i+1))
	}
	doc := document(helvetica, contents...).bytes()
	for _, tt := range []struct {
		first, limit, bytes int
		want                string
	}{
		{1, 2, 1000, "page 1,page 2"},
		{8, 5, 1000, "page 8,page 9"},
		{3, 9, 8, "page 3,page 4"},
		{10, 1, 1000, ""},
	} {
		pages, total, err := r.Read(t.Context(), bytes.NewReader(doc), tt.first, tt.limit, tt.bytes)
		if got := strings.Join(pages, ","); got != tt.want || total != 9 || err != nil {
			t.Errorf("pages %d to %d: %q of %d, error %v, want %q", tt.first, tt.first+tt.limit-1, got, total, err, tt.want)
		}
	}
	for name, odd := range map[string][]byte{
		"version 2":       bytes.Replace(doc, []byte("%PDF-1.4\n"), []byte("%PDF-2.0\n"), 1),
		"something after": append(bytes.Clone(doc), "\n<!-- added by a server -->\x00\x00"+strings.Repeat(" ", 500)...),
	} {
		if pages, _, err := r.Read(t.Context(), bytes.NewReader(odd), 1, 1, 1000); err != nil || len(pages) != 1 || pages[0] != "page 1" {
			t.Errorf("%s: %q, error %v", name, pages, err)
		}
	}
}

// TestHostileDocuments checks that whatever a document does ends with an error.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	loop := document(helvetica, "")
	loop.objects[1] = "<</Type /Pages /Count 3 /Kids [2 0 R 2 0 R]>>"
	encrypted := bytes.Replace(document(helvetica, "").bytes(), []byte("/Root 1 0 R"),
		[]byte("/Root 1 0 R /ID [(a) (b)] /Encrypt <</Filter /Standard /V 1 /R 2 /O ("+strings.Repeat("o", 32)+") /U ("+strings.Repeat("u", 32)+") /P -4>>"), 1)
	for name, tt := range map[string]struct {
		doc  []byte
		want string
	}{
		"empty":           {[]byte("%PDF-1.4\n"), "damaged"},
		"cut":             {document(helvetica, "").bytes()[:200], "damaged"},
		"a long text":     {document(helvetica, "BT /W 10 Tf "+strings.Repeat("(some text) Tj ", 1<<20)).bytes(), ""},
		"no pages":        {(&builder{objects: []string{"<</Type /Catalog>>"}}).bytes(), "no pages"},
		"nested":          {document(helvetica, strings.Repeat("[", 1<<20)).bytes(), ""},
		"encrypted":       {encrypted, "the document is encrypted"},
		"pages of itself": {loop.bytes(), "takes too long"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reader(t, "serve")
			if name == "pages of itself" { // without end
				r.Timeout = 5 * time.Second
			}
			pages, total, err := r.Read(t.Context(), bytes.NewReader(tt.doc), 1, 10, 1<<20)
			if tt.want == "" && len(strings.Join(pages, "")) > 3<<20 || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%d pages of %d, error %v, want %q", len(pages), total, err, tt.want)
			}
		})
	}
}

// TestMemory checks that a document cannot take more memory than it may.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector maps more memory than the limit")
	}
	t.Parallel()
	for want, doc := range map[string][]byte{
		"memory":           bomb(t),
		"more than 64 MiB": append([]byte("%PDF-1.4\n"), make([]byte, 64<<20)...),
	} {
		if _, _, err := reader(t, "serve").Read(t.Context(), bytes.NewReader(doc), 1, 10, 1<<20); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// bomb returns a document with a page of 512 MiB.
func bomb(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	z := zlib.NewWriter(&text)
	piece := strings.Repeat("(some text that is never shown) ", 1<<12)
	for range 1 << 12 {
		if _, err := z.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	doc := document(helvetica, "")
	doc.objects[2] = fmt.Sprintf("<</Filter /FlateDecode /Length %d>>\nstream\n%s\nendstream", text.Len(), text.Bytes())
	return doc.bytes()
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := reader(t, "serve").Read(ctx, strings.NewReader(""), 1, 1, 1); err != context.Canceled {
		t.Errorf("error %v", err)
	}
}

// TestNoGrants runs a program in place of the one that reads: it can do nothing.
func TestNoGrants(t *testing.T) {
	t.Parallel()
	r := reader(t, "probe")
	if level, err := r.Supervisor.Sandbox().Choose(t.Context(), r.Sandbox); err != nil || level.String() == "none" {
		t.Skip("no sandbox level works on this machine")
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Command = append(r.Command, secret)
	if done, _, err := r.Read(t.Context(), strings.NewReader(""), 1, 1, 1); err != nil || len(done) > 0 {
		t.Errorf("%q, error %v", done, err)
	}
}
