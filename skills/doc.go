// Package skills gives a session know-how that is kept in files: a folder with
// a SKILL.md, which says in its front matter what the skill is for and in its
// text how the work is done.
//
// The way of a skill:
//
//  1. A [Library] finds the skills of all places, and looks again when files
//     change. [Parse] reads each file leniently and reports everything odd with
//     its line and column.
//  2. A [Catalog] is what there is at one time, with what is on and what is not.
//  3. A [Matcher] says which of them an input calls for, and why.
//  4. A [Source] discloses them to one session: full texts of those that are
//     called for, a short list of those that may be, appended to the user turn,
//     once per session and content.
//  5. The [Tools] let the model do the rest: search, load, read a resource, run
//     a script.
//  6. An [Installer] brings skills from elsewhere, with consent and a lock file.
//
// What a skill says is its author's word. Its text is wrapped with source and
// trust, its scripts pass the permission policy like every tool call, and the
// tools that it asks for never widen what the person allowed.
package skills
