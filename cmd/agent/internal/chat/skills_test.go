package chat

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed-009c0928/agent/cmd/agent/internal/tui"
	"github.com/seed-009c0928/agent/skills"
)

// TestSkillCommands: skills come behind all other commands, and what is entered
// goes to the session with the skill's full name.
func TestSkillCommands(t *testing.T) {
	file := func(name, more string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: Does " + name + ".\n" + more + "---\nx\n")}
	}
	lib := skills.NewLibrary(skills.LibraryOptions{Places: skills.Places(skills.PlaceOptions{Bundled: fstest.MapFS{
		"model/SKILL.md": file("model", ""), "notes/SKILL.md": file("notes", "argument-hint: \"[TAG]\"\n"),
		"quiet/SKILL.md": file("quiet", "user-invocable: false\n"), "help/SKILL.md": file("help", ""),
	}})})
	var got []string
	for _, c := range withSkills([]tui.Command{{Name: "model"}}, lib) {
		line := c.Name + c.Args
		if c.Run != nil {
			r, err := c.Run(t.Context(), " v1 ")
			if err != nil {
				t.Fatal(err)
			}
			line += "=" + r.Prompt
		}
		got = append(got, line)
	}
	want := "model, bundled:help=/bundled:help  v1, bundled:model=/bundled:model  v1, notes[TAG]=/bundled:notes  v1"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("commands %q, want %q", all, want)
	}
	if got := withSkills(nil, nil); got != nil {
		t.Errorf("without skills: %v", got)
	}
}
