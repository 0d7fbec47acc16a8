package tools

import (
	"bytes"

	"github.com/seed-009c0928/agent/core/internal/charset"
)

// sniffLen is the size of a file's beginning that shows whether it is binary.
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

// sniff returns the encoding of a text file. If ok is false it is something else:
// what it looks like, and how to proceed.
func sniff(data []byte) (what, advice string, e charset.Encoding, ok bool) {
	e, ok = charset.Detect(data)
	if ok && !bytes.HasPrefix(data, []byte("%PDF-")) {
		return "", "", e, true
	}
	for _, k := range kinds {
		if bytes.HasPrefix(data, []byte(k.magic)) {
			return k.what, k.advice, e, false
		}
	}
	return "binary data", adviceDump, e, false
}

const (
	adviceDump    = "Look at it with shell, for example with file, strings or xxd."
	adviceUnpack  = "List or unpack it with shell."
	adviceProgram = "Look at it with shell, for example with file or strings."
)

var kinds = []struct{ magic, what, advice string }{
	{"%PDF-", "a PDF document", "Extract its text with shell, for example with pdftotext."},
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
