package wording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Access is an access of a call, with the fields of core.Access.
type Access struct {
	Scope, Resource               string
	Recursive, Inside, Unconfined bool
}

// String describes the access in words, such as "run `make`".
func (a Access) String() string {
	words, known := a.words()
	if !known {
		return "have unknown effects: " + a.Resource
	}
	return words
}

// words describes an access of a known scope.
func (a Access) words() (words string, known bool) {
	source, name, _ := strings.Cut(a.Resource, "/")
	switch a.Scope {
	case "fs-read":
		return "read " + a.files(), true
	case "fs-write":
		return "write " + a.files(), true
	case "fs-delete":
		return "delete " + a.files(), true
	case "shell-run":
		return "run `" + a.Resource + "`" + a.unconfined(), true
	case "skill-script":
		return "run the skill script `" + a.Resource + "`" + a.unconfined(), true
	case "network":
		return "connect to " + a.Resource, true
	case "mcp":
		if uri, ok := strings.CutPrefix(name, "resource:"); ok {
			return fmt.Sprintf("read %s of the MCP server %s", uri, source), true
		}
		return fmt.Sprintf("call %s of the MCP server %s", name, source), true
	case "plugin":
		return fmt.Sprintf("call %s of the plugin %s", name, source), true
	case "subagent":
		return "use the subagent " + a.Resource, true
	}
	return "", false
}

func (a Access) files() string {
	text := a.Resource
	if a.Recursive {
		text = "everything in " + text
	}
	if !a.Inside {
		text += " (outside the workspace)"
	}
	return text
}

func (a Access) unconfined() string {
	if a.Unconfined {
		return " outside the sandbox"
	}
	return ""
}

// Question asks for approval of a call, in the words of its main access: the
// first that changes something. All hosts are named.
func Question(tool string, accesses []Access) string {
	if len(accesses) == 0 {
		return "Call " + tool + "?"
	}
	first := max(0, slices.IndexFunc(accesses, func(a Access) bool { return a.Scope != "fs-read" }))
	main, more := accesses[first], 0
	what, known := main.words()
	if !known {
		what = "call " + tool + ", which may " + main.String()
	}
	var hosts []string
	for i, a := range accesses {
		switch {
		case i == first:
		case a.Scope == "network":
			hosts = append(hosts, a.Resource)
		case a.Scope == "fs-read" && main.Scope == "fs-write" && a.Resource == main.Resource:
			what = "edit " + main.files()
		case a.Scope == main.Scope && strings.HasPrefix(a.Scope, "fs-"):
			more++
		}
	}
	if more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	if len(hosts) > 0 {
		sep := " and connect to "
		if main.Scope == "network" {
			sep = ", "
		}
		what += sep + strings.Join(hosts, ", ")
	}
	return strings.ToUpper(what[:1]) + what[1:] + "?"
}

// Unrecorded answers a call that cannot be run when its session is resumed.
const Unrecorded = "This call was not run: its arguments were not recorded, because they may contain secrets. Make it again."

// Denied answers a call that may not run. Why is what the user or a rule says, if anything.
func Denied(why string) string {
	return fmt.Sprintf("Permission denied: %s. Do not try to do the same in another way; continue without it, or say what you need.", cmp.Or(why, "the user denied it"))
}

// Interrupted answers a call that was open when the agent ended.
func Interrupted(started bool) string {
	if !started {
		return "The call was not run, as the agent ended before."
	}
	return "The call was interrupted when the agent ended; what it did is unknown."
}

// Context is a text that is added to an input. It cannot end its own block.
func Context(source string, trusted bool, text string) string {
	return fmt.Sprintf("<context source=%q trusted=%t>\n%s\n</context>", source, trusted, strings.ReplaceAll(text, "</context", "< /context"))
}

// Window warns of a context window of which so much is used.
func Window(percent int, note string) string {
	text := fmt.Sprintf("about %d %% of the model's context window is used", percent)
	if note != "" {
		text += "; " + note
	}
	return text
}
