package skills_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed-009c0928/agent/skills"
)

// write writes files below a folder.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// skillText returns the content of a SKILL.md.
func skillText(name, description, more, body string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n" + more + "---\n" + body + "\n"
}

// tempDir is a temporary folder without symbolic links in its path.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// homeLibrary returns a library of the skills in an agent's home.
func homeLibrary(home string) *skills.Library {
	return skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Home: home})})
}

func states(c *skills.Catalog) string {
	var b strings.Builder
	for _, s := range c.Skills {
		fmt.Fprintf(&b, "%s=%s ", s.FullName(), s.State)
	}
	return strings.TrimSpace(b.String())
}

func TestLibraryOrder(t *testing.T) {
	t.Parallel()
	top := tempDir(t)
	work, home, user := filepath.Join(top, "repo", "sub"), filepath.Join(top, "home", ".agent"), filepath.Join(top, "home")
	write(t, top, map[string]string{
		"repo/.git/HEAD":                                "x",
		"repo/.claude/skills/up/SKILL.md":               skillText("up", "from the top", "", "x"),
		"repo/sub/.agent/skills/same/SKILL.md":          skillText("same", "the project's", "", "x"),
		"repo/sub/.agents/skills/copy/SKILL.md":         skillText("copy", "twice", "", "x"),
		"repo/sub/.claude/skills/copy/SKILL.md":         skillText("copy", "twice", "", "x"),
		"home/.agent/skills/same/SKILL.md":              skillText("same", "the user's", "", "x"),
		"home/.agents/skills/lower/skill.md":            skillText("lower", "in lower case", "", "x"),
		"home/.agent/skills/off/SKILL.md":               skillText("off", "by default", "default_enabled: false\n", "x"),
		"home/.agent/skills/broken/SKILL.md":            "---\nname: broken\nx\n",
		"home/.agent/skills/node_modules/m/SKILL.md":    skillText("m", "a dependency's", "", "x"),
		"home/.agent/skills/.hidden/h/SKILL.md":         skillText("h", "hidden", "", "x"),
		"home/.agent/skills/.gitignore":                 "# not these\nold/\n!old-but-good\n",
		"home/.agent/skills/old/SKILL.md":               skillText("old", "ignored", "", "x"),
		"home/.agent/skills/group/inner/SKILL.md":       skillText("inner", "deeper", "", "x"),
		"home/.agent/skills/group/inner/below/SKILL.md": skillText("below", "part of inner", "", "x"),
		"home/.agent/skills/a/b/c/d/e/f/SKILL.md":       skillText("six", "six deep", "", "x"),
		"home/.agent/skills/a/b/c/d/e/f2/g/SKILL.md":    skillText("seven", "seven deep", "", "x"),
	})
	bundled := fstest.MapFS{
		"same/SKILL.md":  {Data: []byte(skillText("same", "bundled", "", "x"))},
		"third/SKILL.md": {Data: []byte(skillText("third", "bundled", "", "x"))},
	}
	open := func(trusted bool, o skills.LibraryOptions) *skills.Catalog {
		o.Places = skills.Places(skills.PlaceOptions{Dir: work, Home: home, UserHome: user, Trusted: trusted, Bundled: bundled})
		return skills.NewLibrary(o).Catalog()
	}
	c := open(true, skills.LibraryOptions{})
	want := "project:copy=on user:inner=on user:lower=on user:off=off project:same=on user:same=shadowed bundled:same=shadowed user:six=on bundled:third=on project:up=on"
	if got := states(c); got != want {
		t.Errorf("skills\n%s, want\n%s", got, want)
	}
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Error(), filepath.Join("broken", "SKILL.md")+":1:1: error: the front matter is not closed") {
		t.Errorf("problems %v", c.Problems)
	}
	if s, ok := c.Find("user:same"); !ok || s.Description != "the user's" {
		t.Errorf("user:same is %+v", s)
	}
	if s, _ := c.Find("SAME"); s == nil || s.Scope != skills.ScopeProject || !strings.Contains(fmt.Sprint(s.Diagnostics), "project:same shadows the user skill of the same name: use user:same for that one") {
		t.Errorf("same is %+v", s)
	}
	if got := states(open(false, skills.LibraryOptions{})); strings.Contains(got, "project") {
		t.Errorf("untrusted directory: %s", got)
	}
	got := states(open(true, skills.LibraryOptions{Enable: []string{"off"}, Disable: []string{"project:*", "third"}}))
	want = "project:copy=off user:inner=on user:lower=on user:off=on project:same=off user:same=on bundled:same=shadowed user:six=on bundled:third=off project:up=off"
	if got != want {
		t.Errorf("with settings\n%s, want\n%s", got, want)
	}
}

