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
// # Commands
//
// An allow rule matches a command only when the tool knows its exact words
// ([core.Access].Argv) and they equal those of the rule. Deny and ask rules err
// the other way: they compare programs by base name, and where the words are
// not known (lists, pipes, substitutions), or the program runs others (env,
// xargs, sh -c …), it is enough that the name of the rule's program occurs as a
// word of the text. What a script composes at run time is beyond that; it is
// why commands ask unless something allows them. The built-in denials read the
// text of such commands as well, as far as plain words go; they take what looks
// like a command in a quoted text for one. A command of more than 10,000 bytes,
// or with control characters in it, asks in every mode. So does one that names
// a sensitive or protected place in its words; what globs and variables in it
// lead to is not known.
//
// # Recursive accesses
//
// A recursive read opens a tree except for what is sensitive in it and what
// deny and ask rules name in it ([core.Grant].Except). A recursive write or
// delete asks or is denied as soon as such a place could lie in the tree; so is
// a recursive read by a call that also starts a process of its own or goes to a
// plugin or server, where nobody could enforce the exception.
//
// An allowed read inside the session's directory also opens what lies about it
// there, as far as reading that would be allowed by itself.
package permissions
