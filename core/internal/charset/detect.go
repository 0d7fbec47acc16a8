package charset

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// sample is how much of a text statistics look at. It is a multiple of four.
const sample = 64 << 10

// binaryHead is where a zero byte means binary data, as in git. Later ones are
// tolerated.
const binaryHead = 8 << 10

// Detect returns the encoding of a text, from as much of it as there is at hand.
// It reports false for binary data.
func Detect(data []byte) (Encoding, bool) {
	head := data[:min(len(data), sample)]
	if e, ok := marked(data); ok {
		return e, plausible(e, head)
	}
	if bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0 {
		return unmarked(head)
	}
	if utf8.Valid(data) {
		return Encoding{}, true
	}
	switch bad, good := runes(data); {
	case bad <= good: // UTF-8 with some broken bytes
		return Encoding{}, true
	case controls(data) > 0:
		return Encoding{}, false
	}
	return legacy(highLines(data))
}

// marked returns the encoding that a byte order mark tells.
func marked(data []byte) (Encoding, bool) {
	for _, m := range []struct {
		mark string
		is   Encoding
	}{
		{"\xff\xfe\x00\x00", Encoding{"UTF-32LE", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}},
		{"\x00\x00\xfe\xff", Encoding{"UTF-32BE", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)}},
		{"\xff\xfe", utf16(false)},
		{"\xfe\xff", utf16(true)},
	} {
		if bytes.HasPrefix(data, []byte(m.mark)) {
			return m.is, true
		}
	}
	return Encoding{}, false
}

func utf16(big bool) Encoding {
	if big {
		return Encoding{"UTF-16BE", utf.UTF16(utf.BigEndian, utf.IgnoreBOM)}
	}
	return Encoding{"UTF-16LE", utf.UTF16(utf.LittleEndian, utf.IgnoreBOM)}
}

// unmarked tells UTF-16 without a byte order mark from binary data: the zero
// bytes of its line breaks, spaces and Latin letters are all on one side. A few
// zero bytes in ASCII are not that.
func unmarked(head []byte) (Encoding, bool) {
	var zeros [2]int
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	total := zeros[0] + zeros[1]
	if min(zeros[0], zeros[1])*50 > total || total*4 < len(head) && controls(head) == total && isASCII(head) {
		return Encoding{}, false
	}
	e := utf16(zeros[0] > zeros[1])
	return e, len(head) >= 4 && plausible(e, head)
}

func isASCII(data []byte) bool {
	return bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// plausible reports whether data decodes to text.
func plausible(e Encoding, head []byte) bool {
	head = head[:len(head)&^1]
	text := e.Decode(head)
	total, odd := 0, 0
	for _, r := range string(text) {
		total++
		if r == utf8.RuneError || r < ' ' && control(byte(r)) || !unicode.In(r, assigned...) {
			odd++
		}
	}
	return odd*50 <= total // the last rune may be cut off
}

// assigned are the characters of texts. It does not name unicode.C, which has the
// unassigned ones, too, since Go 1.25.
var assigned = []*unicode.RangeTable{unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co}

// runes counts the invalid bytes and the characters above ASCII.
func runes(data []byte) (bad, good int) {
	for at := 0; at < len(data); {
		if data[at] < utf8.RuneSelf {
			at++
			continue
		}
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r != utf8.RuneError || size > 1:
			good++
		case good == 0 || utf8.FullRune(data[at:]): // else it may be cut off
			bad++
		}
		at += size
	}
	return bad, good
}

// controls counts the control characters that texts do not have.
func controls(data []byte) int {
	n := 0
	for _, b := range data {
		if control(b) {
			n++
		}
	}
	return n
}

func control(b byte) bool {
	return b < ' ' && (b < '\b' || b > '\r') && b != 0x1b && b != 0x1a || b == 0x7f
}

// highLines returns the beginning of data from the first line that is not ASCII:
// statistics on ASCII say nothing.
func highLines(data []byte) []byte {
	first := bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })
	data = data[bytes.LastIndexByte(data[:first], '\n')+1:]
	return data[:min(len(data), sample)]
}

