package hooks

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, json string
		want       string // of the definitions, "EVENT matcher title"
		problem    string
	}{
		{"settings", `{"model": "x", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "a"}, {"type": "command", "command": "b"}]}]}}`, "PreToolUse Bash a; PreToolUse Bash b", ""},
		{"events alone", `{"description": "d", "Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}`, "Stop  a", ""},
		{"Gemini", `{"hooks": {"BeforeTool": [{"matcher": "run_shell_command", "hooks": [{"type": "command", "command": "a", "timeout": 5000}]}]}}`, "PreToolUse run_shell_command a", ""},
		{"event without a meaning", `{"hooks": {"WorktreeCreate": [{"hooks": [{"type": "command", "command": "a"}]}]}}`, "", "not used"},
		{"unknown event", `{"hooks": {"PreToolUsed": [{"hooks": [{"type": "command", "command": "a"}]}]}}`, "", "unknown event"},
		{"broken guard stays", `{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "a"}]}]}}`, "PreToolUse ( a", "matcher"},
		{"guard of an unknown type stays", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "script"}]}]}}`, "PreToolUse  script /", "unknown type"},
		{"agent is judged by a model", `{"hooks": {"Stop": [{"hooks": [{"type": "agent", "prompt": "p"}]}]}}`, "Stop  prompt: p", ""},
		{"broken others go", `{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}`, "", `needs "command"`},
		{"address of a network", `{"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://169.254.169.254/x"}]}]}}`, "", "expected a host's name"},
		{"async guard", `{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "a", "async": true}]}]}}`, "PreToolUse  a", "async has no effect"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defs, problems, err := Parse(Source{Name: "test"}, []byte(tt.json))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range defs {
				got = append(got, string(d.Event)+" "+d.Matcher+" "+d.Title())
			}
			if g := strings.Join(got, "; "); g != tt.want {
				t.Errorf("definitions = %q, want %q", g, tt.want)
			}
			if tt.problem == "" && len(problems) > 0 || tt.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), tt.problem)) {
				t.Errorf("problems = %v, want one with %q", problems, tt.problem)
			}
		})
	}
	for _, bad := range []string{`[]`, `{"hooks": []}`, `{"hooks": {"Stop": {}}}`, `{`} {
		if _, _, err := Parse(Source{Name: "test"}, []byte(bad)); err == nil || !strings.Contains(err.Error(), "hooks of test") {
			t.Errorf("Parse(%s): error = %v, want one that names the source", bad, err)
		}
	}
}

func TestMatcher(t *testing.T) {
	t.Parallel()
	tests := []struct {
		matcher, name string
		want          bool
	}{
		{"", "Bash", true},
		{"*", "Bash", true},
		{"Bash", "Bash", true},
		{"Bash", "BashOutput", false},
		{"Edit|Write", "Write", true},
		{"Edit, Write", "Write", true},
		{"Edit|Write", "MultiWrite", false},
		{"mcp__memory__.*", "mcp__memory__store", true},
		{"mcp__memory", "mcp__memory__store", false},
		{".*Edit", "MultiEdit", true},
		{"Edit.*", "NotebookEdit", true}, // not anchored
		{"^(?!mcp__).*$", "Bash", true},
		{"^(?!mcp__).*$", "mcp__x__y", false},
		{"bash", "Bash", false},
		{" * ", "Bash", true},
		{"|", "Bash", false},
		{"Bash||", "Bash", true},
		{"mcp__größe__.*", "mcp__größe__messen", true},
		{"größe", "größe", true},
		{"^Bａsh$", "Bash", false}, // a wide letter
		{".", "", false},
		{`^(a+)+$`, strings.Repeat("a", 60) + "!", true}, // takes for ever, and a guard must not be lost
	}
	for _, tt := range tests {
		is, err := compileMatcher(tt.matcher)
		if err != nil {
			t.Fatal(err)
		}
		if got := is([]string{tt.name}); got != tt.want {
			t.Errorf("%q matches %q = %v, want %v", tt.matcher, tt.name, got, tt.want)
		}
	}
}

// TestCheckRules: a wrong rule of "if" is a problem, and a guard that has one stays.
func TestCheckRules(t *testing.T) {
	t.Parallel()
	hook := `[{"hooks": [{"type": "command", "command": "a", "if": "wrong"}, {"type": "command", "command": "b", "if": "right"}]}]`
	defs, _, err := Parse(Source{Name: "test"}, []byte(`{"PreToolUse": `+hook+`, "PostToolUse": `+hook+`, "Stop": `+hook+`}`))
	if err != nil {
		t.Fatal(err)
	}
	left, problems := CheckRules(defs, func(rule string) error {
		if rule == "wrong" {
			return errors.New("no rule")
		}
		return nil
	})
	if len(left) != 5 || len(problems) != 2 {
		t.Fatalf("left %d, problems %v", len(left), problems)
	}
	for _, d := range left {
		if (d.broken != nil) != (d.Event == PreToolUse && d.Handler.Command == "a") {
			t.Errorf("%s %s: %v", d.Event, d.Handler.Command, d.broken)
		}
	}
	if !strings.Contains(problems[1].String(), "denies every call") {
		t.Errorf("problem %q", problems[1])
	}
}

func TestExpandOnce(t *testing.T) {
	t.Parallel()
	s := Source{Vars: map[string]string{"A": "${B}", "B": "secret"}}
	if got, want := s.expand("x ${A} ${C}"), "x ${B} ${C}"; got != want {
		t.Errorf("expand = %q, want %q", got, want)
	}
}
