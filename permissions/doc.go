// Package permissions decides what tool calls may do: it implements
// [core.Policy] with modes, rules and a list of sensitive places.
//
// # The order
//
// Each access of a call is judged by itself, and the worst verdict over all of
// them counts:
//
//  1. A deny rule of any source or a built-in denial (removal of /, of the home
//     or workspace directory; writing to raw devices; fork bombs; sudo and its
//     like, unless a rule of the user allows that very command) denies, in
//     every mode.
//  2. A sensitive place, a place protected from writes, or an access that
//     cannot be understood asks, whatever allows it.
//  3. An ask rule asks.
//  4. An allow rule allows.
//  5. Otherwise the mode decides.
//
// 2 and 3 only ever tighten: what the mode denies and no rule allows is denied
// there too. Mode bypass turns 3 and 5 into a yes, never 2. What a person
// granted for the session satisfies an ask for that exact access, never a denial.
// A call that says it touches nothing is allowed, unless a rule denies the tool.
//
// # Rules
//
// A rule is a scope or the name of a tool, with a pattern in parentheses:
//
//	shell(go test *)       a command's words; a last * stands for any further ones
//	fs-read(./docs/**)     a glob, relative to the project, absolute, or below ~
//	fs-write, fs-delete    the same
//	network(*.example.com) a host, perhaps with a port
//	mcp(github/get_*)      server and tool
//	plugin(web/fetch)      plugin and tool
//	skill-script(...)      as shell
//	subagent(*)            a name
//	write_file(./docs/**)  the accesses of one tool, matched as its scopes are
//	fs-read                the same as fs-read(*)
//	*                      everything
//
// A name that is both a scope and a tool is the scope.
//
// # Conditions
//
// A [When] is a rule that is an expression of github.com/expr-lang/expr over
//
//	scope, tool, source, agent   the access's scope; the tool, its toolset, the subagent that calls
//	mode, dir                    the mode, the working directory
//	resource                     the access's resource as it stands
//	path, inside, recursive      of a file; inside the workspace; with all below
//	command, program, argv       of a simple command: its text, its program's name, its words
//	arg(n)                       a word, empty where there are not so many
//	host, port                   of a connection
//	owner, name                  of an MCP server's or plugin's tool
//
// It is compiled when it is loaded and tried on its examples. It can call a few
// functions only, and go through no list within another, so that what it costs
// is bounded. A condition that fails denies. One that looks at what is not known,
// words of a command that only the run shows, asks if it asks or denies and does
// not hold if it allows.
//
// # Commands
//
// A command line for bash or sh is taken apart (package shell) and judged by
// each simple command in it and by each file that those or the shell touch. It
// is allowed if each command is allowed by a rule, or only does to files what
// the mode or rules allow; the environment then gets what keeps git from
// running programs ([core.Grant].Env). Allow rules compare words exactly, and
// cover what a command with known words runs in turn (timeout, env). Deny and
// ask rules err the other way: they compare programs by base name, and where
// the words are not known, or the program runs others, it is enough that the
// name of the rule's program occurs as a word. What a command line leads to is
// looked up in [Options].Env: links and globs, what lies below a directory, the
// settings of a repository.
//
// Where a line cannot be taken apart, no rule allows it, and its text is searched
// for what is denied. A command of more than 10,000 bytes, or with control
// characters in it, asks in every mode. Lines for other shells match allow rules
// as a whole only.
//
// # The sandbox
//
// If commands are [Options].Sandboxed, what only a mode allows runs confined: the
// grants name what the sandbox opens, in mode workspace and accept-edits the
// workspace for writing, and the trees and hosts that allow rules name. What a
// rule, a person or mode bypass allowed is granted [core.Access].Unconfined, but
// never a script of a skill.
//
// # Recursive accesses
//
// A recursive read opens a tree except for what is sensitive in it and what
// deny and ask rules name in it ([core.Grant].Except). A recursive write or
// delete asks or is denied as soon as such a place could lie in the tree; so is
// a recursive read by a call that also starts a process of its own or goes to a
// plugin or server, where nobody could enforce the exception. For a command it
// is looked up what lies in the tree.
//
// An allowed read inside the session's directory also opens what lies about it
// there, as far as reading that would be allowed by itself.
package permissions
