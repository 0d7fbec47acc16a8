package posix

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestControl splits a witness's stderr at every position.
func TestControl(t *testing.T) {
	const all = "noise\x00tok started 1 2\nerr\x00or\x00tokx\x00to\x00tok ended 3 4\nlate"
	for cut := range len(all) {
		var out bytes.Buffer
		c := newControl(&out, "tok")
		for _, part := range []string{all[:cut], all[cut:]} {
			if n, err := c.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
		}
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
		status, left, ok := c.status()
		if out.String() != "err\x00or\x00tokx\x00to" || c.text() != "noise" || status != 3 || left != 4 || !ok {
			t.Errorf("split at %d: %q, %q, %d, %d, %t", cut, &out, c.text(), status, left, ok)
		}
	}
}

func FuzzControl(f *testing.F) {
	f.Add("\x00tok started 1 2\nx\x00tok ended 0 0\n", 5)
	f.Add("\x00tok ended\n\x00tok started\n\x00tok started a b\n\x00tok ended x y\n", 9)
	f.Fuzz(func(t *testing.T, all string, cut int) {
		if cut < 0 || cut > len(all) {
			return
		}
		var whole, parts bytes.Buffer
		one, two := newControl(&whole, "tok"), newControl(&parts, "tok")
		_, _ = one.Write([]byte(all))
		_, _ = two.Write([]byte(all[:cut]))
		_, _ = two.Write([]byte(all[cut:]))
		_, _ = one.flush(), two.flush()
		if whole.String() != parts.String() || strings.Join(one.end, " ") != strings.Join(two.end, " ") {
			t.Errorf("a split at %d turns %q into %q", cut, &parts, &whole)
		}
	})
}

func TestParseList(t *testing.T) {
	const meta = "81a4 5 1 100 2024-05-06 07:08:09.123456789 +0000"
	entries, err := parseList([]byte("./a\x00./gone\x00./b\nc\x00\x00" + meta + " ./a\n" + meta + " ./b\nc\n\x00./d\x00\x00" + meta + " ./d\n\x00"))
	if err != nil || len(entries) != 3 || entries[1].Name() != "b\nc" {
		t.Fatalf("parseList = %v, %v", entries, err)
	}
	info, err := entries[2].Info()
	if err != nil || info.Name() != "d" || info.Size() != 5 || info.Mode() != 0o644 || info.ModTime().UTC().Nanosecond() != 123456789 {
		t.Errorf("info = %v, %v", info, err)
	}
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte("./a\x00\x0081a4 5 1 100 x ./a\n\x00"))
	f.Add([]byte("./a\x00./b\x00\x00 ./b\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseList(data)
		if err != nil {
			return
		}
		for _, entry := range entries {
			if _, err := entry.Info(); err != nil {
				t.Errorf("%v has no info: %v", entry, err)
			}
		}
	})
}

func TestFailure(t *testing.T) {
	for message, want := range map[string]error{
		"stat: cannot statx 'x': No such file or directory":      fs.ErrNotExist,
		"sh: 1: cannot open /x: No such file":                    fs.ErrNotExist,
		"warning\nmv: cannot move 'a' to 'b': Permission denied": fs.ErrPermission,
		"File exists": fs.ErrExist,
		"rm: cannot remove 'x': Operation not permitted": fs.ErrPermission,
		"The path changed after it was checked":          fs.ErrPermission,
	} {
		if err := failure(message); !errors.Is(err, want) {
			t.Errorf("%q became %v", message, err)
		}
	}
}
