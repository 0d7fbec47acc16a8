package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestValidUTF8 tries all beginnings of a character, at all places of a word of
// eight bytes, with what may follow.
func TestValidUTF8(t *testing.T) {
	edges := []byte{0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEE, 0xF0, 0xF4, 0xF5, 0xFF}
	for first := range 256 {
		for _, second := range edges {
			for _, third := range edges {
				for _, fourth := range edges {
					text := []byte{'a', byte(first), second, third, fourth, 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'}
					for _, try := range [][]byte{text[1:4], text[1:5], text[:9], text} {
						if got, want := validUTF8(try), utf8.Valid(try); got != want {
							t.Fatalf("% x is valid: %v, want %v", try, got, want)
						}
					}
				}
			}
		}
	}
}

func FuzzValidUTF8(f *testing.F) {
	f.Add([]byte("plain text, and Привет, 世界 😀"))
	f.Add([]byte("\xed\xa0\x80 surrogate \xf4\x90\x80\x80"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, want := validUTF8(text), utf8.Valid(text); got != want {
			t.Errorf("%q is valid: %v, want %v", text, got, want)
		}
	})
}

func BenchmarkValidUTF8(b *testing.B) {
	for name, text := range map[string]string{"ascii": "plain text in a file ", "russian": "функция вернуть значение ", "chinese": "读取配置文件返回错误"} {
		data := []byte(strings.Repeat(text, 4000))
		for impl, valid := range map[string]func([]byte) bool{"ours": validUTF8, "utf8": utf8.Valid} {
			b.Run(name+"/"+impl, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if !valid(data) {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}