// legacy returns the encoding of a text that is not Unicode. Statistics decide
// between those in which it is valid; the fewer characters there are to count,
// the more the form of the bytes matters.
func legacy(head []byte) (Encoding, bool) {
	form := newForm(head)
	var many, single []Encoding // with several bytes for a character, and with one
	guesses, err := chardet.NewTextDetector().DetectAll(head)
	if err != nil {
		guesses = nil // it knows none
	}
	for _, g := range guesses {
		codec, err := htmlindex.Get(g.Charset)
		if err != nil {
			continue // not one that files have, such as EBCDIC
		}
		e := Encoding{g.Charset, codec}
		switch g.Charset {
		case "Shift_JIS", "EUC-JP", "EUC-KR", "Big5", "GB18030":
			if g.Confidence > 10 && form.high > form.letters/10 {
				many = append(many, e)
			}
		default:
			if form.allows(e, g.Confidence) {
				single = append(single, e)
			}
		}
	}
	for _, e := range slices.Concat(many, form.short(), single) {
		if clean(e, head) {
			return e, true
		}
	}
	western := Encoding{"Windows-1252", charmap.Windows1252}
	return western, form.undefined == 0 && form.high*2 <= len(head)+4
}

// clean reports whether data is valid in an encoding. A character may be cut off.
func clean(e Encoding, head []byte) bool {
	text := bytes.TrimSuffix(e.Decode(head), []byte("\uFFFD"))
	return !bytes.ContainsRune(text, utf8.RuneError) && !bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x80 && r < 0xa0 })
}

// form is what the bytes of a text look like.
type form struct {
	high      int // bytes above ASCII
	letters   int // ASCII letters
	runs      int // of bytes above ASCII
	odd       int // runs of an odd length
	sjisKana  int // lead bytes of Japanese kana, in Shift JIS …
	eucKana   int // … and in EUC-JP
	hangul    int // lead bytes of the rows with Korean syllables
	hanzi     int // the same for Chinese characters and signs
	pairs     int
	undefined int // bytes that Windows-1252 does not have
}

func newForm(data []byte) form {
	var f form
	for i := 0; i < len(data); {
		c := data[i]
		if c < utf8.RuneSelf {
			if c|0x20 >= 'a' && c|0x20 <= 'z' {
				f.letters++
			}
			i++
			continue
		}
		start := i
		for ; i < len(data) && data[i] >= utf8.RuneSelf; i++ {
			switch data[i] {
			case 0x81, 0x8d, 0x8f, 0x90, 0x9d:
				f.undefined++
			}
		}
		f.runs++
		f.high += i - start
		f.odd += (i - start) % 2
		f.lead(data[start:i])
	}
	for i := 0; i+1 < len(data); i++ { // the second byte may be ASCII
		if c, next := data[i], data[i+1]; c == 0x82 && next >= 0x9f && next <= 0xf1 || c == 0x83 && next >= 0x40 && next <= 0x96 {
			f.sjisKana++
			i++
		}
	}
	return f
}

// lead counts the pairs in a run of high bytes by their first one.
func (f *form) lead(run []byte) {
	for i := 0; i+1 < len(run); i += 2 {
		f.pairs++
		switch c := run[i]; {
		case c == 0xa4 || c == 0xa5:
			f.eucKana++
		case c >= 0xb0 && c <= 0xc8:
			f.hangul++
			f.hanzi++
		case c >= 0xa1 && c <= 0xa3 || c >= 0xb0 && c <= 0xd7: // signs, and the more frequent ones
			f.hanzi++
		}
	}
}

// allows reports whether the statistics suffice for an encoding with one byte for
// a character other than Windows-1252.
func (f form) allows(e Encoding, confidence int) bool {
	switch e.name {
	case "windows-1251", "windows-1253", "windows-1255", "windows-1256", "KOI8-R", "ISO-8859-5", "ISO-8859-6", "ISO-8859-7", "ISO-8859-8":
		return f.high >= 2*f.runs // whole words
	case "ISO-8859-1", "windows-1252":
		return false
	}
	return confidence >= 40 && f.high >= 20 && f.high <= f.letters // such as Czech or Turkish
}

// short returns the encodings with two bytes for a character that a text too
// short for statistics looks like.
func (f form) short() []Encoding {
	var list []Encoding
	if f.sjisKana*3 >= f.high/2 && f.sjisKana > 1 {
		list = append(list, Encoding{"Shift_JIS", japanese.ShiftJIS})
	}
	if f.odd > 0 || f.pairs < 2 || f.high == f.runs {
		return list
	}
	switch {
	case f.eucKana*3 >= f.pairs:
		list = append(list, Encoding{"EUC-JP", japanese.EUCJP})
	case f.hangul == f.pairs && f.pairs > 3:
		list = append(list, Encoding{"EUC-KR", korean.EUCKR})
	}
	if f.hanzi == f.pairs {
		list = append(list, Encoding{"GB18030", simplifiedchinese.GB18030})
	}
	return list
}
