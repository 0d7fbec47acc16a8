package skills

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fill sets all fields of a value to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x" + v.Type().Name())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(2)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// TestCoder: no field of a manifest is forgotten.
func TestCoder(t *testing.T) {
	t.Parallel()
	e := cacheEntry{path: "p"}
	fill(reflect.ValueOf(&e.skill.Manifest).Elem())
	fill(reflect.ValueOf(&e.skill.Diagnostics).Elem())
	fill(reflect.ValueOf(&e.state).Elem())
	e.skill.Hash = "h"
	e.skill.Manifest.Body, e.skill.text = "", cachedText{from: 3, to: 5} // it is in another file
	w := &coder{writing: true}
	w.entry(&e)
	var got cacheEntry
	r := &coder{in: string(w.out)}
	if r.entry(&got); r.failed || r.in != "" || !reflect.DeepEqual(got, e) {
		t.Errorf("read %+v, want %+v", got, e)
	}
}

func FuzzCoder(f *testing.F) {
	w := &coder{writing: true}
	w.entry(&cacheEntry{path: "p", skill: Skill{Manifest: Manifest{Name: "n", Metadata: map[string]string{"a": "b"}}, Diagnostics: []Diagnostic{{Message: "m"}}}})
	f.Add(string(w.out))
	f.Fuzz(func(_ *testing.T, in string) {
		for c := (&coder{in: in}); len(c.in) > 0 && !c.failed; {
			var e cacheEntry
			c.entry(&e)
		}
	})
}

// TestCacheEntries: an entry holds until its file changes, and none is made of a
// file that has just changed; of many cache files the oldest are removed.
func TestCacheEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := Place{Scope: ScopeUser, Dir: dir}
	file := filepath.Join(dir, "a", "SKILL.md")
	put := func(body string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("---\ndescription: d\n---\n"+body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("one")
	d := &diskCache{filepath.Join(dir, ".cache")}
	scan := func() (list []found, entries []cached) {
		list, _ = walk(place, map[string]bool{})
		for i := range list {
			s, _ := list[i].read()
			entries = append(entries, cached{found: &list[i], skill: s})
		}
		return list, entries
	}
	list, entries := scan()
	if d.store(dir, entries, time.Now().Add(-time.Hour)); len(d.load(dir, list)) != 0 {
		t.Error("an entry of a file that changed just now")
	}
	d.store(dir, entries, time.Now().Add(time.Hour))
	if known := d.load(dir, list); len(known) != 1 || known[file].Body() != "one" || known[file].State != StateOn {
		t.Fatalf("loaded %+v", known)
	}
	put("longer than one")
	if list, _ := scan(); len(d.load(dir, list)) != 0 {
		t.Error("an entry of a changed file")
	}
	for i := range 2 * maxCacheFiles {
		d.write(key("x", strings.Repeat("x", i)), []byte("1234data"))
	}
	if left, err := os.ReadDir(d.dir); err != nil || len(left) != maxCacheFiles {
		t.Errorf("%d cache files, %v", len(left), err)
	}
}

// TestWalkLimit: the upper folders are searched first, and what is left out is said.
func TestWalkLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/deep/er", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := &walker{place: Place{Dir: dir}, files: os.DirFS(dir), real: dir, seen: map[string]bool{}, most: 3}
	w.scan()
	if len(w.found) != 1 || w.found[0].rel != "b" {
		t.Errorf("found %+v", w.found)
	}
	if len(w.problems) != 1 || !w.problems[0].Incomplete || !strings.Contains(w.problems[0].Error(), "more than 3 folders: 1 of them and what is below are left out, such as "+filepath.Join(dir, "a", "deep")) {
		t.Errorf("problems %v", w.problems)
	}
}
