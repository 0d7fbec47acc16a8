package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

var encodings = []struct {
	name  string
	codec encoding.Encoding
	text  string
}{
	{"UTF-16LE", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "\uFEFFname = größe\r\nother = 1\r\n"},
	{"UTF-16BE", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "name = größe\nother = 1\n"},
	{"Windows-1252", charmap.Windows1252, "// clé\r\nname = größe\r\nother = 1\r\n"},
	{"Shift_JIS", japanese.ShiftJIS, "# 設定ファイルを読み込みます\nname = größe\nother = 1\n"},
}

func encoded(t *testing.T, codec encoding.Encoding, text string) string {
	t.Helper()
	data, err := encoding.ReplaceUnsupported(codec.NewEncoder()).String(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestEncodingIsReadAndKept(t *testing.T) {
	for _, tt := range encodings {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if tt.name == "Shift_JIS" {
				text = strings.ReplaceAll(text, "größe", "大きさ")
			}
			value := strings.TrimSuffix(strings.SplitN(strings.SplitN(text, "name = ", 2)[1], "\n", 2)[0], "\r")
			where := env.NewMemory("", map[string]string{"f": encoded(t, tt.codec, text)})
			stored := func(want string) {
				t.Helper()
				if got := content(t, where, "f"); got != encoded(t, tt.codec, want) {
					t.Fatalf("the file is %q, want %q in %s", got, want, tt.name)
				}
			}
			checkHas(t, tools.ReadFile(), where, args{"file_path": "f"}, "", "name = "+value, "(The file is in "+tt.name+"; edits keep that.)")
			checkHas(t, tools.Grep(), where, args{"pattern": value + "$"}, "", "name = "+value, "(f is in "+tt.name+".)")
			checkHas(t, tools.EditFile(), where, args{"file_path": "f", "old_string": "name = " + value, "new_string": "name = " + value + value}, "", "1 replacement", "Kept the file's encoding, "+tt.name)
			text = strings.Replace(text, value, value+value, 1)
			stored(text)
			patch := "*** Begin Patch\n*** Update File: f\n@@\n-other = 1\n+other = " + value + "\n*** End Patch\n"
			checkHas(t, tools.ApplyPatch(), where, args{"patch": patch}, "", "kept the file's encoding, "+tt.name)
			text = strings.Replace(text, "other = 1", "other = "+value, 1)
			stored(text)
			checkHas(t, tools.WriteFile(), where, args{"file_path": "f", "content": "x = 1\ny = " + value + "\n"}, "", "Kept the file's encoding, "+tt.name)
			want := "x = 1\ny = " + value + "\n"
			if strings.Contains(text, "\r\n") {
				want = strings.ReplaceAll(want, "\n", "\r\n")
			}
			if strings.HasPrefix(text, "\uFEFF") {
				want = "\uFEFF" + want
			}
			stored(want)
		})
	}
}

// What the encoding does not have is refused, and nothing is changed.
func TestEncodingLacksCharacter(t *testing.T) {
	const before = "caf\xe9 au lait\n"
	where := env.NewMemory("", map[string]string{"f": before})
	for _, in := range []struct {
		tool core.Tool
		args args
	}{
		{tools.EditFile(), args{"file_path": "f", "old_string": "au", "new_string": "→"}},
		{tools.WriteFile(), args{"file_path": "f", "content": "→\n"}},
		{tools.ApplyPatch(), args{"patch": "*** Begin Patch\n*** Update File: f\n@@\n-café au lait\n+→\n*** End Patch\n"}},
	} {
		checkHas(t, in.tool, where, in.args, core.CodeValidation, "Windows-1252 has no character '→' (U+2192)", "convert the file to UTF-8")
		if got := content(t, where, "f"); got != before {
			t.Errorf("the file is %q", got)
		}
	}
}

// The diff for interfaces is readable.
func TestEncodingInDiff(t *testing.T) {
	where := env.NewMemory("", map[string]string{"f": "caf\xe9\n"})
	result, _ := run(t, tools.EditFile(), where, args{"file_path": "f", "old_string": "café", "new_string": "thé"})
	var diff string
	if err := json.Unmarshal(result.Meta["diff"], &diff); err != nil || !strings.Contains(diff, "-café\n+thé\n") {
		t.Errorf("diff %q, %v", diff, err)
	}
}

func TestEncodingOfOutput(t *testing.T) {
	where := posixShell(t)
	checkHas(t, tools.Shell(), where, args{"command": `printf 'caf\351 cr\350me\n'`}, "", "café crème\n", "[decoded from Windows-1252]")
	checkHas(t, tools.Shell(), where, args{"command": `printf '\377\376h\000i\000\n\000'`}, "", "hi\n", "[decoded from UTF-16LE]")
}
