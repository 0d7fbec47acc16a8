package skills_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/skills"
)

// manySkills writes n skills of about 4 kB, with the time of an hour ago.
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
	past := time.Now().Add(-time.Hour)
	for name := range files {
		if err := os.Chtimes(filepath.Join(dir, filepath.FromSlash(name)), past, past); err != nil {
			tb.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
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

var _ = []any{bytes.Equal, reflect.DeepEqual, runtime.GOOS, sync.OnceFunc}
