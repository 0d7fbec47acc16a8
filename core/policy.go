package core

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/seed-009c0928/agent/core/event"
)

// Scope is what an access is of.
type Scope string

// The scopes. Any other, also the empty one, is unknown and needs approval.
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

// Access is one thing that a tool call would do.
type Access struct {
	Scope Scope `json:"scope"`
	// Resource is a path, a command line, a host, "server/tool" … A tool gives
	// a path as the model wrote it; the session makes it absolute and resolves
	// symbolic links before the policy sees it.
	Resource string `json:"resource"`
	// Argv are the program and its arguments, if the access starts one and they
	// are certain.
	Argv []string `json:"argv,omitempty"`
	// Recursive includes everything below the path.
	Recursive bool `json:"recursive,omitempty"`
	// Inside says that the path is in the workspace. Only the session sets it.
	Inside bool `json:"inside,omitempty"`
	// Unconfined says that the program is to run outside the sandbox; in a
	// Grant, that it may. Without a sandbox it means nothing.
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

// UnknownAccess is for a tool that cannot tell what a call touches.
func UnknownAccess(resource string) []Access {
	return []Access{{Scope: ScopeUnknown, Resource: resource}}
}

// PermissionRequest is what a policy decides on.
type PermissionRequest struct {
	Session    SessionInfo
	Call, Tool string // the call's ID, and the name that the model uses
	Source     string // the toolset's name
	Args       json.RawMessage
	Accesses   []Access
	// Granted reports whether the user granted this access to this tool for the
	// session. It may be nil.
	Granted func(Access) bool
	// Rules are the allow rules that the user approved for the session.
	Rules []string
}

// Verdict is what a policy decides. The zero value denies.
type Verdict uint8

// The verdicts, the strictest first.
const (
	Deny Verdict = iota
	Ask
	Allow
)

// String returns "deny", "ask" or "allow".
func (v Verdict) String() string {
	return cmp.Or(map[Verdict]string{Allow: "allow", Ask: "ask"}[v], "deny")
}

// Decision is a policy's verdict and the reasons for it. The zero value denies.
type Decision struct {
	Verdict Verdict
	Rule    string // the text of the rule that decided, "mode default" …
	Source  string // where the rule is: file:line, "builtin", "flag"
	Reason  string // for the user, and on a denial for the model: what would be allowed
	// Why says what needs approval about the call, for the user: short, the
	// gravest first. Without it, Reason does.
	Why []string
	// Grants are what the call's environment allows if the call may run.
	Grants []Grant
	// NoSession says that an approval cannot last for the session.
	NoSession bool
	// Sensitive are files that may contain secrets which the call can access. Its
	// result, and the text that it writes, are not recorded.
	Sensitive []string
	// Offers are what would allow the call beyond this once, the narrowest first;
	// none if nothing may.
	Offers []Offer
}

// Offer is a choice of allow rules that an approval can add.
type Offer = event.Offer

// Grant allows an access.
type Grant struct {
	Access
	// Except reports paths below a recursive grant that are not granted; nil
	// excludes none.
	Except func(path string) bool
	// Env is added to a granted command's environment, as "NAME=value".
	Env []string
}

// Policy decides whether a call may run. Decide is pure, quick and safe for
// concurrent use; what it does not understand it must not allow.
type Policy interface {
	Decide(ctx context.Context, req PermissionRequest) Decision
}

// Asker puts questions to the user. It may be asked several at once, such as those of
// subagents, and must then show them one by one or together. When ctx is done it
// withdraws the question and returns the error of ctx.
// A nil Asker means that the session is non-interactive.
type Asker interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// QuestionKind is the kind of a question.
type QuestionKind string

// The kinds of questions.
const (
	QuestionPermission QuestionKind = "permission" // may this call run?
	QuestionConfirm    QuestionKind = "confirm"    // yes or no
	QuestionForm       QuestionKind = "form"       // Schema says what to fill in
	QuestionURL        QuestionKind = "url"        // open URL, then confirm
)

// Choice is one of the answers on offer.
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

// Question is put to the user.
type Question struct {
	ID        string
	Kind      QuestionKind
	Call      *Call    // that a permission request is about
	AgentPath []string // which subagent asks; empty for the root
	Tool      string
	Title     string // the question, such as "Run `make`?"
	Detail    string // why it is asked, the gravest reason first
	Choices   []Choice
	Offers    []Offer // what ChoiceSession or ChoiceAlways would add, the narrowest first
	Accesses  []Access
	Edits     []event.Edit // what a call that changes files would change, if it is known
	Schema    json.RawMessage
	URL       string
}

// Answer is the user's answer.
type Answer struct {
	Choice Choice
	Offer  int             // index of the offer that ChoiceSession or ChoiceAlways accepts
	Reason string          // on a denial, for the model
	Values json.RawMessage // of a form
	// Args replace the arguments of the call that a permission request is about.
	// Deny rules apply to them, too.
	Args json.RawMessage
}
