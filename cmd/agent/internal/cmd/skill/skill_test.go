package skill

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/cmd/agent/internal/cmdutil"
	"github.com/seed-009c0928/agent/skills"
)

func newIO(t *testing.T) (*cmdutil.IO, *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("AGENT_HOME", "")
	var out bytes.Buffer
	return &cmdutil.IO{In: strings.NewReader(""), Out: &out, Err: t.Output(), Env: os.Getenv, Cwd: t.TempDir()}, &out
}

// check reports a run that did not end and print as wanted.
func check(t *testing.T, what string, err error, code int, out *bytes.Buffer, want string) {
	t.Helper()
	if cmdutil.ExitCode(err) != code || !strings.Contains(out.String(), want) {
		t.Errorf("%s: %v, printed %s", what, err, out)
	}
	out.Reset()
}

func TestNewSkillIsUsed(t *testing.T) {
	s, out := newIO(t)
	o := options{IO: s}
	err := (&createOptions{options: o}).run("release-notes")
	check(t, "new", err, cmdutil.ExitDone, out, filepath.Join("skills", "release-notes", "SKILL.md"))
	err = (&createOptions{options: o}).run("release-notes")
	check(t, "new twice", err, cmdutil.ExitError, out, "")
	err = (&createOptions{options: o}).run("release notes")
	check(t, "new with a space", err, cmdutil.ExitUsage, out, "")
	check(t, "lint", (&lintOptions{o}).run(nil), cmdutil.ExitDone, out, "")
	check(t, "list", (&listOptions{o}).run(), cmdutil.ExitDone, out, "release-notes  user")
	err = (&matchOptions{o}).run(t.Context(), "Draft the release notes")
	check(t, "match", err, cmdutil.ExitDone, out, "  + release-notes: phrase release notes\n")
	check(t, "show", (&showOptions{o}).run("release-note"), cmdutil.ExitError, out, "")
	check(t, "show", (&showOptions{o}).run("release-notes"), cmdutil.ExitDone, out, "# Release notes")

	err = (&enableOptions{options: o}).run(t.Context(), []string{"release-notes"})
	check(t, "disable", err, cmdutil.ExitDone, out, "user:release-notes is off: disabled in the settings\n")
	err = (&whyOptions{o}).run(t.Context(), "Draft the release notes")
	check(t, "why", err, cmdutil.ExitDone, out, "release-notes  user     off      disabled in the settings\n")
	err = (&enableOptions{options: o, on: true}).run(t.Context(), []string{"release-notes"})
	check(t, "enable", err, cmdutil.ExitDone, out, "user:release-notes is on\n")
}

func TestExplain(t *testing.T) {
	one, two := &skills.Skill{State: skills.StateOn}, &skills.Skill{State: skills.StateOff, Why: "disabled"}
	m := skills.Match{Skill: one, By: skills.ByPhrase, Trigger: "a b", HeldBack: "no file matches"}
	ranked := skills.Match{Skill: one, By: skills.ByRank, Score: 2.5, Trigger: "b"}
	for _, tt := range []struct {
		skill          *skills.Skill
		r              skills.Result
		result, reason string
	}{
		{one, skills.Result{}, "nothing", "no trigger and no term matches the prompt"},
		{one, skills.Result{Shortlist: []skills.Match{ranked}}, "ranked", "score 2.5, matched terms: b"},
		{one, skills.Result{Shortlist: []skills.Match{ranked}, HeldBack: []skills.Match{m}}, "held", `phrase "a b" matches, but no file matches`},
		{one, skills.Result{Activated: []skills.Match{m}}, "activated", `phrase "a b"`},
		{two, skills.Result{}, "off", "disabled"},
	} {
		if l := explain(tt.skill, tt.r); l.Result != tt.result || l.Reason != tt.reason {
			t.Errorf("%+v, want %s: %s", l, tt.result, tt.reason)
		}
	}
}

func TestAddAndVerify(t *testing.T) {
	s, out := newIO(t)
	source := filepath.Join(s.Cwd, "pdf")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "SKILL.md"), []byte("---\nname: pdf\ndescription: Reads PDF files.\n---\nText.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	add := func(yes bool, source ...string) error {
		o := &addOptions{}
		o.IO, o.yes = s, yes
		return o.run(t.Context(), source)
	}
	verify := func(accept bool, names ...string) error {
		o := &verifyOptions{accept: accept}
		o.IO = s
		return o.run(t.Context(), names)
	}
	check(t, "add without a source", add(true), cmdutil.ExitUsage, out, "")
	check(t, "add without approval", add(false, "./pdf"), cmdutil.ExitUsage, out, "")
	check(t, "add", add(true, "./pdf"), cmdutil.ExitDone, out, "pdf: installed\n")
	check(t, "verify", verify(false), cmdutil.ExitDone, out, "pdf: clean\n")
	check(t, "verify unknown", verify(false, "text"), cmdutil.ExitError, out, "")

	home, err := s.AgentHome()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "skills", "pdf", "mine.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, "verify edited", verify(false), cmdutil.ExitError, out, "pdf: changed\n  added mine.md\n")
	check(t, "accept all", verify(true), cmdutil.ExitUsage, out, "")
	check(t, "accept", verify(true, "pdf"), cmdutil.ExitDone, out, "pdf: accepted\n")
	remove := &removeOptions{}
	remove.IO = s
	check(t, "remove", remove.run(t.Context(), []string{"pdf"}), cmdutil.ExitDone, out, "pdf: removed\n")
}
