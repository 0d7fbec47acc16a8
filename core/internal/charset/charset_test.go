package charset_test

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/seed-009c0928/agent/core/internal/charset"
)

const (
	french  = "// Crée le fichier si nécessaire, à l'aide d'une clé.\nname = \"Événement\"\n"
	german  = "Größe: 5 €\nStraße – „Müller“\n"
	nihongo = "設定ファイルを読み込みます。\nエラーが発生しました。\nprint(\"こんにちは、世界\")\n"
	chinese = "// 读取配置文件，如果文件不存在则返回错误。\nfmt.Println(\"你好，世界\")\n// 这是一个简单的例子，用来说明程序如何工作。\n"
	taiwan  = "// 讀取設定檔，如果檔案不存在則傳回錯誤。這是一個簡單的例子，用來說明程式如何運作。\n我們的資料都在這裡，請不要刪除。\n"
	korean  = "# 설정 파일을 읽습니다. 파일이 없으면 오류를 반환합니다.\nprint(\"안녕하세요 세계\")\n"
	russian = "# Читает файл настроек. Если файла нет, возвращает ошибку.\nprint(\"Привет, мир\")\n"
	greek   = "# Διαβάζει το αρχείο ρυθμίσεων και επιστρέφει σφάλμα αν δεν υπάρχει.\n"
	czech   = "# Načte konfigurační soubor. Pokud soubor neexistuje, vrátí chybu.\n# Příliš žluťoučký kůň úpěl ďábelské ódy, řekl čeledín a šel dál přes řeku.\n"
)

func codec(t *testing.T, name string) encoding.Encoding {
	t.Helper()
	switch name {
	case "UTF-16LE":
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "UTF-16BE":
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case "UTF-32LE":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	}
	c, err := htmlindex.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct{ want, text string }{
		{"UTF-8", ""},
		{"UTF-8", "plain\n"},
		{"UTF-8", "\uFEFF" + french},
		{"UTF-8", nihongo},
		{"UTF-16LE", "\uFEFF" + french},
		{"UTF-16BE", "\uFEFF" + french},
		{"UTF-16LE", "\uFEFF" + nihongo},
		{"UTF-16LE", "\uFEFF"},
		{"UTF-16LE", "Windows Registry\r\n[key]\r\n"},
		{"UTF-16BE", french},
		{"UTF-16LE", russian},
		{"UTF-16BE", nihongo},
		{"UTF-32LE", "\uFEFF" + french},
		{"Windows-1252", french},
		{"Windows-1252", german},
		{"Windows-1252", "café"},
		{"Windows-1252", "é"},
		{"Windows-1252", strings.Repeat("int main() { return 0; }\n", 5000) + "// naïve\n"},
		{"Shift_JIS", nihongo},
		{"Shift_JIS", "こんにちは\n"},
		{"EUC-JP", nihongo},
		{"EUC-JP", "こんにちは\n"},
		{"GB18030", chinese},
		{"GB18030", "你好，世界\n"},
		{"Big5", taiwan},
		{"EUC-KR", korean},
		{"EUC-KR", "안녕하세요\n"},
		{"windows-1251", russian},
		{"KOI8-R", russian},
		{"windows-1253", greek},
	} {
		data := []byte(tt.text)
		if tt.want != "UTF-8" {
			var err error
			if data, err = codec(t, tt.want).NewEncoder().Bytes(data); err != nil {
				t.Fatalf("%s: %v", tt.want, err)
			}
		}
		e, ok := charset.Detect(data)
		if text := string(e.Decode(data)); !ok || text != tt.text {
			t.Errorf("%s %.40q: detected %s, %t: %.60q", tt.want, tt.text, e, ok, text)
			continue
		}
		if !strings.EqualFold(e.String(), tt.want) && text(tt.want) {
			t.Errorf("%.40q: detected %s, want %s", tt.text, e, tt.want)
		}
		if !e.Lossless(data) {
			t.Errorf("%s: %.40q is not lossless", e, tt.text)
		}
	}
}

// text reports whether the name must be exact: ISO-8859-7 is windows-1253 for
// the letters.
func text(name string) bool { return name != "windows-1253" }

func TestDetectCzech(t *testing.T) {
	data, err := charmap.Windows1250.NewEncoder().Bytes([]byte(strings.Repeat(czech, 3)))
	if err != nil {
		t.Fatal(err)
	}
	e, ok := charset.Detect(data)
	if !ok || !e.Lossless(data) {
		t.Errorf("detected %s, %t", e, ok)
	}
}

func TestDetectBinary(t *testing.T) {
	noise := []byte{}
	for i := range byte(64) {
		sum := sha256.Sum256([]byte{i})
		noise = append(noise, sum[:]...)
	}
	for name, data := range map[string][]byte{
		"elf":           []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x3e\x00"),
		"noise":         noise,
		"without zeros": bytes.ReplaceAll(noise, []byte{0}, []byte{1}),
		"zeros":         make([]byte, 100),
		"small numbers": bytes.Repeat([]byte{1, 0, 2, 0, 3, 0, 4, 0}, 50),
		"text and zero": []byte("some text\x00more text"),
		"unassigned":    []byte("a\nb\x00\x7f\n"), // U+0A61 as UTF-16
		"mark and zero": append([]byte("\xff\xfe"), noise...),
	} {
		if e, ok := charset.Detect(data); ok {
			t.Errorf("%s: detected %s, want binary", name, e)
		}
	}
}

func TestBrokenUTF8StaysUTF8(t *testing.T) {
	data := []byte(french + "broken: \xe9\n")
	if e, ok := charset.Detect(data); !ok || !e.UTF8() {
		t.Errorf("detected %s, %t", e, ok)
	}
}

func TestEncodeNamesTheCharacter(t *testing.T) {
	e, _ := charset.Detect([]byte("caf\xe9"))
	if _, err := e.Encode([]byte("café → bar")); err == nil || !strings.Contains(err.Error(), `Windows-1252 has no character '→' (U+2192)`) {
		t.Errorf("error %v", err)
	}
	if _, err := e.Encode([]byte("a\xff")); err == nil {
		t.Error("invalid UTF-8 was encoded")
	}
}

func FuzzDetect(f *testing.F) {
	for _, text := range []string{french, nihongo, chinese, russian} {
		sjis, _ := japanese.ShiftJIS.NewEncoder().Bytes([]byte(text))
		f.Add(sjis)
		f.Add([]byte(text))
	}
	f.Add([]byte("\xff\xfea\x00b\x00"))
	f.Add([]byte("a\x00b\x00\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, ok := charset.Detect(data)
		if !ok {
			return
		}
		text := e.Decode(data)
		if !e.UTF8() && !utf8.Valid(text) {
			t.Fatalf("%s: decoded to invalid UTF-8", e)
		}
		if e.Lossless(data) {
			if back, err := e.Encode(text); err != nil || !bytes.Equal(back, data) {
				t.Fatalf("%s: %q became %q (%v)", e, data, back, err)
			}
		}
	})
}
