package skills_test

import (
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/skills"
)

func TestFill(t *testing.T) {
	t.Parallel()
	v := skills.Values{Names: []string{"issue", "branch"}, Dir: "/s", Session: core.SessionInfo{ID: "id", Dir: "/w"}}
	for _, tt := range []struct{ args, text, want string }{
		{"", "Do it.", "Do it."},
		{"", "Do $ARGUMENTS.", "Do ."},
		{"a b", "Do $ARGUMENTS.", "Do a b."},
		{`"a b" c`, "$ARGUMENTS: $0, $1, $2, $ARGUMENTS[1], $ARGUMENTS[7]", `"a b" c: a b, c, $2, c, `},
		{"it's fine", "$0-$1", "it's-fine"},
		{`'a "b' "c\"d \e"`, "$0 $1", `a "b c"d \e`},
		{"7 main", "$issue on $branch, $issues, $issue_id, $other", "7 on main, $issues, $issue_id, $other"},
		{"7", "$branch|", "|"},
		{"x y", "It costs $100, $10, $1.50, $1,000 or $1k; \\$1 and $$x", "It costs $100, $10, $1.50, $1,000 or $1k; \\$1 and $$x"},
		{"", "awk '{print $1}'", "awk '{print $1}'"},
		{"$1 $ARGUMENTS ${CLAUDE_SKILL_DIR}", "$0", "$1"},
		{"", "${CLAUDE_SKILL_DIR}/x {baseDir}/y ${CLAUDE_SESSION_ID} ${CLAUDE_PROJECT_DIR} ${HOME} ${CLAUDE_PLUGIN_ROOT}", "/s/x /s/y id /w ${HOME} ${CLAUDE_PLUGIN_ROOT}"},
	} {
		v.Args = tt.args
		if got, _ := v.Fill(tt.text); got != tt.want {
			t.Errorf("%q in %q:\n%s, want\n%s", tt.args, tt.text, got, tt.want)
		}
	}
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	text := "Status: !`git status`\n- !`git diff`\n\n```!\nnode --version\nnpm --version\n```\n\n" +
		"Write `` !`command` `` for commands, not a!`b`, !`` or `!x`.\n```sh\necho no\n```\n"
	if got := strings.Join(skills.Embedded(text), "|"); got != "git status|git diff|node --version\nnpm --version" {
		t.Errorf("commands %q", got)
	}
}
