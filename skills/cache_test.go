package skills_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/skills"
)

// manySkills writes n skills of about 4 kB.
func manySkills(tb testing.TB, dir string, n int) {
	tb.Helper()
	random := rand.New(rand.NewPCG(uint64(n), 1))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%c%s%s ", 'a'+rune(random.IntN(26)), []string{"an", "er", "ol", "it", "um"}[random.IntN(5)], []string{"der", "kal", "ben", "ving", "tion", "sor"}[random.IntN(6)])
		}
		return b.String()
	}
	files := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("skill-%05d", i)
		files["skills/"+name+"/SKILL.md"] = skillText(name, words(20)+"Use when "+words(5), "", strings.Repeat(words(12)+"\n", 40))
	}
	write(tb, dir, files)
}

func cachedLibrary(dir string) *skills.Library {
	return skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Home: dir}), Cache: filepath.Join(dir, "cache")})
}

// start does what a session does before its first request.
func start(tb testing.TB, lib *skills.Library) string {
	tb.Helper()
	crumb := lib.Breadcrumb()
	blocks, err := skills.NewSource(skills.SourceOptions{Library: lib}).Context(tb.Context(), core.ContextRequest{Input: core.TextInput("Fix the failing test of the parser, der kal").Content})
	if err != nil {
		tb.Fatal(err)
	}
	for _, b := range blocks {
		crumb += "\n" + b.Text
	}
	return crumb
}

// BenchmarkStart measures what skills cost at the start of a session: with a cache,
// as from the second start on, and without.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{2000, 5000} {
		dir := b.TempDir()
		manySkills(b, dir, n)
		start(b, cachedLibrary(dir))
		b.Run(fmt.Sprint(n, "/cached"), func(b *testing.B) {
			for b.Loop() {
				start(b, cachedLibrary(dir))
			}
		})
		b.Run(fmt.Sprint(n, "/uncached"), func(b *testing.B) {
			for b.Loop() {
				start(b, homeLibrary(dir))
			}
		})
	}
}

// TestCache: with a cache that is new, filled, damaged, stale, unwritable or shared,
// a session starts with the same skills as without.
func TestCache(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	manySkills(t, dir, 80)
	cache := filepath.Join(dir, "cache")
	check := func(when string) {
		t.Helper()
		want := homeLibrary(dir)
		for range 2 {
			got := cachedLibrary(dir)
			if got, want := start(t, got), start(t, want); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
			if got, want := states(got.Catalog()), states(want.Catalog()); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
			for i, s := range got.Catalog().Skills {
				w := want.Catalog().Skills[i]
				got, want := s.Manifest, w.Manifest
				got.Body, want.Body = s.Body(), w.Body()
				if s.Hash != w.Hash || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(s.Diagnostics, w.Diagnostics) || s.File != w.File || s.Dir != w.Dir {
					t.Errorf("%s: %+v, want %+v", when, s, w)
				}
			}
		}
	}
	check("new")
	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("cache files %v, %v", files, err)
	}
	for _, damage := range []func([]byte) []byte{
		func([]byte) []byte { return nil },
		func(data []byte) []byte { return data[:len(data)/2] },
		func(data []byte) []byte { data[len(data)/3] ^= 1; return data },
		func(data []byte) []byte { return append(data, 0) },
	} {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, damage(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		check("damaged")
	}
	write(t, dir, map[string]string{"skills/skill-00007/SKILL.md": skillText("seven", "Counts to seven.", "", "der kal"), "skills/new/SKILL.md": skillText("new", "x", "", "y")})
	if err := os.RemoveAll(filepath.Join(dir, "skills", "skill-00008")); err != nil {
		t.Fatal(err)
	}
	check("stale")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { start(t, cachedLibrary(dir)) })
	}
	all.Wait()
	check("shared")
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"cache": "a file, so that nothing can be written"})
	check("unwritable")
}