func TestLibraryTwoOfOneNameInAScope(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{
		"skills/a/SKILL.md": skillText("twin", "the first", "", "x"),
		"skills/b/SKILL.md": skillText("twin", "the second", "", "x"),
	})
	c := homeLibrary(dir).Catalog()
	s, _ := c.Find("twin")
	if s == nil || s.Description != "the first" || !strings.Contains(fmt.Sprint(s.Diagnostics), "another user skill with the same name is ignored: "+filepath.Join(dir, "skills", "b", "SKILL.md")) {
		t.Errorf("twin is %+v", s)
	}
}

func TestLibraryLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	top := tempDir(t)
	write(t, top, map[string]string{
		"repo/.git/HEAD":             "x",
		"repo/shared/one/SKILL.md":   skillText("one", "behind a link", "", "x"),
		"repo/.agent/skills/.keep":   "",
		"outside/secret/SKILL.md":    skillText("secret", "not of the project", "", "x"),
		"repo/.agent/skills/f/a.txt": "x",
	})
	link := func(to, at string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(top, "repo", ".agent", "skills", at)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(top, "repo", "shared", "one"), "one")
	link(filepath.Join(top, "repo", "shared", "one"), "again")
	link("..", "loop")
	link(filepath.Join(top, "outside"), "out")
	link(filepath.Join(top, "outside", "secret", "SKILL.md"), "f/SKILL.md")
	c := skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Dir: filepath.Join(top, "repo"), Trusted: true})}).Catalog()
	if got := states(c); got != "project:one=on" {
		t.Errorf("skills %q", got)
	}
	if text := fmt.Sprint(c.Problems); strings.Count(text, "leads out of the project") != 2 {
		t.Errorf("problems %s", text)
	}
}

// TestLibraryChanges checks that the next catalog reflects added, edited and
// removed skills.
func TestLibraryChanges(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"skills/a/SKILL.md": skillText("a", "one", "", "x")})
	lib := homeLibrary(dir)
	first := lib.Catalog()
	if again := lib.Catalog(); again != first {
		t.Error("the catalog of an unchanged library is not reused")
	}
	write(t, dir, map[string]string{"skills/b/SKILL.md": skillText("b", "two", "", "x")})
	if got := states(lib.Catalog()); got != "user:a=on user:b=on" {
		t.Errorf("after adding: %s", got)
	}
	file := filepath.Join(dir, "skills", "a", "SKILL.md")
	write(t, dir, map[string]string{"skills/a/SKILL.md": skillText("a", "new", "", "x")})
	if err := os.Chtimes(file, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if s, _ := lib.Catalog().Find("a"); s.Description != "new" {
		t.Errorf("after editing: %q", s.Description)
	}
	if err := os.RemoveAll(filepath.Join(dir, "skills", "b")); err != nil {
		t.Fatal(err)
	}
	if got := states(lib.Catalog()); got != "user:a=on" {
		t.Errorf("after removing: %s", got)
	}
	write(t, dir, map[string]string{"skills/a/SKILL.md": "---\nbroken"})
	if c := lib.Catalog(); len(c.Skills) != 0 || len(c.Problems) != 1 {
		t.Errorf("after breaking: %s, %v", states(c), c.Problems)
	}
}

func BenchmarkLibraryUnchanged(b *testing.B) {
	dir := tempDir(b)
	files := map[string]string{}
	for i := range 50 {
		name := fmt.Sprintf("skill-%d", i)
		files["skills/"+name+"/SKILL.md"] = skillText(name, "does a thing", "", "x")
	}
	write(b, dir, files)
	lib := homeLibrary(dir)
	lib.Catalog()
	b.ReportAllocs()
	for b.Loop() {
		lib.Catalog()
	}
}
