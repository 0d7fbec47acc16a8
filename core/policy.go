package core

import (
	"context"
	"encoding/json"
	"strings"
)

// Scope is a kind of access.
type Scope string

// The scopes. Any other, also the empty one, is unknown and asks.
const (
	ScopeRead        Scope = "fs-read"
	ScopeWrite       Scope = "fs-write"
	ScopeDelete      Scope = "fs-delete"
	ScopeShell       Scope = "shell-run"
	ScopeNetwork     Scope = "network"
	ScopeMCP         Scope = "mcp"
	ScopePlugin      Scope = "plugin"
	ScopeSkillScript Scope = "skill-script"
	ScopeSubagent    Scope = "subagent"
	ScopeUnknown     Scope = "unknown"
)

// IsFile reports whether the scope's resources are paths.
func (s Scope) IsFile() bool { return s == ScopeRead || s == ScopeWrite || s == ScopeDelete }

// Access is one thing that a tool call wants to do.
type Access struct {
	Scope Scope `json:"scope"`
	// Resource is a path, a command line, a host, "server/tool" … A tool gives
	// a path as the model wrote it; everybody behind the pipeline's resolving
	// sees it absolute and without symbolic links.
	Resource string `json:"resource"`
	// Argv is what a program gets, when the access is the start of one and
	// that is certain.
	Argv []string `json:"argv,omitempty"`
	// Recursive means all that lies under the path.
	Recursive bool `json:"recursive,omitempty"`
	// Inside says that the path lies in the workspace. Only the pipeline sets it.
	Inside bool `json:"inside,omitempty"`
	// Unconfined says that the program wants to run outside the sandbox; in a
	// Grant, that it may. Where there is no sandbox it means nothing.
	Unconfined bool `json:"unconfined,omitempty"`
}

// Key identifies an access within a tool, for grants.
func (a Access) Key() string {
	key := string(a.Scope) + "\x00" + a.Resource + "\x00" + strings.Join(a.Argv, "\x01")
	if a.Recursive {
		key += "\x00r"
	}
	return key
}

// UnknownAccess is the answer of a tool that cannot describe a call.
func UnknownAccess(resource string) []Access {
	return []Access{{Scope: ScopeUnknown, Resource: resource}}
}

// PermissionRequest is what a policy decides on.
type PermissionRequest struct {
	Session  SessionInfo
	Tool     string // the model's name for it
	Source   string // the toolset's name
	Args     json.RawMessage
	Accesses []Access
	// Granted reports whether the person granted this very access to this tool
	// for the session. It may be nil.
	Granted func(Access) bool
}

// Verdict is a policy's word. The zero value denies.
type Verdict uint8

// The verdicts, the worst first.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// String returns "deny", "ask" or "allow".
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// Decision is a policy's answer. The zero value denies.
type Decision struct {
	Verdict Verdict
	Rule    string // the text of the rule that decided, "mode default" …
	Source  string // where it stands: file:line, "builtin", "flag"
	Reason  string // for a person, and on a denial for the model: what would be allowed
	// Grants are what the call's environment opens when the call may run,
	// after a yes of the person if the verdict asks.
	Grants []Grant
	// NoSession says that a yes cannot hold for the session.
	NoSession bool
	// Always is the rule that would allow this for ever, empty where none may.
	Always string
}

// Grant opens an access.
type Grant struct {
	Access
	// Except names paths under a recursive grant that stay closed; nil names none.
	Except func(path string) bool
	// Env is put on top of a granted command's environment, as "NAME=value".
	Env []string
}

// Policy decides whether a call may run. Decide is pure, quick and safe for
// concurrent use; what it does not understand it must not allow.
type Policy interface {
	Decide(ctx context.Context, req PermissionRequest) Decision
}

// Asker puts questions to a person. It is asked one question at a time. When
// ctx is done it withdraws the question and returns the error of ctx.
// A nil Asker means that nobody is there.
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// QuestionKind tells questions apart.
type QuestionKind string

// The kinds of questions.
const (
	QuestionPermission QuestionKind = "permission" // may this call run?
	QuestionConfirm    QuestionKind = "confirm"    // yes or no
	QuestionForm       QuestionKind = "form"       // Schema says what to fill in
	QuestionURL        QuestionKind = "url"        // open URL, then say so
)

// Choice is an answer that can be picked.
type Choice string

// The choices. A zero Answer denies.
const (
	ChoiceOnce    Choice = "once"
	ChoiceSession Choice = "session"
	ChoiceAlways  Choice = "always"
	ChoiceDeny    Choice = "deny"
	ChoiceYes     Choice = "yes"
	ChoiceNo      Choice = "no"
)

// Question is put to a person.
type Question struct {
	ID          string
	Kind        QuestionKind
	AgentPath   []string // which subagent asks; empty for the root
	Tool        string
	Title       string // one line
	Detail      string
	Choices     []Choice
	RulePreview string // what ChoiceAlways would write
	Accesses    []Access
	Schema      json.RawMessage
	URL         string
}

// Answer is a person's answer.
type Answer struct {
	Choice Choice
	Reason string          // on a denial, for the model
	Values json.RawMessage // of a form
}
