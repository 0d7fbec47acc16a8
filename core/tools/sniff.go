package tools

import (
	"bytes"
	"unicode/utf8"
)

// sniffLen is how much of a file is read to detect its type.
const sniffLen = 8 << 10

// imageType returns the media type of an image that models can see, from its
// first bytes.
func imageType(head []byte) (string, bool) {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png", true
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg", true
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif", true
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp", true
	}
	return "", false
}

// binary reports whether a file that starts with head is not text, what it
// looks like, and how to proceed.
func binary(head []byte) (what, advice string, ok bool) {
	if bytes.IndexByte(head, 0) < 0 && invalidShare(head) <= 0.1 && !bytes.HasPrefix(head, []byte("%PDF-")) {
		return "", "", false
	}
	for _, k := range kinds {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.what, k.advice, true
		}
	}
	if bytes.IndexByte(head, 0) < 0 {
		return "text that is not UTF-8, or binary data", adviceIconv, true
	}
	return "binary data", adviceDump, true
}

const (
	adviceIconv   = "Convert it with shell, for example with iconv."
	adviceDump    = "Look at it with shell, for example with file, strings or xxd."
	adviceUnpack  = "List or unpack it with shell."
	adviceProgram = "Look at it with shell, for example with file or strings."
)

var kinds = []struct{ magic, what, advice string }{
	{"%PDF-", "a PDF document", "Extract its text with shell, for example with pdftotext."},
	{"\xff\xfe", "UTF-16 text", adviceIconv},
	{"\xfe\xff", "UTF-16 text", adviceIconv},
	{"PK\x03\x04", "a ZIP archive or an office document", adviceUnpack},
	{"\x1f\x8b", "gzip-compressed data", adviceUnpack},
	{"BZh", "bzip2-compressed data", adviceUnpack},
	{"\xfd7zXZ\x00", "xz-compressed data", adviceUnpack},
	{"\x28\xb5\x2f\xfd", "zstd-compressed data", adviceUnpack},
	{"\x7fELF", "an ELF program or library", adviceProgram},
	{"MZ", "a Windows program or library", adviceProgram},
	{"\xcf\xfa\xed\xfe", "a Mach-O program or library", adviceProgram},
	{"\xca\xfe\xba\xbe", "a Mach-O program or a Java class", adviceProgram},
	{"\x00asm", "a WebAssembly module", adviceProgram},
	{"SQLite format 3\x00", "an SQLite database", "Query it with shell, for example with sqlite3."},
}

// invalidShare is the share of bytes that are not valid UTF-8. A rune cut off
// at the end does not count.
func invalidShare(head []byte) float64 {
	if utf8.Valid(head) {
		return 0
	}
	invalid := 0
	for rest := head; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			if len(rest) < utf8.UTFMax && !utf8.FullRune(rest) {
				break
			}
			invalid++
		}
		rest = rest[size:]
	}
	return float64(invalid) / float64(len(head))
}
