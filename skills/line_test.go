package skills_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/skills"
)

// TestListLines checks that a line has name, purpose and when to use the skill,
// and that the best-ranked skills have the longest lines.
func TestListLines(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	long := strings.Repeat("reads many formats of scanned documents, ", 8)
	write(t, dir, map[string]string{
		"skills/a/SKILL.md": skillText("a", "Bakes bread. Use this skill when the user asks to bake or knead. Do not use for cakes.", "", "x"),
		"skills/b/SKILL.md": skillText("b", "Fills forms, "+long+"and more. Use when asked for a tax form.", "", "x"),
		"skills/c/SKILL.md": skillText("c", "Draws maps.", "when_to_use: Use for hiking routes.\n", "x"),
		"skills/d/SKILL.md": skillText("d", "Sends letters. Printed ones. This skill should be used when a letter is to be posted.", "brief_description: Posts letters.\n", "x"),
	})
	k := newConversation(t, dir)
	text := k.send("hello")[0].Text
	for _, want := range []string{
		"- a: Bakes bread. Use when asked to bake or knead. Do not use for cakes.\n",
		"- b: Fills forms, reads many formats of scanned documents, reads many formats of scanned documents, reads many formats of scanned… Use when asked for a tax form.\n",
		"- c: Draws maps. Use for hiking routes.\n",
		"- d: Posts letters. Use when a letter is to be posted.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	if got := k.send("hello again"); len(got) != 0 {
		t.Errorf("listed again: %+v", got)
	}

	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("skills/n%02d/SKILL.md", i)] = skillText(fmt.Sprintf("n%02d", i), fmt.Sprintf("Handles topic%d, %sand so on. Use when topic%d comes up.", i, long, i), "", "x")
	}
	write(t, dir, files)
	source := skills.NewSource(skills.SourceOptions{Library: k.lib})
	lines := func(budget int) map[string]string {
		blocks, err := source.Context(t.Context(), core.ContextRequest{Input: core.TextInput("about topic7 and topic8").Content, Budget: budget})
		if err != nil || len(blocks) == 0 {
			t.Fatal(blocks, err)
		}
		if len(blocks[0].Text) > 4*budget+200 {
			t.Errorf("%d bytes with a budget of %d tokens", len(blocks[0].Text), budget)
		}
		all := map[string]string{}
		for line := range strings.Lines(blocks[0].Text) {
			if name, text, ok := strings.Cut(strings.TrimPrefix(line, "- "), ": "); ok {
				all[name] = text
			}
		}
		return all
	}
	if all := lines(4000); len(all) < 44 || len(all["n07"]) < 300 || len(all["n20"]) > 170 || !strings.HasSuffix(all["n20"], "… Use when topic20 comes up.\n") {
		t.Errorf("with much space: %d lines, %q, %q", len(all), all["n07"], all["n20"])
	}
	if all := lines(300); len(all) < 2 || len(all) > 13 || !strings.HasSuffix(all["n07"], "Use when topic7 comes up.\n") {
		t.Errorf("with little space: %d lines, %q", len(all), all["n07"])
	}
}
