package snapshot_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core/snapshot"
)

func export(t *testing.T, w *snapshot.Workspace, ids, without []string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := w.Export(&b, ids, without); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestExport: a workspace elsewhere becomes as it was here, by a pack with all and one with
// what changed, which has nothing twice.
func TestExport(t *testing.T) {
	root := t.TempDir()
	big := strings.Repeat("0123456789abcdef", 1<<14)
	write(t, root, "a: "+big, "sub/b: 1\n", "run.sh: #!/bin/sh\n")
	if err := os.Chmod(filepath.Join(root, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	from, _ := open(t, root)
	one := take(t, from)
	write(t, root, "sub/b: 2\n", "sub/c: 3\n")
	two := take(t, from)
	first, second := export(t, from, []string{one.ID}, nil), export(t, from, []string{two.ID}, []string{one.ID})
	if len(second) > 1<<10 {
		t.Errorf("the second pack has %d bytes", len(second))
	}
	other := t.TempDir()
	to, _ := open(t, other)
	for _, p := range [][]byte{first, second, first} {
		if err := to.Import(bytes.NewReader(p)); err != nil {
			t.Fatal(err)
		}
	}
	restore(t, to, take(t, to), two)
	if got, want := tree(t, other), tree(t, root); got != want {
		t.Errorf("restored:\n%s\nwas:\n%s", got, want)
	}
}

// object is an object of a pack.
type object struct {
	kind byte
	data []byte
	size int // that the pack says; 0 = that of data
}

// name is the hash of an object.
func (o object) name() []byte {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", [...]string{1: "commit", 2: "tree", 3: "blob"}[o.kind], len(o.data), o.data))
	return sum[:]
}

func packOf(objects ...object) []byte {
	b := bytes.NewBuffer(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects))))
	for _, o := range objects {
		size := max(o.size, len(o.data))
		first := o.kind<<4 | byte(size&15)
		if size >>= 4; size > 0 {
			first |= 0x80
		}
		b.WriteByte(first)
		b.Write(bytes.TrimSuffix(binary.AppendUvarint(nil, uint64(size)), []byte{0}))
		z := zlib.NewWriter(b)
		_, _ = z.Write(o.data)
		_ = z.Close()
	}
	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...)
}

// TestImportDamaged: of a pack that is damaged nothing is imported, wherever the damage is.
func TestImportDamaged(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a: 1\n", "sub/b: "+strings.Repeat("text ", 1000))
	from, _ := open(t, root)
	good := export(t, from, []string{take(t, from).ID}, nil)
	bad := map[string][]byte{
		"empty": nil, "no pack": []byte("hello, world"), "more behind it": append(bytes.Clone(good), "more"...),
		"more objects than it says": append(append(bytes.Clone(good[:8]), 0, 0, 0, 1), good[12:]...),
		"a huge object":             packOf(object{kind: 3, data: []byte("x"), size: 1 << 40}),
		"an object that is longer":  packOf(object{kind: 3, data: []byte("x"), size: 2}),
		"an unknown kind":           packOf(object{kind: 7, data: []byte("x")}),
	}
	for i := 0; i < len(good); i += 7 {
		bad[fmt.Sprintf("cut at %d", i)] = good[:i]
		flipped := bytes.Clone(good)
		flipped[i] ^= 0x40
		bad[fmt.Sprintf("changed at %d", i)] = flipped
	}
	to, store := open(t, t.TempDir())
	take(t, to)
	before := exactly(t, store)
	for what, p := range bad {
		if err := to.Import(bytes.NewReader(p)); err == nil || !strings.Contains(err.Error(), store) {
			t.Errorf("%s: %v", what, err)
		}
		if got := exactly(t, store); got != before {
			t.Fatalf("%s: the store changed:\n%s\nwas:\n%s", what, got, before)
		}
	}
	if err := to.Import(bytes.NewReader(good)); err != nil {
		t.Errorf("the pack that is not damaged: %v", err)
	}
}

// exactly lists the files below a directory.
func exactly(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"objects", "objects/pack"} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			fmt.Fprintln(&b, name, e.Name())
		}
	}
	return b.String()
}

// TestImportHostile: a snapshot that somebody made up is refused, or restored within the
// workspace.
func TestImportHostile(t *testing.T) {
	outside := t.TempDir()
	blob := object{kind: 3, data: []byte("evil")}
	line := func(mode, name string, o object) []byte { return fmt.Appendf(nil, "%s %s\x00%s", mode, name, o.name()) }
	linked := object{kind: 3, data: []byte(outside)}
	inner := object{kind: 2, data: line("100644", "x", blob)}
	for what, content := range map[string][]byte{
		"a path upwards":      line("100644", "../evil", blob),
		"the directory above": line("40000", "..", inner),
		"an absolute path":    line("100644", filepath.Join(outside, "evil"), blob),
		"a missing file":      line("100644", "x", object{kind: 3, data: []byte("nowhere")}),
		"a missing directory": line("40000", "x", object{kind: 2, data: []byte("nowhere")}),
		"a file as directory": line("40000", "x", blob),
		"a directory as file": line("100644", "x", inner),
		"no tree":             []byte("hello"),
		"a link to elsewhere": append(line("120000", "l", linked), line("40000", "l", inner)...),
	} {
		root := t.TempDir()
		write(t, root, "mine: 1\n")
		w, _ := open(t, root)
		now := take(t, w)
		top := object{kind: 2, data: content}
		commit := object{kind: 1, data: fmt.Appendf(nil, "tree %x\nauthor a\n\nsnapshot\n\n{}", top.name())}
		if err := w.Import(bytes.NewReader(packOf(blob, linked, inner, top, commit))); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		plan, err := w.Plan(t.Context(), now.ID, hex.EncodeToString(commit.name()), nil)
		if err == nil {
			_, err = w.Apply(t.Context(), plan)
		}
		if err == nil && what != "a link to elsewhere" {
			t.Errorf("%s is restored", what)
		}
		if text, mine := os.ReadFile(filepath.Join(root, "mine")); err != nil && (mine != nil || string(text) != "1\n") {
			t.Errorf("%s: the file that was there is %q, %v", what, text, mine)
		}
		if list, err := os.ReadDir(outside); err != nil || len(list) > 0 {
			t.Fatalf("%s: outside are %v, %v", what, list, err)
		}
		if _, err := os.Lstat(filepath.Join(root, "..", "evil")); err == nil {
			t.Fatalf("%s: it is outside", what)
		}
	}
}
