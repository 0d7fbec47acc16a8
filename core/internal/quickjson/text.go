package quickjson

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// extent returns the length of the object, the array or the string with which a text
// begins, if it is valid; 0 if it begins with none.
func extent(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			n := closing(text[i+1:])
			if n < 0 {
				return 0
			}
			i += n + 1
		}
		if depth <= 0 {
			if c := text[0]; c == '{' || c == '[' || c == '"' {
				return i + 1
			}
			return 0
		}
	}
	return 0
}

// closing returns the index of the quote that ends a string, or -1.
func closing(s []byte) int {
	for at := 0; ; at++ {
		n := bytes.IndexByte(s[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		escapes := 0
		for escapes < n && s[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// escaped reads the rest of a string with escapes, or with more than ASCII.
func (r *Reader) escaped() string {
	end := closing(r.rest)
	if r.failed || end < 0 {
		r.failed = true
		return ""
	}
	in := r.rest[:end]
	r.rest = r.rest[end+1:]
	var out strings.Builder
	out.Grow(end - bytes.Count(in, []byte{'\\'})/2)
	for {
		n := plain(in)
		out.Write(in[:n])
		if in = in[n:]; len(in) == 0 {
			return out.String()
		}
		c, size := special(in)
		if size == 0 {
			r.failed = true
			return ""
		}
		out.WriteRune(c)
		in = in[size:]
	}
}

// special reads an escape, or a character that is not printable ASCII. The size is 0 for
// what is invalid, and for halves of characters.
func special(in []byte) (c rune, size int) {
	switch {
	case in[0] >= utf8.RuneSelf:
		if c, size = utf8.DecodeRune(in); size == 1 {
			return 0, 0
		}
		return c, size
	case in[0] == 0x7f:
		return 0x7f, 1
	case in[0] != '\\' || len(in) < 2:
		return 0, 0
	case in[1] == 'u':
		return numbered(in[2:])
	}
	if i := strings.IndexByte(`"\/bfnrt`, in[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	return 0, 0
}

// numbered reads the digits of an escape.
func numbered(digits []byte) (c rune, size int) {
	if len(digits) < 4 {
		return 0, 0
	}
	for _, digit := range digits[:4] {
		i := strings.IndexByte("0123456789abcdef", digit)
		if i < 0 {
			return 0, 0
		}
		c = c<<4 | rune(i)
	}
	if !utf8.ValidRune(c) {
		return 0, 0
	}
	return c, 6
}

// plain returns the length of the beginning that is printable ASCII without quotes and
// backslashes. It looks at eight bytes at once.
func plain(s []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := binary.LittleEndian.Uint64(s[i:])
		quote, escape := x^ones*'"', x^ones*'\\' // 0 where it is
		if (x|(x-ones*' ')|(x+ones)|(quote-ones)|(escape-ones))&highs != 0 {
			break
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\' {
		i++
	}
	return i
}
