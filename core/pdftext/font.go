package pdftext

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"

	"github.com/seed-009c0928/agent/core/lazy"
)

// font maps the codes of a string to text and widths.
type font struct {
	size   int // bytes of a code
	text   map[string]string
	decode pdf.TextEncoding // of codes that are not in text; nil = unknown
	widths map[int]float64  // in thousandths of the font's size; empty if unknown
	other  float64          // of codes that are not in widths
	unit   float64          // thousandths in a unit of the widths
	even   bool             // all characters have the same width
}

// glyph is a character of a font, or several.
type glyph struct {
	text  string
	width float64 // as a fraction of the font's size
	space bool    // word spacing applies
}

// The largest tables that are read.
const (
	maxCodes = 1 << 17
	maxMap   = 4 << 20 // bytes
)

func newFont(v pdf.Value) *font {
	f := &font{size: 1, unit: 1, even: strings.Contains(v.Key("BaseFont").Name(), "Courier"), widths: map[int]float64{}, text: unicodes(v.Key("ToUnicode"))}
	if v.Key("Subtype").Name() == "Type0" {
		f.size = 2
		f.composite(v.Key("DescendantFonts").Index(0))
	} else {
		f.simple(v)
	}
	if encoded := (&pdf.Font{V: v}); f.size == 1 || v.Key("Encoding").Name() != "Identity-H" {
		f.decode = encoded.Encoder()
	}
	return f
}

// simple reads the widths of a font with codes of one byte.
func (f *font) simple(v pdf.Value) {
	f.other = v.Key("FontDescriptor").Key("MissingWidth").Float64()
	if v.Key("Subtype").Name() == "Type3" {
		f.unit = v.Key("FontMatrix").Index(0).Float64() * 1000
	}
	first, widths := int(v.Key("FirstChar").Int64()), v.Key("Widths")
	for i := range min(widths.Len(), 256) {
		f.widths[first+i] = widths.Index(i).Float64()
	}
}

// composite reads the widths of the descendant of a Type0 font.
func (f *font) composite(v pdf.Value) {
	f.other = 1000
	if dw := v.Key("DW"); !dw.IsNull() {
		f.other = dw.Float64()
	}
	w := v.Key("W")
	f.widths[-1] = 0 // they are known, if only by the default
	for i := 0; i+1 < w.Len() && len(f.widths) < maxCodes; {
		code := int(w.Index(i).Int64())
		if list := w.Index(i + 1); list.Kind() == pdf.Array {
			for j := range list.Len() {
				f.widths[code+j] = list.Index(j).Float64()
			}
			i += 2
			continue
		}
		last := min(int(w.Index(i+1).Int64()), code+0xffff)
		for ; code <= last; code++ {
			f.widths[code] = w.Index(i + 2).Float64()
		}
		i += 3
	}
}

// known reports whether the font says how wide its characters are.
func (f *font) known() bool { return len(f.widths) > 0 }

// glyphs splits a string into its characters.
func (f *font) glyphs(s string) []glyph {
	list := make([]glyph, 0, len(s)/f.size)
	for ; len(s) >= f.size; s = s[f.size:] {
		raw := s[:f.size]
		code := int(raw[0])
		if f.size == 2 {
			code = code<<8 | int(raw[1])
		}
		text, ok := f.text[raw]
		if !ok {
			text = "\uFFFD"
			if f.decode != nil {
				text = f.decode.Decode(raw)
			}
			f.text[raw] = text
		}
		width, ok := f.widths[code]
		switch {
		case !f.known():
			width = f.guess(code)
		case !ok:
			width = f.other
		}
		list = append(list, glyph{text: text, width: width * f.unit / 1000, space: f.size == 1 && code == ' '})
	}
	return list
}

// helvetica has the widths of the characters from space to ~, divided by ten.
const helvetica = "\x1c\x1c\x24\x38\x38\x59\x43\x13\x21\x21\x27\x3a\x1c\x21\x1c\x1c888888888\x38\x1c\x1c\x3a\x3a\x3a\x38\x66" +
	"CCHHC=NH\x1c2C8SHNCNHC=HC^CC=\x1c\x1c\x1c\x2f8\x21" + "88288\x1c88\x16\x162\x16S8888\x212\x1c82H222\x21\x1a\x21\x3a"

// guess returns the width of a character of one of the fonts that every viewer has,
// which documents need not describe.
func (f *font) guess(code int) float64 {
	if i := code - ' '; !f.even && i >= 0 && i < len(helvetica) {
		return float64(helvetica[i]) * 10
	}
	return 600
}

var (
	codeBlock = lazy.Regexp(`(?s)beginbf(char|range)(.*?)endbf`)
	codeChar  = lazy.Regexp(`<([^<>]*)>\s*<([^<>]*)>`)
	codeRange = lazy.Regexp(`<([^<>]*)>\s*<([^<>]*)>\s*(?:<([^<>]*)>|\[([^\]]*)\])`)
	codeText  = lazy.Regexp(`<([^<>]*)>`)
)

// unicodes reads a ToUnicode map.
func unicodes(v pdf.Value) map[string]string {
	m := map[string]string{}
	if v.Kind() != pdf.Stream {
		return m
	}
	data, _ := io.ReadAll(io.LimitReader(v.Reader(), maxMap)) // the beginning of a damaged one is of use
	for _, block := range codeBlock().FindAllSubmatch(data, -1) {
		if string(block[1]) == "char" {
			for _, c := range codeChar().FindAllSubmatch(block[2], -1) {
				m[unhex(c[1])] = utf16Text(unhex(c[2]))
			}
			continue
		}
		for _, r := range codeRange().FindAllSubmatch(block[2], -1) {
			low, high := unhex(r[1]), unhex(r[2])
			if low == "" || len(low) != len(high) || len(m) > maxCodes {
				continue
			}
			list, start := codeText().FindAllSubmatch(r[4], -1), []rune(utf16Text(unhex(r[3])))
			end := len(low) - 1 // codes of a range differ in the last byte
			for i := range int(high[end]) - int(low[end]) + 1 {
				code := low[:end] + string([]byte{low[end] + byte(i)})
				switch {
				case i < len(list):
					m[code] = utf16Text(unhex(list[i][1]))
				case len(start) > 0:
					m[code] = string(start[:len(start)-1]) + string(start[len(start)-1]+rune(i))
				}
			}
		}
	}
	return m
}

// unhex decodes hexadecimal digits; the rest is white space.
func unhex(b []byte) string {
	digits := bytes.Join(bytes.Fields(b), nil)
	text := make([]byte, len(digits)/2)
	n, _ := hex.Decode(text, digits[:len(text)*2]) // up to what is damaged
	return string(text[:n])
}

func utf16Text(s string) string {
	if len(s) == 1 { // some write a byte
		return s
	}
	units := make([]uint16, len(s)/2)
	for i := range units {
		units[i] = uint16(s[2*i])<<8 | uint16(s[2*i+1])
	}
	return strings.ReplaceAll(string(utf16.Decode(units)), "\x00", "")
}
