// Package permissions decides what tool calls may do: it implements
// [core.Policy] with modes, rules and a list of sensitive places.
//
// # Evaluation order
//
// Each access of a call is judged separately, and the strictest verdict wins:
//
//  1. A deny rule of any source, or a built-in denial (removing /, the home or a
//     workspace directory; writing to raw devices; fork bombs; sudo and the
//     like, unless a rule of the user allows that very command) denies, in
//     every mode.
//  2. A sensitive place, a place protected from writes, or an access that
//     cannot be understood asks, even if a rule allows it.
//  3. An ask rule asks.
//  4. An allow rule allows.
//  5. Otherwise the mode decides.
//
// Steps 2 and 3 only make verdicts stricter: what the mode denies and no rule
// allows is denied there, too. Mode bypass replaces steps 3 and 5 by allow, but
// not step 2. An approval for the session satisfies Ask for that exact access,
// never a denial. A call that declares no access is allowed, unless a rule denies
// the tool.
//
// # Rules
//
// A rule is a scope or the name of a tool, with a pattern in parentheses:
//
//	shell(go test *)       the words of a command; a last * matches any further ones
//	fs-read(./docs/**)     a glob, relative to the project, absolute, or below ~
//	fs-write, fs-delete    the same
//	network(*.example.com) a host, optionally with a port
//	mcp(github/get_*)      server and tool
//	plugin(web/fetch)      plugin and tool
//	skill-script(...)      as shell
//	subagent(*)            a name
//	write_file(./docs/**)  the accesses of one tool, matched by their scope
//	fs-read                the same as fs-read(*)
//	*                      everything
//
// A name that is both a scope and a tool is the scope.
//
// # Conditions
//
// A [When] is a rule that is an expression of github.com/expr-lang/expr over
//
//	scope, tool, source, agent   the access's scope; the tool, its toolset, the calling subagent
//	mode, dir                    the mode, the working directory
//	resource                     the access's resource, unchanged
//	path, inside, recursive      of a file; inside the workspace; with everything below
//	command, program, argv       of a simple command: its text, program name and words
//	arg(n)                       a word of argv, or empty beyond its end
//	host, port                   of a connection
//	owner, name                  of an MCP server's or plugin's tool
//
// It is compiled, and its examples checked, when it is loaded. It can call only
// a few functions and cannot nest iterations, so that its cost is bounded. A
// condition that fails denies. One that depends on something unknown, such as
// words of a command only known at run time, asks if it is an ask or deny rule
// and does not match if it is an allow rule.
//
// # Commands
//
// A command line for bash or sh is analyzed (package shell) and judged by each
// simple command in it and each file that these or the shell access. It is
// allowed if each command is allowed by a rule, or only does to files what the
// mode or rules allow; in that case its environment keeps git from running
// programs ([core.Grant].Env). Allow rules compare words exactly, and cover what
// a command with known words runs in turn (timeout, env). Deny and ask rules err
// the other way: they compare programs by base name, and if words are unknown,
// or the program runs others, the name of the rule's program as a word is enough.
// Paths are resolved in [Options].Env: links, globs, the content of directories,
// the settings of a repository.
//
// If a line cannot be analyzed, no rule allows it, and its text is searched for
// what is denied. A command of more than 10,000 bytes, or with control
// characters, asks in every mode. Lines for other shells match allow rules only
// as a whole.
//
// # The sandbox
//
// If commands are [Options].Sandboxed, what only a mode allows runs in the
// sandbox: the grants list what it opens, namely the workspace for writing in
// modes workspace and accept-edits, and the trees and hosts of allow rules. What
// a rule, the user or mode bypass allows is granted [core.Access].Unconfined,
// except for scripts of skills.
//
// # Recursive accesses
//
// A recursive read opens a tree except for sensitive paths and those that deny
// and ask rules match ([core.Grant].Except). A recursive write or delete asks or
// is denied if the tree may contain such a path; so does a recursive read by a
// call that also starts a process or calls a plugin or server, where the
// exception could not be enforced. For a command, the content of the tree is
// checked.
//
// An allowed read inside the session's directory also opens the rest of it, as
// far as reading that is allowed.
package permissions
