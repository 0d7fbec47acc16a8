// Package skills adds instructions from files to a session. A skill is a folder
// with a SKILL.md, whose front matter says when to use it and whose body says
// how to do the work.
//
// The life of a skill:
//
//  1. A [Library] finds the skills in all places and rescans when files change.
//     [Parse] reads each file leniently and reports problems with line and
//     column.
//  2. A [Catalog] is a snapshot of the library, with the state of each skill.
//  3. A [Matcher] decides which skills an input activates, and why.
//  4. A [Source] discloses them to one session: the full text of activated
//     skills and a short list of candidates, appended to the user turn, once per
//     session and content.
//  5. [Tools] lets the model search, load, read a resource and run a script.
//  6. An [Installer] installs skills from elsewhere, with consent and a lock
//     file.
//
// A skill's content is not trusted. Its text is wrapped with source and trust,
// its scripts pass the permission policy like every tool call, and the tools
// that it asks for never widen what the user allowed.
package skills
